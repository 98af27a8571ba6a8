//! The compiles: each is a small graph of the steps that a build has for the unit, run in a directory of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_backend::{Backend, Component, CudaCapability, Framework, KernelOptions, Lowering, PathRef, RootName};
use kiln_format::Spanned;
use kiln_graph::{Config, Event as GraphEvent, Executor, Graph, LockedWorkDir, RootBinding, RootKind, WorkDir};
use kiln_toolchain::Processor;

use super::includes::Includes;
use super::names::Replacement;
use crate::build::{CPUINFO, Prepared, Services};
use crate::build_error::BuildError;
use crate::plan::{PROJECT, PlanError, PlannedVariant, machine, runtime_names};

/// Where copies and results lie, below the work directory.
const PLACE: &str = "lint";
/// The root that copies are relative to. The work directory of a project that cannot be written to lies elsewhere.
const COPIES: &str = "lint";
/// Headers of torch's stable ABI that a kernel needs.
const STABLE: [&str; 4] =
    ["torch/csrc/stable/library.h", "torch/csrc/stable/tensor.h", "torch/csrc/stable/ops.h", "torch/csrc/stable/accelerator.h"];

/// A unit as it is compiled.
pub(super) struct Compile<'a> {
    pub(super) component: &'a Component,
    pub(super) source: &'a str,
    pub(super) includes: &'a Includes,
    /// The capability that device code is compiled for here, and how many a build compiles it for.
    pub(super) capability: Option<(String, usize)>,
}

/// What compiles are run with.
pub(super) struct Bench<'a> {
    prepared: &'a Prepared<'a>,
    services: &'a Services<'a>,
    /// Where copies go.
    sources: PathBuf,
    work_dir: LockedWorkDir,
}

impl<'a> Bench<'a> {
    /// Makes the directories anew, in `work_dir`.
    pub(super) fn new(prepared: &'a Prepared<'a>, services: &'a Services<'a>, work_dir: &Path) -> Result<Self, BuildError> {
        let place = work_dir.join(PLACE);
        let cannot = |source: io::Error| BuildError::LintPlace { path: place.clone(), source };
        match fs::remove_dir_all(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            _ => {}
        }
        let sources = place.join("src");
        fs::create_dir_all(&sources).map_err(cannot)?;
        let work_dir = WorkDir::open(place.join("work"))?.lock(None, &services.interrupt, &mut |_| {})?;
        Ok(Self { prepared, services, sources, work_dir })
    }

    /// Where the headers of torch are that a variant is compiled with.
    pub(super) fn torch_dirs(&self, variant: &PlannedVariant) -> Vec<PathBuf> {
        let framework = self.framework(variant);
        let dir = framework.map(|framework| framework.root().1.dir);
        dir.into_iter().flat_map(|dir| [dir.join("torch/include"), dir.join("torch/include/torch/csrc/api/include")]).collect()
    }

    /// The headers of the stable ABI that this torch has.
    pub(super) fn stable_headers(&self, variant: &PlannedVariant) -> Vec<String> {
        let dirs = self.torch_dirs(variant);
        STABLE.iter().filter(|header| dirs.iter().any(|dir| dir.join(header).is_file())).map(ToString::to_string).collect()
    }

    /// The capability that a unit of device code is compiled for here, and how many a build compiles it for.
    pub(super) fn capability(&self, variant: &PlannedVariant, component: &Component, source: &str) -> Option<(String, usize)> {
        if !source.ends_with(".cu") {
            return None;
        }
        let architectures = self.backend(variant)?.architectures(component).ok()?;
        Some((architectures.names.first()?.clone(), architectures.names.len()))
    }

    /// The unit as it is.
    pub(super) fn as_it_is(&self, variant: &PlannedVariant, compile: &Compile<'_>) -> Result<Result<Duration, String>, BuildError> {
        let source = PathRef { root: RootName::new(PROJECT), path: compile.source.to_owned() };
        self.run(variant, compile, compile.component.clone(), source)
    }

    /// Nothing but headers, with the unit's flags.
    pub(super) fn only(
        &self,
        variant: &PlannedVariant,
        compile: &Compile<'_>,
        name: &str,
        headers: &[String],
    ) -> Result<Result<Duration, String>, BuildError> {
        let text: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
        self.write(name, compile.source, &text)?;
        self.run(variant, compile, compile.component.clone(), copy(name, compile.source))
    }

    /// The unit with a replacement of its umbrella headers.
    pub(super) fn with(
        &self,
        variant: &PlannedVariant,
        compile: &Compile<'_>,
        replacement: &Replacement,
    ) -> Result<Result<Duration, String>, BuildError> {
        let name = if replacement.renames { "narrow" } else { "types" };
        for (file, text) in &compile.includes.files {
            self.write(name, file, &replacement.apply(text))?;
        }
        let mut component = compile.component.clone();
        let copies: Vec<PathRef> = component.include_dirs.iter().map(|dir| copy(name, &dir.path)).collect();
        component.include_dirs.splice(0..0, copies);
        self.run(variant, compile, component, copy(name, compile.source))
    }

