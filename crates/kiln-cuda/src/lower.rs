//! Command lines of nvcc.
//!
//! Equal bytes in every checkout: nvcc runs in the project's directory and gets sources and the project's include directories by
//! relative paths; the path that it hashes into the names of what stands in anonymous namespaces is given to `cudafe++` and `cicc`
//! as the relative one; temporary files lie beside the object, so that their names, which end up in the object, hold no process id.

use kiln_backend::{
    Action, Arg, BackendError, CompileProfile, Component, CudaCapability, CudaSuffix, Input, Lowering, MajorMinor, ObjectFile, OutputRef,
    PathRef, Piece, Program, ResourceClass, RootBinding, RootKind, RootName, Step, Weight, fixed_environment,
};

use crate::flags::{UserFlags, define_arg, to_host};
use crate::toolkit::CudaToolkit;

const OBJECT: &str = "unit.o";
const DEPFILE: &str = "unit.d";
const DEVICE_LINK: &str = "device_link.o";

/// The first toolkit that compiles C++20.
const CXX20: MajorMinor = MajorMinor::new(12, 0);
/// The first toolkit with the 8-bit floating point types.
const FP8: MajorMinor = MajorMinor::new(11, 8);

/// Expected cost of a unit without framework headers: once, and for each capability.
const PLAIN: Weight = Weight { cpu_ms: 400, memory_mib: 150 };
const PLAIN_CAPABILITY_MS: u32 = 200;

/// One `.cu` file of a component.
pub(crate) struct Unit<'a> {
    pub(crate) toolkit: &'a CudaToolkit,
    pub(crate) component: &'a Component,
    pub(crate) profile: &'a CompileProfile,
    pub(crate) source: &'a PathRef,
    pub(crate) capabilities: &'a [CudaCapability],
    pub(crate) flags: &'a UserFlags,
}

/// Adds the step that compiles a `.cu` file by one call of nvcc.
///
/// # Errors
/// When the graph refuses the step.
pub(crate) fn compile(lowering: &mut Lowering<'_>, unit: &Unit<'_>) -> Result<ObjectFile, BackendError> {
    let Unit { toolkit, component, profile, source, capabilities, flags } = unit;
    let mut args = common(lowering, toolkit)?;
    if !flags.has_std {
        args.push(Arg::text("-std=").and(cxx_std(profile.cxx_std, toolkit.release())));
    }
    for (option, value) in host_flags(lowering, profile, toolkit, source) {
        args.extend([Arg::from(option), value]);
    }
    args.extend(["-Xcudafe", "-Xcicc"].into_iter().flat_map(|pass| {
        let name = canonical(&source.path);
        let values = ["--orig_src_path_name".to_owned(), name.clone(), "--orig_src_file_name".to_owned(), name];
        values.into_iter().flat_map(move |value| [Arg::from(pass), Arg::from(value)])
    }));
    args.extend(profile.device_flags.iter().map(|flag| Arg::from(flag.as_str())));
    if toolkit.release() >= FP8 {
        args.push(Arg::from("-DENABLE_FP8"));
    }
    args.push(Arg::from("--expt-relaxed-constexpr"));
    args.extend(capabilities.iter().map(|capability| Arg::from(gencode(capability))));
    // Whether nvcc hides a define that no text mentions from what it makes is not known: all of them count always.
    args.extend(profile.defines.iter().chain(&profile.scoped_defines).map(|define| Arg::from(define_arg(define))));
    args.extend(component.include_dirs.iter().map(|dir| include("-I", lowering, dir)));
    if let Some(step) = &profile.generated_headers {
        args.push(Arg::text("-I\"").with(Piece::OutputDir(step.clone())).and("\""));
    }
    for dir in &profile.system_include_dirs {
        args.extend([Arg::from("-isystem"), Arg::text("\"").with(Piece::Path(dir.clone())).and("\"")]);
    }
    args.extend(flags.args.iter().map(|flag| Arg::from(flag.as_str())));
    args.extend([Arg::from("-MD"), Arg::from("-MF"), Arg(vec![Piece::Own(DEPFILE.to_owned())])]);
    args.extend([Arg::from("-c"), relative(source), Arg::from("-o"), Arg(vec![Piece::Own(OBJECT.to_owned())])]);
    let step = lowering.graph.add(Step {
        verb: "Compiling",
        label: source.path.clone(),
        action: Action::Run(program(lowering, toolkit, args, Some(DEPFILE.to_owned()))),
        inputs: vec![Input::File((*source).clone())],
        outputs: vec![OBJECT.to_owned()],
        weight: weight(profile, capabilities.len()),
        resource: ResourceClass::Cpu,
    })?;
    Ok(ObjectFile { output: OutputRef { step, name: OBJECT.to_owned() }, source: source.path.clone() })
}

