//! What torch's converter makes of the CUDA sources of kernels for ROCm, to be looked at.
//!
//! It is what a build makes, by the same steps in the same work directory; nothing of the project is written to.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use kiln_backend::{BackendError, OutputRef, SourceKind, StepId, TorchWanted, classify_source};
use kiln_format::build::Kernel;
use kiln_format::{BackendName, Build, Version};
use kiln_graph::{Config, Executor, Graph, PathRef, RootBinding, RootKind, RootName};
use kiln_rocm::{ConversionPlace, ConverterWanted, hip_path, own_hip, sources_to_convert};
use serde_json::{Value, json};

use super::toolkits::installed_torch;
use super::{Checked, Services, work_dir};
use crate::build_error::BuildError;
use crate::event::Event;
use crate::matrix::{Filters, Kind, Set, Target};
use crate::plan::{PROJECT, PlanError};
use crate::project::CSRC;

/// What became of a source of a kernel for ROCm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// It was converted: the name that it has then, and both texts.
    Converted {
        /// The name.
        name: String,
        /// The text before.
        before: String,
        /// The text after.
        after: String,
    },
    /// There was nothing to convert in it.
    Same,
    /// The author has written this one in its place.
    Own {
        /// The name.
        name: String,
    },
    /// It is compiled as it is, and was not looked at.
    Left,
}

/// A source of a kernel for ROCm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertedSource {
    /// The table of the kernel: `kernel.relu_rocm`.
    pub table: String,
    /// The source, relative to the project.
    pub source: String,
    /// What became of it.
    pub became: Became,
}

/// What is converted.
#[derive(Clone, Debug)]
pub struct HipifyOptions {
    /// The system whose torch the converter is of.
    pub target: Target,
    /// The release of torch whose converter it is; none for the newest that kernels for ROCm are built with.
    pub torch: Option<Version>,
}

/// A component whose sources are converted by a step.
struct Component {
    table: String,
    sources: Vec<PathRef>,
    include_dirs: Vec<PathRef>,
    step: Option<StepId>,
}

/// Converts the CUDA sources of all kernels for ROCm, and tells of each of their sources. None where a conversion failed, which an event has
/// told.
///
/// # Errors
/// When the configuration has errors, the converter or the work directory cannot be had, or a file cannot be read.
pub fn hipify(checked: &Checked, options: &HipifyOptions, services: &Services<'_>) -> Result<Option<Vec<ConvertedSource>>, BuildError> {
    let build = checked.build()?;
    let root = &checked.project.root;
    let project = RootName::new(PROJECT);
    let mut graph = Graph::new();
    let bound = graph.bind_root(project.clone(), RootBinding { dir: root.clone(), kind: RootKind::Mutable });
    bound.map_err(PlanError::from)?;
    let mut components = components(build, root, &project);
    if components.iter().any(|component| !sources_to_convert(&component.sources).is_empty()) {
        let converter = converter(checked, options, services)?;
        for component in &mut components {
            let sources = sources_to_convert(&component.sources);
            if sources.is_empty() {
                continue;
            }
            let failed = |source: BackendError| PlanError::Component { table: component.table.clone(), source };
            let mut place = ConversionPlace { graph: &mut graph, project: &project, ambient: services.ambient };
            let step = converter.convert(&mut place, &sources, &component.include_dirs).map_err(failed)?;
            let output =
                OutputRef { step: step.clone(), name: sources.iter().find(|source| is_unit(source)).map(name_of).unwrap_or_default() };
            graph.add_target(component.table.clone(), vec![output]).map_err(PlanError::from)?;
            component.step = Some(step);
        }
    }
    let work_dir = work_dir::open(root, services)?;
    let config = Config {
        interrupt: services.interrupt.clone(),
        cache: services.actions.cloned(),
        job_server: services.job_server.clone(),
        ..Config::default()
    };
    let outcome = Executor::new(&work_dir, config).run(&graph, &|event| (services.events)(&Event::Graph(event.clone())));
    if outcome.is_interrupted() {
        return Err(BuildError::Interrupted);
    }
    if !outcome.is_ok() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for component in &components {
        for source in &component.sources {
            let output = |step: &StepId| outcome.output_path(&OutputRef { step: step.clone(), name: name_of(source) });
            let became = became(component, source, root, component.step.as_ref().map(output))?;
            all.push(ConvertedSource { table: component.table.clone(), source: source.path.clone(), became });
        }
    }
    Ok(Some(all))
}

/// The kernels for ROCm, as a plan has them.
fn components(build: &Build, root: &Path, project: &RootName) -> Vec<Component> {
    let place = |path: &str| PathRef { root: project.clone(), path: path.to_owned() };
    let csrc = root.join(CSRC).is_dir().then(|| place(CSRC));
    let of_kernel = |kernel: &Kernel| Component {
        table: format!("kernel.{}", kernel.name.value),
        sources: kernel.src.iter().map(|path| place(path.value.as_str())).collect(),
        include_dirs: kernel.include.iter().map(|path| place(path.value.as_str())).chain(csrc.clone()).collect(),
        step: None,
    };
    build.kernels_for(BackendName::Rocm).map(of_kernel).collect()
}

