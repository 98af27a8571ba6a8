//! Command lines of the HIP compiler, and the parts of a unit as steps of their own.
//!
//! ```text
//! Compiling  clang --offload-device-only   -> code object          (for each architecture)
//! Bundling   (builtin)                     -> bundle of all code objects
//! Compiling  clang --offload-host-only     -> object of the host's half, with the bundle in it
//! ```
//!
//! These are the parts of a single call. Equal bytes in every checkout: the compiler runs in the project's directory, paths that it embeds
//! are mapped, and the name of the unit, which it would make from its arguments, is given to it.

use std::sync::Arc;

use kiln_backend::{
    Action, Arg, BackendError, Builtin, BuiltinError, CompileProfile, Component, FlagList, Input, KernelOptions, Lowering, ObjectFile,
    OutputRef, PathRef, Piece, ResourceClass, Scope, Step, StepId, UnitPart, UnitSource, Weight, depfile_args, offload, shows_arguments,
    unit_compiler,
};

use crate::arch::Target;
use crate::device_libs::{self, DeviceLibs, layout_flag};
use crate::toolkit::RocmToolkit;

const OBJECT: &str = "unit.o";
const BUNDLE: &str = "unit.hipfb";

/// What every call has.
const EVERY_CALL: [&str; 7] = ["-x", "hip", "-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fno-gpu-rdc"];
/// Defines of every HIP unit, as torch's own build of extensions has them.
const DEFINES: [&str; 4] = ["-D__HIP_PLATFORM_AMD__=1", "-DHIPBLAS_V2", "-DCUDA_HAS_FP16=1", "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1"];

/// Expected cost of the parts of a unit without framework headers.
const PLAIN_HOST: Weight = Weight { cpu_ms: 900, memory_mib: 200 };
const PLAIN_DEVICE: Weight = Weight { cpu_ms: 900, memory_mib: 200 };

/// One `.hip` file of a component.
pub(crate) struct Unit<'a> {
    pub(crate) toolkit: &'a RocmToolkit,
    pub(crate) component: &'a Component,
    pub(crate) profile: &'a CompileProfile,
    pub(crate) source: &'a UnitSource,
    /// What the source is called in messages.
    pub(crate) label: &'a str,
    /// The source that it was converted from; what it includes beside itself may not have been converted.
    pub(crate) beside: Option<&'a PathRef>,
    pub(crate) targets: &'a [Target],
}

