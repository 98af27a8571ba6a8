//! Command lines of nvcc.
//!
//! Equal bytes in every checkout: nvcc runs in the project's directory and gets sources and the project's include directories by
//! relative paths; the path that it hashes into the names of what stands in anonymous namespaces is given to `cudafe++` and `cicc`
//! as the relative one; temporary files lie beside the object, so that their names, which end up in the object, hold no process id.
//! `cudafe++` names a unit after the first thing in it that other units may use, and after its own process where there is none. So
//! every unit is given one, by a header that is included before its text.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kiln_backend::{
    Action, Arg, BackendError, CompileProfile, Component, CudaCapability, CudaSuffix, FlagList, Input, KernelOptions, Lowering, MajorMinor,
    ObjectFile, OutputRef, PathRef, Piece, Program, ResourceClass, RootBinding, RootKind, RootName, Step, Weight, depfile_args, generate,
    unit_compiler,
};

use crate::dry_run::{Answer, Asked, DryRuns, NAME, PIECE, has_placeholder};
use crate::fan_out::Fan;
use crate::flags::{UserFlags, define_arg, to_host};
use crate::toolkit::{CudaToolkit, Origin};

/// What one call of nvcc makes.
const OBJECT: &str = "unit.o";
const DEVICE_LINK: &str = "device_link.o";

/// What every call has. Names of temporary files end up in objects, and those beside the object hold no process id.
const EVERY_CALL: [&str; 5] = ["--objdir-as-tempdir", "-cudart", "shared", "-O3", "-DNDEBUG"];

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

/// Adds the steps that compile a `.cu` file, and gives its objects: one for each part of it where what nvcc would do is understood,
/// and else one that calls nvcc.
///
/// # Errors
/// When the graph refuses a step.
pub(crate) fn compile(lowering: &mut Lowering<'_>, unit: &Unit<'_>, dry_runs: Option<&DryRuns>) -> Result<Vec<ObjectFile>, BackendError> {
    lowering.graph.bind_root(unit.toolkit.root.clone(), unit.toolkit.binding.clone())?;
    let mut args = arguments(lowering, unit, NAME);
    let named = [Arg::from("-include"), unit_header(lowering, unit)?];
    // The code of several units is joined by a link of its own, which knows objects that nvcc made alone.
    // A launcher knows nvcc, if anything of this.
    if let Some(dry_runs) = dry_runs.filter(|_| !unit.flags.relocatable && lowering.launcher.is_none()) {
        args.extend(named.clone());
        let (texts, pieces) = with_placeholders(&args);
        let asked = Asked {
            toolkit: unit.toolkit,
            host: &host_file(lowering),
            host_identity: &lowering.host.identity,
            args: &texts,
            ambient: lowering.ambient,
        };
        let odd = unit.flags.args.iter().find(|flag| has_placeholder(flag));
        let answer = match odd {
            Some(flag) => Answer::NotUnderstood(format!("the flag `{flag}`")),
            None => dry_runs.ask(&asked),
        };
        match answer {
            Answer::Parts(parts) => {
                let name = unit_name(&lowering.project, unit.source);
                let (symbol, source) = (fatbin_symbol(unit, &name, &args), source_arg(&lowering.project, unit.source));
                return Fan { unit, parts: &parts, pieces: &pieces, name: &name, source, symbol }.lower(lowering);
            }
            Answer::NotUnderstood(why) => {
                let release = unit.toolkit.release();
                lowering.notes.push(format!(
                    "what nvcc {release} does is not understood ({why}): one call of it compiles for all capabilities, one after the other"
                ));
            }
            Answer::None => {}
        }
    }
    Ok(vec![compile_plainly(lowering, unit, named)?])
}