/// Adds the step that links relocatable device code of `objects`, and gives the object that goes beside them.
///
/// # Errors
/// When the graph refuses the step.
pub(crate) fn device_link(
    lowering: &mut Lowering<'_>,
    toolkit: &CudaToolkit,
    capabilities: &[CudaCapability],
    objects: &[ObjectFile],
) -> Result<ObjectFile, BackendError> {
    let mut args = common(lowering, toolkit)?;
    args.push(Arg::from("-dlink"));
    args.extend(capabilities.iter().map(|capability| Arg::from(gencode(&CudaCapability { ptx: false, ..capability.clone() }))));
    args.extend(to_host("-fPIC").map(Arg::from));
    args.push(Arg::text("-L\"").with(Piece::Path(toolkit.library_dir.clone())).and("\""));
    args.extend(objects.iter().map(|object| Arg::from(object.output.clone())));
    args.extend([Arg::from("-o"), Arg(vec![Piece::Own(DEVICE_LINK.to_owned())])]);
    let label = "device code".to_owned();
    let step = lowering.graph.add(Step {
        verb: "Linking",
        label: label.clone(),
        action: Action::Run(program(lowering, toolkit, args, None)),
        inputs: Vec::new(),
        outputs: vec![DEVICE_LINK.to_owned()],
        weight: PLAIN,
        resource: ResourceClass::Cpu,
    })?;
    Ok(ObjectFile { output: OutputRef { step, name: DEVICE_LINK.to_owned() }, source: label })
}

/// The host compiler, and what every call has.
fn common(lowering: &mut Lowering<'_>, toolkit: &CudaToolkit) -> Result<Vec<Arg>, BackendError> {
    lowering.graph.bind_root(toolkit.root.clone(), toolkit.binding.clone())?;
    let mut args = vec![Arg::from("-ccbin"), host_path(lowering)?];
    args.extend(["--objdir-as-tempdir", "-cudart", "shared", "-O3", "-DNDEBUG"].map(Arg::from));
    Ok(args)
}

/// The host compiler as a file of an immutable root: it counts by what it is, not by where it is. nvcc takes no launcher.
fn host_path(lowering: &mut Lowering<'_>) -> Result<Arg, BackendError> {
    let behind_launcher = lowering.host.args.first().map(std::path::Path::new).filter(|path| path.is_absolute());
    let path = behind_launcher.unwrap_or(&lowering.host.path).to_owned();
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(std::ffi::OsStr::to_str)) else {
        return Ok(Arg::from(path.to_string_lossy().into_owned()));
    };
    let identity = &lowering.host.identity;
    let root = RootName::new(format!("host-compiler-{}", identity.get(..16).unwrap_or(identity)));
    lowering.graph.bind_root(root.clone(), RootBinding { dir: dir.to_owned(), kind: RootKind::Immutable { digest: identity.clone() } })?;
    Ok(Arg::from(PathRef { root, path: name.to_owned() }))
}

/// Flags of the host compiler, each with the option of nvcc that carries it.
fn host_flags(lowering: &Lowering<'_>, profile: &CompileProfile, toolkit: &CudaToolkit, source: &PathRef) -> Vec<(String, Arg)> {
    let mut flags: Vec<String> = vec!["-fPIC".to_owned(), "-fvisibility=hidden".to_owned()];
    let own = lowering.host.args.iter().skip_while(|arg| arg.starts_with('/'));
    flags.extend(own.filter(|arg| !arg.starts_with("-fuse-ld") && !arg.starts_with("-B")).cloned());
    if lowering.host.accepts_no_gnu_unique {
        flags.push("-fno-gnu-unique".to_owned());
    }
    if lowering.host.family == kiln_backend::Family::Gnu {
        flags.push(format!("-frandom-seed={}", canonical(&source.path)));
        flags.push("-fno-canonical-system-headers".to_owned());
    }
    let mut args: Vec<(String, Arg)> = flags.iter().map(|flag| to_host(flag)).map(|[option, value]| (option, Arg::from(value))).collect();
    let project = (lowering.project.clone(), ".".to_owned());
    let roots = [project].into_iter().chain(profile.mapped_roots.iter().cloned()).chain([(toolkit.root.clone(), "cuda".to_owned())]);
    let map =
        |piece: Piece, text: &str| ("-Xcompiler".to_owned(), Arg::text("\"-ffile-prefix-map=").with(piece).and("=").and(text).and("\""));
    args.extend(roots.map(|(root, text)| map(Piece::Path(PathRef { root, path: String::new() }), &text)));
    args.push(map(Piece::WorkDir, ".kiln"));
    args
}