    fn write(&self, name: &str, file: &str, text: &str) -> Result<(), BuildError> {
        let path = self.sources.join(name).join(file);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|source| BuildError::LintPlace { path, source })
    }

    fn backend(&self, variant: &PlannedVariant) -> Option<&dyn Backend> {
        self.prepared.backends.get(variant.selected.row.as_ref()?.compute)
    }

    fn framework(&self, variant: &PlannedVariant) -> Option<Box<dyn Framework>> {
        self.prepared.frameworks.bind(self.prepared.checked.build().ok()?, &variant.selected, &variant.ops_id)
    }

    /// Compiles `source` as the only one of `component`, and gives the processor time, or the end of what was said.
    fn run(
        &self,
        variant: &PlannedVariant,
        compile: &Compile<'_>,
        component: Component,
        source: PathRef,
    ) -> Result<Result<Duration, String>, BuildError> {
        let graph = self.graph(variant, compile, component, source)?;
        let said = Mutex::new(String::new());
        let config = Config { jobs: NonZeroUsize::MIN, interrupt: self.services.interrupt.clone(), ..Config::default() };
        let outcome = Executor::new(&self.work_dir, config).run(&graph, &|event| {
            if let GraphEvent::StepFailed { output, .. } = event {
                *said.lock().unwrap_or_else(PoisonError::into_inner) = String::from_utf8_lossy(output).into_owned();
            }
        });
        if outcome.is_ok() {
            return Ok(Ok(outcome.steps().iter().map(|step| step.cpu).sum()));
        }
        Ok(Err(said.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The steps that compile a unit, and nothing else.
    fn graph(&self, variant: &PlannedVariant, compile: &Compile<'_>, component: Component, source: PathRef) -> Result<Graph, BuildError> {
        let Prepared { checked, host, floor, headers, .. } = self.prepared;
        let no_toolchain = || BuildError::from(PlanError::NoToolchain { variant: variant.selected.variant.name() });
        let host = host.as_ref().ok_or_else(no_toolchain)?;
        let backend = self.backend(variant).ok_or_else(no_toolchain)?;
        let host = backend.host().unwrap_or(host);
        let framework = self.framework(variant).ok_or_else(no_toolchain)?;
        let failed = |source| BuildError::from(PlanError::Component { table: compile.component.table.clone(), source });
        let in_graph = |error| BuildError::from(PlanError::Graph(error));
        let project = RootName::new(PROJECT);
        let mut graph = Graph::new();
        graph.bind_root(project.clone(), RootBinding { dir: checked.project.root.clone(), kind: RootKind::Mutable }).map_err(in_graph)?;
        graph.bind_root(RootName::new(COPIES), RootBinding { dir: self.sources.clone(), kind: RootKind::Mutable }).map_err(in_graph)?;
        for (root, binding) in framework.roots() {
            graph.bind_root(root, binding).map_err(in_graph)?;
        }
        let compute = variant.selected.row.as_ref().map(|row| row.compute).ok_or_else(no_toolchain)?;
        for tree in headers.of(compute) {
            graph.bind_root(tree.root.clone(), tree.binding.clone()).map_err(in_graph)?;
        }
        let component = Component { sources: vec![source], ..component };
        let component = for_one_capability(component, compile.capability.as_ref().map(|(name, _)| name.as_str()));
        let processor = Processor::described_by(CPUINFO);
        let mut lowering = Lowering {
            graph: &mut graph,
            host,
            runtime: Arc::new(runtime_names(host, floor.as_ref())),
            floor: None,
            machine: machine(&variant.selected).ok_or_else(no_toolchain)?,
            project,
            launcher: None,
            processor: &processor,
            ambient: self.services.ambient,
            parts: BTreeMap::new(),
            notes: Vec::new(),
        };
        let mut profile = framework.profile(&mut lowering, &backend.framework_part(), &component).map_err(failed)?;
        headers.of(compute).for_each(|tree| tree.add_to(&mut profile));
        let objects = backend.lower(&mut lowering, &component, &profile).map_err(failed)?;
        let outputs = objects.into_iter().map(|object| object.output).collect();
        graph.add_target("unit".to_owned(), outputs).map_err(in_graph)?;
        Ok(graph)
    }
}

/// A file or directory of the project in the copy called `name`.
fn copy(name: &str, path: &str) -> PathRef {
    PathRef { root: RootName::new(COPIES), path: format!("{name}/{path}") }
}

/// The component with one capability alone.
fn for_one_capability(mut component: Component, capability: Option<&str>) -> Component {
    let parsed = capability.and_then(|name| name.parse::<CudaCapability>().ok());
    if let (Some(KernelOptions::Cuda { capabilities, .. }), Some(capability)) = (&mut component.options, parsed) {
        let span = capabilities.as_ref().and_then(|listed| listed.first()).map(|first| first.span).unwrap_or_default();
        *capabilities = Some(vec![Spanned::new(capability, span)]);
    }
    component
}