/// Adds the step that compiles a `.cu` file by one call of nvcc.
fn compile_plainly(lowering: &mut Lowering<'_>, unit: &Unit<'_>, named: [Arg; 2]) -> Result<ObjectFile, BackendError> {
    let Unit { toolkit, profile, source, capabilities, .. } = unit;
    let mut args = vec![Arg::from("-ccbin"), host_path(lowering)?];
    args.extend(arguments(lowering, unit, &unit_name(&lowering.project, source)));
    args.extend(named);
    args.extend(depfile_args());
    args.extend([Arg::from("-c"), source_arg(&lowering.project, source), Arg::from("-o"), Arg(vec![Piece::Own(OBJECT.to_owned())])]);
    let program = lowering.unit_program(toolkit.nvcc.as_path(), tool(lowering, toolkit), args);
    let program = unit_compiler(lowering, &[(FlagList::Nvcc, &own_flags(unit))], program)?;
    let step = lowering.graph.add(Step {
        verb: "Compiling",
        label: source.path.clone(),
        action: Action::Run(program),
        inputs: vec![Input::File((*source).clone())],
        outputs: vec![OBJECT.to_owned()],
        weight: weight(profile, capabilities.len()),
        resource: ResourceClass::Cpu,
    })?;
    Ok(ObjectFile { output: OutputRef { step, name: OBJECT.to_owned() }, source: source.path.clone() })
}

/// The author's flags for device code, as written.
pub(crate) fn own_flags(unit: &Unit<'_>) -> Vec<String> {
    match &unit.component.options {
        Some(KernelOptions::Cuda { flags, .. }) => flags.iter().map(|flag| flag.value.clone()).collect(),
        _ => Vec::new(),
    }
}