impl Unit<'_> {
    /// Adds the steps, and gives the object.
    ///
    /// # Errors
    /// When the graph refuses a step, or a flag asks for a processor that nobody knows.
    pub(crate) fn lower(&self, lowering: &mut Lowering<'_>) -> Result<ObjectFile, BackendError> {
        let mut codes = Vec::new();
        for target in self.targets {
            codes.push(self.device(lowering, target)?);
        }
        let bundle = self.bundle(lowering, &codes)?;
        let host = self.host(lowering, &bundle)?;
        let parts = codes.iter().zip(self.targets).map(|(step, target)| (step, vec![target.to_string()])).chain([(&host, Vec::new())]);
        for (place, (step, capabilities)) in parts.enumerate() {
            let part = UnitPart { unit: host.to_string(), source: self.label.to_owned(), place, capabilities };
            lowering.parts.insert(step.clone(), part);
        }
        Ok(ObjectFile { output: OutputRef { step: host, name: OBJECT.to_owned() }, source: self.label.to_owned() })
    }

    /// The code object for a target.
    fn device(&self, lowering: &mut Lowering<'_>, target: &Target) -> Result<StepId, BackendError> {
        let name = code_name(target);
        let libs = match device_libs::provide(lowering, self.toolkit, target)? {
            DeviceLibs::Own => Piece::Path(self.toolkit.device_libs.clone()),
            DeviceLibs::Made(step) => Piece::OutputDir(step),
        };
        let mut args = self.arguments(lowering);
        args.extend(["--offload-device-only", "--no-gpu-bundle-output"].map(Arg::from));
        args.push(Arg::text(format!("--offload-arch={target}")));
        args.extend(layout_flag(target).map(Arg::from));
        args.push(Arg::text("--rocm-device-lib-path=").with(libs));
        let label = format!("{} ({target})", self.label);
        self.compile(lowering, &label, args, &name, self.weight(PLAIN_DEVICE))
    }

    /// The bundle of all code objects.
    fn bundle(&self, lowering: &mut Lowering<'_>, codes: &[StepId]) -> Result<OutputRef, BackendError> {
        let inputs = codes.iter().zip(self.targets).map(|(step, target)| OutputRef { step: step.clone(), name: code_name(target) });
        let step = lowering.graph.add(Step {
            verb: "Bundling",
            label: self.label.to_owned(),
            action: Action::Builtin(bundle(self.targets)),
            inputs: inputs.map(Input::Output).collect(),
            outputs: vec![BUNDLE.to_owned()],
            weight: Weight { cpu_ms: 5, memory_mib: 20 },
            resource: ResourceClass::Light,
        })?;
        Ok(OutputRef { step, name: BUNDLE.to_owned() })
    }

    /// The object of the host's half.
    fn host(&self, lowering: &mut Lowering<'_>, bundle: &OutputRef) -> Result<StepId, BackendError> {
        let mut args = self.arguments(lowering);
        args.extend(["--offload-host-only", "-Xclang", "-fcuda-include-gpubinary", "-Xclang"].map(Arg::from));
        args.push(Arg::from(bundle.clone()));
        self.compile(lowering, self.label, args, OBJECT, self.weight(PLAIN_HOST))
    }

    fn compile(
        &self,
        lowering: &mut Lowering<'_>,
        label: &str,
        mut args: Vec<Arg>,
        output: &str,
        weight: Weight,
    ) -> Result<StepId, BackendError> {
        args.extend(depfile_args());
        args.extend([Arg::from("-c"), self.source_arg(lowering), Arg::from("-o"), Arg(vec![Piece::Own(output.to_owned())])]);
        let program = lowering.unit_program(self.toolkit.clang.as_path(), self.toolkit.identity.as_str(), args);
        let program = unit_compiler(lowering, &[(FlagList::Host, &own_flags(self.component))], program)?;
        Ok(lowering.graph.add(Step {
            verb: "Compiling",
            label: label.to_owned(),
            action: Action::Run(program),
            inputs: match self.source {
                UnitSource::Project(path) => vec![Input::File(path.clone())],
                UnitSource::Generated(_) => Vec::new(),
            },
            outputs: vec![output.to_owned()],
            weight,
            resource: ResourceClass::Cpu,
        })?)
    }

    /// A source of the project is named relative to it: the compiler writes the name into what it makes.
    fn source_arg(&self, lowering: &Lowering<'_>) -> Arg {
        match self.source {
            UnitSource::Project(path) if path.root == lowering.project => Arg::text(format!("./{}", path.path)),
            UnitSource::Project(path) => Arg::from(path.clone()),
            UnitSource::Generated(output) => Arg::from(output.clone()),
        }
    }

    /// What both halves are given.
    fn arguments(&self, lowering: &Lowering<'_>) -> Vec<Arg> {
        let Unit { toolkit, component, profile, label, .. } = self;
        let own = own_flags(component);
        let scoped = !shows_arguments(&own);
        let with_scope = |arg: Arg, scope: Scope| if scoped { arg.scoped(scope) } else { arg };
        let mut args: Vec<Arg> = EVERY_CALL.map(Arg::from).to_vec();
        args.push(Arg::text("--rocm-path=").with(Piece::Path(PathRef { root: toolkit.root.clone(), path: String::new() })));
        let unit = blake3::hash(format!("{}\0{label}", component.table).as_bytes()).to_hex();
        args.push(Arg::text(format!("-cuid={}", unit.get(..16).unwrap_or_default())));
        if !own.iter().any(|flag| flag.starts_with("-std=")) {
            args.push(Arg::text(format!("-std={}", cxx_std(profile.cxx_std))));
        }
        let whole = |root| Piece::Path(PathRef { root, path: String::new() });
        args.push(Arg::text("-ffile-prefix-map=").with(whole(lowering.project.clone())).and("=."));
        for (root, text) in &profile.mapped_roots {
            let map = Arg::text("-ffile-prefix-map=").with(whole(root.clone())).and("=").and(text.as_str());
            args.push(with_scope(map, Scope::Root(root.clone())));
        }
        // A map of `/usr` would be one of everything.
        if toolkit.binding.dir != std::path::Path::new("/usr") {
            args.push(Arg::text("-ffile-prefix-map=").with(whole(toolkit.root.clone())).and("=rocm"));
        }
        args.push(Arg::text("-ffile-prefix-map=").with(Piece::WorkDir).and("=.kiln"));
        args.extend(DEFINES.map(Arg::from));
        if !toolkit.has_rocthrust {
            args.push(Arg::from("-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP"));
        }
        args.extend(profile.device_flags.iter().map(|flag| Arg::from(flag.as_str())));
        args.push(Arg::from("-DENABLE_FP8"));
        args.extend(profile.defines.iter().filter(|define| !is_given(define)).map(|define| Arg::text("-D").and(define.as_str())));
        args.extend(profile.scoped_defines.iter().map(|define| {
            let name = define.split('=').next().unwrap_or_default();
            with_scope(Arg::text("-D").and(define.as_str()), Scope::Word(name.into()))
        }));
        if let (UnitSource::Generated(output), Some(original)) = (self.source, self.beside) {
            let dir = original.path.rsplit_once('/').map_or("", |(dir, _)| dir);
            args.extend([Arg::from("-iquote"), Arg(vec![Piece::OutputDir(output.step.clone())])]);
            args.extend([Arg::from("-iquote"), Arg::text(if dir.is_empty() { ".".to_owned() } else { format!("./{dir}") })]);
        }
        args.extend(component.include_dirs.iter().map(|dir| include(lowering, dir)));
        if let Some(step) = &profile.generated_headers {
            args.push(Arg::text("-I").with(Piece::OutputDir(step.clone())));
        }
        args.extend(profile.include_dirs.iter().map(|dir| with_scope(include(lowering, dir), Scope::Root(dir.root.clone()))));
        for dir in &profile.system_include_dirs {
            let scope = || Scope::Root(dir.root.clone());
            args.extend([with_scope(Arg::from("-isystem"), scope()), with_scope(Arg::from(dir.clone()), scope())]);
        }
        args.extend(own.into_iter().map(Arg::from));
        args
    }

    fn weight(&self, plain: Weight) -> Weight {
        let of_framework = |host: Weight| Weight { cpu_ms: host.cpu_ms.saturating_mul(3) / 2, memory_mib: host.memory_mib };
        self.profile.weight.map_or(plain, of_framework)
    }
}

