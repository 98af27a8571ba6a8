//! CUDA sources as HIP: torch's own converter, which is pure Python, as a step.
//!
//! The step reads the files that a component lists, converts the `.cu` ones with the headers that they include by a path relative to
//! themselves, and writes them under the names that the converter gives them. The project is never written to. Python runs without its own
//! settings, user directories and packages.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kiln_backend::{
    Action, Arg, BackendError, Graph, HeaderFiles, Lowering, OutputRef, PathRef, Piece, ResourceClass, RootBinding, RootName, SourceKind,
    Step, StepId, Weight, classify_source, generate, program,
};

const DRIVER: &str = include_str!("hipify.py");

/// Torch's converter, and what runs it.
#[derive(Clone, Debug)]
pub struct Hipify {
    /// The interpreter, absolute.
    pub python: PathBuf,
    /// Digest of what decides what it does, as lower-case hexadecimal text.
    pub python_identity: String,
    /// Name of the root that holds the converter.
    pub root: RootName,
    /// Where that root lies, and how its files count.
    pub binding: RootBinding,
    /// The directory below it that holds the package `hipify`.
    pub package_dir: String,
}

/// Whether a source is one that is converted.
pub(crate) fn is_cuda(path: &str) -> bool {
    path.ends_with(".cu")
}

/// What the converter makes of the names of directories.
fn renamed(text: &str) -> String {
    text.replace("cuda", "hip").replace("CUDA", "HIP").replace("THC", "THH")
}

/// Where headers of an include directory of the project are once they are converted, below the outputs of the step.
pub(crate) fn hip_dir(dir: &str) -> String {
    renamed(dir)
}

/// What the converter calls the file at `path` of a project.
pub fn hip_path(path: &str) -> String {
    let (dir, name) = path.rsplit_once('/').map_or(("", path), |(dir, name)| (dir, name));
    let (stem, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((name, ""));
    let (new_dir, mut new_stem) = (renamed(dir), renamed(stem));
    let new_extension = if extension == "cu" { "hip" } else { extension };
    if new_dir == dir && new_stem == stem && new_extension == extension {
        new_stem.push_str("_hip");
    }
    let name = if extension.is_empty() { new_stem } else { format!("{new_stem}.{new_extension}") };
    if new_dir.is_empty() { name } else { format!("{new_dir}/{name}") }
}

/// What of a component's sources a conversion is about: its CUDA sources without those that the author has written for HIP too, with all that
/// they may include. Empty where there is nothing to convert.
pub fn sources_to_convert(sources: &[PathRef]) -> Vec<PathRef> {
    let is_own = |path: &str| is_cuda(path) && own_hip(sources, path).is_some();
    let wanted: Vec<PathRef> = sources.iter().filter(|source| !is_own(&source.path)).cloned().collect();
    if wanted.iter().any(|source| is_cuda(&source.path)) { wanted } else { Vec::new() }
}

/// The HIP source among `sources` that the author has written in the place of a CUDA one: it has the name that the converted one would get.
pub fn own_hip<'a>(sources: &'a [PathRef], cuda: &str) -> Option<&'a PathRef> {
    let name = hip_path(cuda);
    sources.iter().find(|source| source.path == name)
}

/// Where the steps of conversions go.
#[derive(Debug)]
pub struct ConversionPlace<'a> {
    /// The graph.
    pub graph: &'a mut Graph,
    /// The root that sources are relative to.
    pub project: &'a RootName,
    /// Directories that a process needs to work and that never decide its result.
    pub ambient: &'a BTreeMap<String, PathBuf>,
}

impl<'a> ConversionPlace<'a> {
    /// Among the steps of a build.
    pub(crate) fn of<'l: 'a>(lowering: &'a mut Lowering<'l>) -> Self {
        Self { graph: lowering.graph, project: &lowering.project, ambient: lowering.ambient }
    }
}