/// What nvcc is given for a unit called `name`, but for the host compiler, the source and the files that it makes.
fn arguments(lowering: &Lowering<'_>, unit: &Unit<'_>, name: &str) -> Vec<Arg> {
    let Unit { toolkit, component, profile, capabilities, flags, .. } = unit;
    let mut args: Vec<Arg> = EVERY_CALL.map(Arg::from).to_vec();
    if !flags.has_std {
        args.push(Arg::text("-std=").and(cxx_std(profile.cxx_std, toolkit.release())));
    }
    for (option, value) in host_flags(lowering, profile, toolkit, name) {
        args.extend([Arg::from(option), value]);
    }
    args.extend(["-Xcudafe", "-Xcicc"].into_iter().flat_map(|pass| {
        let values = ["--orig_src_path_name", name, "--orig_src_file_name", name];
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
    args.extend(profile.include_dirs.iter().map(|dir| include("-I", lowering, dir)));
    for dir in &profile.system_include_dirs {
        args.extend([Arg::from("-isystem"), Arg::text("\"").with(Piece::Path(dir.clone())).and("\"")]);
    }
    args.extend(flags.args.iter().map(|flag| Arg::from(flag.as_str())));
    args
}

/// Arguments as text, with placeholders for their paths, and the paths.
fn with_placeholders(args: &[Arg]) -> (Vec<String>, Vec<Piece>) {
    let mut pieces: Vec<Piece> = Vec::new();
    let text = |arg: &Arg, pieces: &mut Vec<Piece>| {
        arg.0.iter().fold(String::new(), |text, piece| match piece {
            Piece::Text(piece) => text + piece,
            piece => {
                let known = pieces.iter().position(|known| known == piece);
                let at = known.unwrap_or_else(|| {
                    pieces.push(piece.clone());
                    pieces.len() - 1
                });
                format!("{text}{PIECE}{at}-")
            }
        })
    };
    (args.iter().map(|arg| text(arg, &mut pieces)).collect(), pieces)
}

/// Adds the step that writes the header which names a unit, and gives that file. The name is another one in each component, and the same
/// whatever else changes, so that no more is compiled again than without it.
fn unit_header(lowering: &mut Lowering<'_>, unit: &Unit<'_>) -> Result<Arg, BackendError> {
    const NAME: &str = "kiln_unit.h";
    // A function or a variable with a value: nothing else counts for cudafe++.
    let digest = blake3::hash(format!("{}\0{}", unit.component.table, unit_name(&lowering.project, unit.source)).as_bytes()).to_hex();
    let variable = format!("kiln_unit_{}", digest.get(..16).unwrap_or_default());
    let text =
        format!("extern \"C\" {{ extern const char {variable} __attribute__((visibility(\"hidden\"))); const char {variable} = 1; }}\n");
    let step = generate(lowering.graph, NAME, &text)?;
    Ok(Arg::text("\"").with(Piece::OutputDir(step)).and(format!("/{NAME}\"")))
}

/// The name of a unit's fatbin: units that are compiled alike have the same one, all others have others. What may not matter to a unit
/// is no part of it.
fn fatbin_symbol(unit: &Unit<'_>, name: &str, args: &[Arg]) -> String {
    let profile = unit.profile;
    let scoped = |arg: &&Arg| {
        let define =
            matches!(arg.0.as_slice(), [Piece::Text(text)] if profile.scoped_defines.iter().any(|define| *text == define_arg(define)));
        let of_framework =
            |piece: &Piece| matches!(piece, Piece::Path(path) if profile.system_include_dirs.iter().any(|dir| dir.root == path.root));
        define || arg.0.iter().any(of_framework)
    };
    // Which toolkit it is, and where, is no part of it either.
    let text = |arg: &Arg| {
        arg.0.iter().fold(String::new(), |text, piece| match piece {
            Piece::Text(piece) => text + piece,
            Piece::Path(path) if path.root == unit.toolkit.root => format!("{text}\0toolkit/{}", path.path),
            Piece::Path(path) => format!("{text}\0{}/{}", path.root, path.path),
            Piece::OutputDir(step) => format!("{text}\0{step}"),
            piece => format!("{text}\0{piece:?}"),
        })
    };
    let mut hasher = blake3::Hasher::new_derive_key("kiln fatbin 1");
    for text in [name.to_owned()].into_iter().chain(args.iter().filter(|arg| !scoped(arg)).map(text)) {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let hex = hasher.finalize().to_hex();
    format!("kiln_fatbin_{}", hex.get(..16).unwrap_or_default())
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
    lowering.graph.bind_root(toolkit.root.clone(), toolkit.binding.clone())?;
    let mut args = vec![Arg::from("-ccbin"), host_path(lowering)?];
    args.extend(EVERY_CALL.map(Arg::from));
    args.push(Arg::from("-dlink"));
    args.extend(capabilities.iter().map(|capability| Arg::from(gencode(&CudaCapability { ptx: false, ..capability.clone() }))));
    args.extend(to_host("-fPIC").map(Arg::from));
    let directories = device_link_directories(lowering, toolkit, &mut args);
    // Units that were compiled in parts have no relocatable code, and nvcc does not know their objects.
    let whole = objects.iter().filter(|object| object.output.name == OBJECT);
    args.extend(whole.map(|object| Arg::from(object.output.clone())));
    args.extend([Arg::from("-o"), Arg(vec![Piece::Own(DEVICE_LINK.to_owned())])]);
    let label = "device code".to_owned();
    let step = lowering.graph.add(Step {
        verb: "Linking",
        label: label.clone(),
        action: Action::Run(Program { ambient: directories, ..lowering.program(toolkit.nvcc.as_path(), tool(lowering, toolkit), args) }),
        inputs: Vec::new(),
        outputs: vec![DEVICE_LINK.to_owned()],
        weight: PLAIN,
        resource: ResourceClass::Cpu,
    })?;
    Ok(ObjectFile { output: OutputRef { step, name: DEVICE_LINK.to_owned() }, source: label })
}

/// Adds what a device link needs of the toolkit to `args`, and gives the directories that its process is told.
///
/// nvlink writes the directories of libraries that it is given into the code, and nvcc gives it those of its profile. A toolkit out of
/// wheels lies elsewhere for everybody, so its link goes without the profile: programs are found by `PATH`, the one library by its file.
fn device_link_directories(lowering: &Lowering<'_>, toolkit: &CudaToolkit, args: &mut Vec<Arg>) -> Arc<BTreeMap<String, PathBuf>> {
    if toolkit.origin != Origin::Wheels {
        args.push(Arg::text("-L\"").with(Piece::Path(toolkit.library_dir.clone())).and("\""));
        return Arc::new(lowering.ambient.clone());
    }
    args.extend(["-noprof", "-cudadevrt", "none"].map(Arg::from));
    args.extend(toolkit.include_dirs.iter().map(|dir| include("-I", lowering, dir)));
    let library = PathRef { path: format!("{}/libcudadevrt.a", toolkit.library_dir.path), ..toolkit.library_dir.clone() };
    args.push(Arg::from(library));
    let mut ambient = lowering.ambient.clone();
    let path = ambient.entry("PATH".to_owned()).or_default();
    let mut directories = toolkit.nvcc.parent().map(|dir| dir.as_os_str().to_owned()).unwrap_or_default();
    directories.push(":");
    directories.push(&*path);
    *path = directories.into();
    Arc::new(ambient)
}

/// The host compiler's own file; nvcc takes no launcher.
pub(crate) fn host_file(lowering: &Lowering<'_>) -> PathBuf {
    lowering.host.behind_launcher().unwrap_or(&lowering.host.path).to_owned()
}

/// The host compiler as a file of an immutable root: it counts by what it is, not by where it is.
fn host_path(lowering: &mut Lowering<'_>) -> Result<Arg, BackendError> {
    let path = host_file(lowering);
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(std::ffi::OsStr::to_str)) else {
        return Ok(Arg::from(path.to_string_lossy().into_owned()));
    };
    let identity = &lowering.host.identity;
    let root = RootName::new(format!("host-compiler-{}", identity.get(..16).unwrap_or(identity)));
    lowering.graph.bind_root(root.clone(), RootBinding { dir: dir.to_owned(), kind: RootKind::Immutable { digest: identity.clone() } })?;
    Ok(Arg::from(PathRef { root, path: name.to_owned() }))
}

/// Flags of the host compiler, each with the option of nvcc that carries it.
fn host_flags(lowering: &Lowering<'_>, profile: &CompileProfile, toolkit: &CudaToolkit, name: &str) -> Vec<(String, Arg)> {
    let mut flags: Vec<String> = vec!["-fPIC".to_owned(), "-fvisibility=hidden".to_owned()];
    let own = lowering.host.args.iter().skip_while(|arg| arg.starts_with('/'));
    flags.extend(own.filter(|arg| !arg.starts_with("-fuse-ld") && !arg.starts_with("-B")).cloned());
    if lowering.host.accepts_no_gnu_unique {
        flags.push("-fno-gnu-unique".to_owned());
    }
    if lowering.host.family == kiln_backend::Family::Gnu {
        flags.push(format!("-frandom-seed={name}"));
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

/// What identifies nvcc together with the host compiler that it starts.
fn tool(lowering: &Lowering<'_>, toolkit: &CudaToolkit) -> String {
    blake3::hash(format!("{}\n{}", toolkit.identity, lowering.host.identity).as_bytes()).to_hex().to_string()
}

/// An include directory: relative for one of the project.
fn include(option: &str, lowering: &Lowering<'_>, dir: &PathRef) -> Arg {
    if dir.root == lowering.project {
        return Arg::text(format!("{option}\"{}\"", relative_text(dir)));
    }
    Arg::text(format!("{option}\"")).with(Piece::Path(dir.clone())).and("\"")
}

/// A source: relative to the working directory where it is one of the project.
fn source_arg(project: &RootName, path: &PathRef) -> Arg {
    if path.root == *project { Arg::text(relative_text(path)) } else { Arg::from(path.clone()) }
}

/// The name of a unit: its source's path in letters that every pass takes.
fn unit_name(project: &RootName, source: &PathRef) -> String {
    if source.root == *project { canonical(&source.path) } else { canonical(&format!("{}/{}", source.root, source.path)) }
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