/// Torch's converter.
fn converter(checked: &Checked, options: &HipifyOptions, services: &Services<'_>) -> Result<kiln_rocm::Hipify, BuildError> {
    let platform = options.target.platform();
    let filters = Filters { backends: vec![BackendName::Rocm], ..Filters::default() };
    let newest = match &options.torch {
        Some(asked) => {
            let all = services.provisioner.catalog().releases().iter().filter(|release| release.platform == platform);
            let of_minor = all.map(|release| &release.version).filter(|release| release.major_minor() == asked.major_minor());
            // The release itself is told as unknown by whoever looks for it.
            let known: Vec<&Version> = of_minor.collect();
            // As the catalog writes it: `2.13` equals `2.13.0`.
            let same = known.iter().copied().find(|release| *release == asked);
            Some(same.or(known.into_iter().max()).unwrap_or(asked).clone())
        }
        None => {
            let selection = checked.choose(options.target, Set::All, &filters, &|_| Ok(()))?;
            let torches = selection.variants.iter().filter(|selected| !matches!(selected.kind, Kind::TvmFfi(_)));
            torches.filter_map(|selected| Some(selected.row.as_ref()?.release.clone())).max()
        }
    };
    let torch = TorchWanted { newest: newest.as_ref(), cxx: false, installed: installed_torch(&services.torch) };
    let found = kiln_rocm::converter(&ConverterWanted { torch, platform: &platform, fetch: true }, &services.sources)?;
    Ok(found.ok_or_else(|| PlanError::Component { table: "kernel".to_owned(), source: kiln_rocm::no_converter() })?)
}

fn is_unit(source: &PathRef) -> bool {
    source.path.ends_with(".cu")
}

fn name_of(source: &PathRef) -> String {
    hip_path(&source.path)
}

fn became(component: &Component, source: &PathRef, root: &Path, output: Option<PathBuf>) -> Result<Became, BuildError> {
    if let Some(own) = own_hip(&component.sources, &source.path).filter(|_| is_unit(source)) {
        return Ok(Became::Own { name: own.path.clone() });
    }
    let is_looked_at = is_unit(source) || classify_source(&source.path) == SourceKind::Header;
    let Some(output) = output.filter(|_| is_looked_at) else { return Ok(Became::Left) };
    let read = |path: &Path| fs::read_to_string(path).map_err(|source| BuildError::ConvertedFile { path: path.to_owned(), source });
    let (before, after) = (read(&root.join(&source.path))?, read(&output)?);
    Ok(if before == after { Became::Same } else { Became::Converted { name: name_of(source), before, after } })
}

impl ConvertedSource {
    /// What became of it as a unified diff; empty where nothing did.
    pub fn diff(&self) -> String {
        match &self.became {
            Became::Converted { name, before, after } => {
                let diff = similar::TextDiff::from_lines(before.as_str(), after.as_str());
                diff.unified_diff().header(&self.source, name).to_string()
            }
            _ => String::new(),
        }
    }

    /// How many lines of the converted text are new.
    fn new_lines(&self) -> usize {
        match &self.became {
            Became::Converted { before, after, .. } => {
                let diff = similar::TextDiff::from_lines(before.as_str(), after.as_str());
                diff.iter_all_changes().filter(|change| change.tag() == similar::ChangeTag::Insert).count()
            }
            _ => 0,
        }
    }
}

/// A table of the sources, for people.
pub fn text(sources: &[ConvertedSource]) -> String {
    let mut text = String::new();
    let mut table = "";
    for source in sources {
        if table != source.table {
            table = &source.table;
            let _ = writeln!(text, "[{table}]");
        }
        let name = &source.source;
        let _ = match &source.became {
            Became::Converted { name: new, .. } => {
                let lines = source.new_lines();
                writeln!(text, "  converted  {name} -> {new}, {lines} new line{}", if lines == 1 { "" } else { "s" })
            }
            Became::Same => writeln!(text, "  same       {name}"),
            Became::Own { name: own } => writeln!(text, "  replaced   {name}, by the author's {own}"),
            Became::Left => writeln!(text, "  left       {name}"),
        };
    }
    text
}

/// The same for programs, with the converted texts.
pub fn json(sources: &[ConvertedSource]) -> Value {
    let one = |source: &ConvertedSource| {
        let mut object = json!({ "kernel": source.table, "source": source.source });
        let (became, name, after) = match &source.became {
            Became::Converted { name, after, .. } => ("converted", Some(name), Some(after)),
            Became::Same => ("same", None, None),
            Became::Own { name } => ("replaced", Some(name), None),
            Became::Left => ("left", None, None),
        };
        object["became"] = became.into();
        if let Some(name) = name {
            object["name"] = name.as_str().into();
        }
        if let Some(after) = after {
            object["text"] = after.as_str().into();
        }
        object
    };
    json!({ "sources": sources.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(source: &str, became: Became) -> ConvertedSource {
        ConvertedSource { table: "kernel.k".to_owned(), source: source.to_owned(), became }
    }

    #[test]
    fn each_source_has_its_line() {
        let converted = Became::Converted { name: "k_hip/k.hip".into(), before: "a\nb\n".into(), after: "// made\na\nc\n".into() };
        let all = [
            source("k_cuda/k.cu", converted),
            source("common/a.h", Became::Same),
            source("m_cuda/m.cu", Became::Own { name: "m_hip/m.hip".into() }),
            source("host.cpp", Became::Left),
        ];
        insta::assert_snapshot!(text(&all), @"
        [kernel.k]
          converted  k_cuda/k.cu -> k_hip/k.hip, 2 new lines
          same       common/a.h
          replaced   m_cuda/m.cu, by the author's m_hip/m.hip
          left       host.cpp
        ");
        insta::assert_snapshot!(all[0].diff(), @"
        --- k_cuda/k.cu
        +++ k_hip/k.hip
        @@ -1,2 +1,3 @@
        +// made
         a
        -b
        +c
        ");
        assert_eq!(all[1].diff(), "");
        let object = &json(&all)["sources"];
        assert_eq!(
            (&object[0]["became"], &object[0]["text"], &object[2]["name"]),
            (&"converted".into(), &"// made\na\nc\n".into(), &"m_hip/m.hip".into())
        );
    }
}
