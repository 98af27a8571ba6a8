//! Command lines of `bisheng`.
//!
//! Equal bytes in every checkout: the compiler runs in the project's directory, and paths that it embeds are mapped.

use std::sync::Arc;

use kiln_backend::{
    Action, Arg, BackendError, CompileProfile, Component, FlagList, Input, KernelOptions, Lowering, ObjectFile, OutputRef, PathRef, Piece,
    ResourceClass, RootName, Scope, Step, Weight, depfile_args, shows_arguments, unit_compiler,
};

use crate::toolkit::NpuToolkit;

const OBJECT: &str = "unit.o";

/// Expected cost of a unit: the headers of Ascend C, read once for the host and once for the device.
const WEIGHT: Weight = Weight { cpu_ms: 5_000, memory_mib: 600 };

/// One `.asc` file of a component.
pub(crate) struct Unit<'a> {
    pub(crate) toolkit: &'a NpuToolkit,
    pub(crate) component: &'a Component,
    pub(crate) profile: &'a CompileProfile,
    pub(crate) source: &'a PathRef,
    pub(crate) arch: &'a str,
}

impl Unit<'_> {
    /// Adds the step, and gives the object.
    ///
    /// # Errors
    /// When the graph refuses the step, or a flag asks for a processor that nobody knows.
    pub(crate) fn lower(&self, lowering: &mut Lowering<'_>) -> Result<ObjectFile, BackendError> {
        let toolkit = self.toolkit;
        let own = own_flags(self.component);
        let args = self.arguments(lowering, &own);
        let mut program = lowering.unit_program(toolkit.bisheng.as_path(), toolkit.identity.as_str(), args);
        Arc::make_mut(&mut program.ambient).extend(toolkit.environment.clone());
        let program = unit_compiler(lowering, &[(FlagList::Host, &own)], program)?;
        let step = lowering.graph.add(Step {
            verb: "Compiling",
            label: format!("{} ({})", self.source.path, self.arch),
            action: Action::Run(program),
            inputs: vec![Input::File(self.source.clone())],
            outputs: vec![OBJECT.to_owned()],
            weight: WEIGHT,
            resource: ResourceClass::Cpu,
        })?;
        Ok(ObjectFile { output: OutputRef { step, name: OBJECT.to_owned() }, source: self.source.path.clone() })
    }

    /// Of what is given twice the compiler takes the last: what the author wrote.
    fn arguments(&self, lowering: &Lowering<'_>, own: &[String]) -> Vec<Arg> {
        let Unit { component, profile, source, arch, .. } = self;
        let scoped = !shows_arguments(own);
        let with_scope = |arg: Arg, scope: Scope| if scoped { arg.scoped(scope) } else { arg };
        let of_root = |arg: Arg, dir: &PathRef| with_scope(arg, Scope::Root(dir.root.clone()));
        let mut args: Vec<Arg> = ["-x", "asc"].map(Arg::from).to_vec();
        args.push(Arg::text(format!("--npu-arch={arch}")));
        args.extend(["-O3", "-DNDEBUG", "-fPIC", "-std=c++17"].map(Arg::from));
        args.push(map(&lowering.project, "."));
        args.extend(profile.mapped_roots.iter().map(|(root, text)| with_scope(map(root, text), Scope::Root(root.clone()))));
        args.push(Arg::text("-ffile-prefix-map=").with(Piece::WorkDir).and("=.kiln"));
        args.extend(profile.defines.iter().map(|define| Arg::text("-D").and(define.as_str())));
        args.extend(profile.scoped_defines.iter().map(|define| {
            let name = define.split('=').next().unwrap_or_default();
            with_scope(Arg::text("-D").and(define.as_str()), Scope::Word(name.into()))
        }));
        args.extend(component.include_dirs.iter().map(|dir| include(lowering, dir)));
        if let Some(step) = &profile.generated_headers {
            args.push(Arg::text("-I").with(Piece::OutputDir(step.clone())));
        }
        args.extend(profile.include_dirs.iter().map(|dir| of_root(include(lowering, dir), dir)));
        for dir in &profile.system_include_dirs {
            args.extend([of_root(Arg::from("-isystem"), dir), of_root(Arg::from(dir.clone()), dir)]);
        }
        args.extend(own.iter().map(|flag| Arg::from(flag.as_str())));
        args.extend(depfile_args());
        args.push(Arg::from("-c"));
        // Named relative to the project: the compiler writes the name into what it makes.
        args.push(if source.root == lowering.project { Arg::text(format!("./{}", source.path)) } else { Arg::from((*source).clone()) });
        args.extend([Arg::from("-o"), Arg(vec![Piece::Own(OBJECT.to_owned())])]);
        args
    }
}

/// The author's flags for device sources, as written.
pub(crate) fn own_flags(component: &Component) -> Vec<String> {
    match &component.options {
        Some(KernelOptions::Cann { flags, .. }) => flags.iter().map(|flag| flag.value.clone()).collect(),
        _ => Vec::new(),
    }
}

/// What keeps the place of a root out of what is made.
fn map(root: &RootName, text: &str) -> Arg {
    Arg::text("-ffile-prefix-map=").with(Piece::Path(PathRef { root: root.clone(), path: String::new() })).and("=").and(text)
}

/// An include directory: relative for one of the project.
fn include(lowering: &Lowering<'_>, dir: &PathRef) -> Arg {
    match dir.root == lowering.project {
        true if dir.path.is_empty() => Arg::from("-I."),
        true => Arg::text(format!("-I./{}", dir.path)),
        false => Arg::text("-I").with(Piece::Path(dir.clone())),
    }
}