fn program(lowering: &Lowering<'_>, toolkit: &CudaToolkit, args: Vec<Arg>, depfile: Option<String>) -> Program {
    let tool = blake3::hash(format!("{}\n{}", toolkit.identity, lowering.host.identity).as_bytes()).to_hex().to_string();
    Program {
        path: toolkit.nvcc.clone(),
        tool,
        args,
        cwd: PathRef { root: lowering.project.clone(), path: String::new() },
        env: fixed_environment(),
        ambient: lowering.ambient.clone(),
        depfile,
    }
}

/// An include directory: relative for one of the project.
fn include(option: &str, lowering: &Lowering<'_>, dir: &PathRef) -> Arg {
    if dir.root == lowering.project {
        return Arg::text(format!("{option}\"{}\"", relative_text(dir)));
    }
    Arg::text(format!("{option}\"")).with(Piece::Path(dir.clone())).and("\"")
}

/// A file of the project, relative to the working directory.
fn relative(path: &PathRef) -> Arg {
    Arg::text(relative_text(path))
}

fn relative_text(path: &PathRef) -> String {
    if path.path.is_empty() { ".".to_owned() } else { format!("./{}", path.path) }
}

/// A path in letters that every pass takes, different for different paths.
fn canonical(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02x}")),
        }
    }
    text
}

/// The C++ level of device code: the framework's, without extensions of its own, as far as the toolkit has it.
fn cxx_std(level: &str, toolkit: MajorMinor) -> &'static str {
    match level {
        "gnu++20" | "c++20" if toolkit >= CXX20 => "c++20",
        _ => "c++17",
    }
}

/// The option that asks for a capability's cubin, and its PTX when it has some, in one pass.
pub(crate) fn gencode(capability: &CudaCapability) -> String {
    let suffix = match capability.suffix {
        None => "",
        Some(CudaSuffix::Arch) => "a",
        Some(CudaSuffix::Family) => "f",
    };
    let number = format!("{}{}{suffix}", capability.major, capability.minor);
    match capability.ptx {
        true => format!("-gencode=arch=compute_{number},code=[sm_{number},compute_{number}]"),
        false => format!("-gencode=arch=compute_{number},code=sm_{number}"),
    }
}

/// What a unit with these headers costs (measured: nvcc 13.2, torch 2.13). Headers are read once for each capability and once for
/// the host, whose share is known.
fn weight(profile: &CompileProfile, capabilities: usize) -> Weight {
    let count = u32::try_from(capabilities).unwrap_or(u32::MAX);
    match profile.weight {
        None => Weight { cpu_ms: PLAIN.cpu_ms.saturating_add(PLAIN_CAPABILITY_MS.saturating_mul(count)), ..PLAIN },
        Some(host) => Weight {
            cpu_ms: host.cpu_ms.saturating_mul(2).saturating_add(host.cpu_ms.saturating_mul(count)),
            memory_mib: host.memory_mib.saturating_mul(2),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_capability_is_one_pass() {
        let of = |text: &str| gencode(&text.parse().unwrap());
        assert_eq!(of("9.0"), "-gencode=arch=compute_90,code=sm_90");
        assert_eq!(of("9.0a"), "-gencode=arch=compute_90a,code=sm_90a");
        assert_eq!(of("10.0f+PTX"), "-gencode=arch=compute_100f,code=[sm_100f,compute_100f]");
    }

    #[test]
    fn canonical_names_differ_as_paths_do() {
        assert_eq!(canonical("a b/ü,x.cu"), "a%20b/%c3%bc%2cx.cu");
        assert_ne!(canonical("a%20.cu"), canonical("a .cu"));
    }
}