impl Hipify {
    /// Adds the step that converts `sources`, as [`sources_to_convert`] gives them, of a component with these include directories. Its
    /// outputs have the names of [`hip_path`].
    ///
    /// # Errors
    /// When the graph refuses a step.
    pub fn convert(&self, place: &mut ConversionPlace<'_>, sources: &[PathRef], include_dirs: &[PathRef]) -> Result<StepId, BackendError> {
        let mut args = self.call(place)?;
        for dir in include_dirs.iter().filter(|dir| dir.root == *place.project) {
            args.extend(["include", if dir.path.is_empty() { "." } else { dir.path.as_str() }, "", ""].map(Arg::from));
        }
        let mut outputs = Vec::new();
        for source in sources {
            let kind = match classify_source(&source.path) {
                SourceKind::Header => "header",
                _ if is_cuda(&source.path) => "unit",
                _ => continue,
            };
            let output = hip_path(&source.path);
            if !outputs.contains(&output) {
                args.extend(entry(kind, &source.path, source, &output));
                outputs.push(output);
            }
        }
        let label = sources.iter().filter(|source| is_cuda(&source.path)).map(|source| source.path.as_str()).collect::<Vec<_>>().join(", ");
        self.step(place, label, args, outputs)
    }

    /// Adds the step that makes the headers of torch's build for ROCm of those of its build for CUDA, and gives it.
    ///
    /// # Errors
    /// When the graph refuses a step.
    pub(crate) fn convert_headers(&self, place: &mut ConversionPlace<'_>, headers: &HeaderFiles) -> Result<StepId, BackendError> {
        let mut args = self.call(place)?;
        let outputs: Vec<String> = headers.names.iter().map(|name| hip_path(name)).collect();
        for (name, output) in headers.names.iter().zip(&outputs) {
            let file = PathRef { path: format!("{}/{name}", headers.dir.path), ..headers.dir.clone() };
            args.extend(entry("torch", name, &file, output));
        }
        self.step(place, "headers of torch".to_owned(), args, outputs)
    }

    /// The converter's call up to the files.
    fn call(&self, place: &mut ConversionPlace<'_>) -> Result<Vec<Arg>, BackendError> {
        place.graph.bind_root(self.root.clone(), self.binding.clone())?;
        let driver = OutputRef { step: generate(place.graph, "hipify.py", DRIVER)?, name: "hipify.py".to_owned() };
        let package = PathRef { root: self.root.clone(), path: self.package_dir.clone() };
        let mut args: Vec<Arg> = ["-I", "-S", "-B"].map(Arg::from).to_vec();
        args.extend([Arg::from(driver), Arg::from(package)]);
        Ok(args)
    }

    fn step(&self, place: &mut ConversionPlace<'_>, label: String, args: Vec<Arg>, outputs: Vec<String>) -> Result<StepId, BackendError> {
        let program = program(place.project, place.ambient, self.python.as_path(), self.python_identity.as_str(), args);
        Ok(place.graph.add(Step {
            verb: "Converting",
            label,
            action: Action::Run(program),
            inputs: Vec::new(),
            outputs,
            weight: Weight { cpu_ms: 1_000, memory_mib: 60 },
            resource: ResourceClass::Cpu,
        })?)
    }
}

/// What the driver is told of a file.
fn entry(kind: &str, name: &str, place: &PathRef, output: &str) -> [Arg; 4] {
    [Arg::from(kind), Arg::from(name), Arg::from(place.clone()), Arg(vec![Piece::Own(output.to_owned())])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_of_torchs_converter() {
        assert_eq!(hip_path("relu_cuda/relu.cu"), "relu_hip/relu.hip");
        assert_eq!(hip_path("rms_norm_cuda/rms_norm_cuda.cu"), "rms_norm_hip/rms_norm_hip.hip");
        assert_eq!(hip_path("k.cu"), "k.hip");
        assert_eq!(hip_path("common/a.h"), "common/a_hip.h");
        assert_eq!(hip_path("my_cuda/a.cuh"), "my_hip/a.cuh");
        assert_eq!(hip_path("CUDA.h"), "HIP.h");
        assert_eq!(hip_path("c10/cuda/impl/CUDAGuardImpl.h"), "c10/hip/impl/HIPGuardImpl.h");
    }
}