/// The author's flags for device code, as written.
pub(crate) fn own_flags(component: &Component) -> Vec<String> {
    match &component.options {
        Some(KernelOptions::Rocm { flags, .. }) => flags.iter().map(|flag| flag.value.clone()).collect(),
        _ => Vec::new(),
    }
}

/// Whether every HIP unit has this define anyway.
fn is_given(define: &str) -> bool {
    DEFINES.iter().any(|flag| flag.strip_prefix("-D") == Some(define))
}

/// The C++ level of device code: the framework's, without extensions of its own.
fn cxx_std(level: &str) -> &str {
    match level {
        "gnu++20" => "c++20",
        "gnu++17" => "c++17",
        other => other,
    }
}

/// An include directory: relative for one of the project.
fn include(lowering: &Lowering<'_>, dir: &PathRef) -> Arg {
    match dir.root == lowering.project {
        true if dir.path.is_empty() => Arg::from("-I."),
        true => Arg::text(format!("-I./{}", dir.path)),
        false => Arg::text("-I").with(Piece::Path(dir.clone())),
    }
}

fn code_name(target: &Target) -> String {
    format!("unit.{}.co", target.to_string().replace(':', "."))
}

/// A builtin that bundles its inputs, the code for each of `targets`.
fn bundle(targets: &[Target]) -> Builtin {
    let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
    Builtin {
        name: "offload-bundle",
        version: 1,
        key: targets.join(" "),
        run: Arc::new(move |context| {
            let failed = |what: &str, cause: std::io::Error| BuiltinError::new("work-directory", format!("cannot {what}: {cause}"));
            let mut codes = Vec::new();
            for (input, target) in context.inputs.iter().zip(&targets) {
                codes.push((target.clone(), std::fs::read(input).map_err(|cause| failed("read a code object", cause))?));
            }
            context.write(BUNDLE, offload::bundle(&codes)).map_err(|cause| failed("write a bundle", cause))
        }),
    }
}
