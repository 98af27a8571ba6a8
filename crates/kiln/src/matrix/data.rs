//! The matrix as data: reading and checking its file.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use kiln_backend::Machine;
use kiln_format::variant::{Compute, Cpu, Os};
use kiln_format::{BackendName, Diagnostic, MajorMinor, SourceFile, Span, Version, render};
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

const BUILTIN: &str = include_str!("../../data/matrix.toml");
/// The version of the file's form.
const SCHEMA: u32 = 1;

/// What a variant with compiled code runs on: a processor and an operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The processor.
    pub cpu: Cpu,
    /// The operating system.
    pub os: Os,
}

impl Target {
    /// Every target that variants can be named for.
    pub const ALL: [Self; 6] = {
        const fn of(cpu: Cpu, os: Os) -> Target {
            Target { cpu, os }
        }
        [
            of(Cpu::Aarch64, Os::Darwin),
            of(Cpu::Aarch64, Os::Linux),
            of(Cpu::Aarch64, Os::Windows),
            of(Cpu::X86_64, Os::Darwin),
            of(Cpu::X86_64, Os::Linux),
            of(Cpu::X86_64, Os::Windows),
        ]
    };
}

impl Target {
    /// The name of the platform in the catalog and in lock files: `linux-x86_64`.
    pub fn platform(self) -> String {
        format!("{}-{}", self.os, self.cpu)
    }

    /// The processor as object files name it.
    pub fn machine(self) -> Machine {
        match self.cpu {
            Cpu::X86_64 => Machine::X86_64,
            Cpu::Aarch64 => Machine::AARCH64,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.cpu, self.os)
    }
}

/// A text that names no target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown system `{}`", .0.escape_debug())]
pub struct TargetError(
    /// The text.
    pub String,
);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Self::ALL.into_iter().find(|target| target.to_string() == text).ok_or_else(|| TargetError(text.to_owned()))
    }
}

/// One torch build that kernels are made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The torch minor that variants are named after.
    pub torch: MajorMinor,
    /// The torch release whose headers are compiled against.
    pub release: Version,
    /// The compute kind, with its version as in names.
    pub compute: Compute,
    /// The compute version as written, where the kind has one (`2025.3.2`).
    pub compute_version: Option<Version>,
    /// Where it exists.
    pub systems: Vec<Target>,
    /// Whether it belongs to the set that is published.
    pub default: bool,
    /// The tvm-ffi version that its tvm-ffi variant is for; none without one.
    pub tvm_ffi: Option<MajorMinor>,
    /// Whether the ecosystem knows the torch build to be broken.
    pub broken: bool,
    /// Whether only Kiln has this row: it never counts for compliance.
    pub kiln_only: bool,
}

impl Row {
    /// The backend.
    pub fn backend(&self) -> BackendName {
        self.compute.backend()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "torch {} {}", self.torch, self.backend())?;
        match &self.compute_version {
            Some(version) => write!(f, " {version}"),
            None => Ok(()),
        }
    }
}

/// Why a matrix file cannot be used. Displayed as the whole message, pointing into the file.
#[derive(Clone, Debug, Error)]
#[error("{}", render(source_file, std::slice::from_ref(&**diagnostic)))]
pub struct MatrixError {
    /// The file.
    pub source_file: Arc<SourceFile>,
    /// What is wrong with it.
    pub diagnostic: Box<Diagnostic>,
}

/// The rows, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The version of the data, as its authors call it.
    pub revision: String,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Matrix {
    /// The matrix that comes with this Kiln.
    ///
    /// # Errors
    /// Never, if the data that was built in is sound.
    pub fn builtin() -> Result<Self, MatrixError> {
        Self::parse("matrix.toml", BUILTIN)
    }

    /// Reads the text of a matrix file; `name` is what messages call it.
    ///
    /// # Errors
    /// With the first fault, pointing into the file.
    pub fn parse(name: &str, text: &str) -> Result<Self, MatrixError> {
        let located = |(message, span): (String, Option<Span>)| MatrixError {
            source_file: Arc::new(SourceFile::new(name, text)),
            diagnostic: Box::new(Diagnostic::error("matrix", span, message)),
        };
        let file: FileData = toml::from_str(text).map_err(|e| located((e.message().replace('\n', ", "), e.span().map(Span::from))))?;
        file.check().map_err(located)
    }

    /// The matrix without the rows that only Kiln has: the reference for compliance.
    #[must_use]
    pub fn peer_only(&self) -> Self {
        Self { revision: self.revision.clone(), rows: self.rows.iter().filter(|row| !row.kiln_only).cloned().collect() }
    }

    /// Every target that some row exists for, sorted.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = self.rows.iter().flat_map(|row| row.systems.iter().copied()).collect();
        targets.sort();
        targets.dedup();
        targets
    }

    /// The newest torch that has a row for `backend`, none newer than `maxver`.
    pub fn newest_torch(&self, backend: BackendName, maxver: Option<MajorMinor>) -> Option<MajorMinor> {
        let of_backend = self.rows.iter().filter(|row| row.backend() == backend).map(|row| row.torch);
        of_backend.filter(|torch| maxver.is_none_or(|maxver| *torch <= maxver)).max()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileData {
    schema: Spanned<u32>,
    revision: String,
    releases: BTreeMap<Spanned<String>, Spanned<String>>,
    row: Vec<RowData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RowData {
    torch: Spanned<String>,
    compute: Spanned<String>,
    version: Option<Spanned<String>>,
    systems: Spanned<Vec<Spanned<String>>>,
    default: bool,
    tvm_ffi: Option<Spanned<String>>,
    #[serde(default)]
    broken: bool,
    #[serde(default)]
    kiln_only: bool,
}

type Fault = (String, Option<Span>);

fn fault<T>(at: &Spanned<T>, message: impl Into<String>) -> Fault {
    (message.into(), Some(at.span().into()))
}

fn version(text: &Spanned<String>) -> Result<Version, Fault> {
    Version::parse(text.get_ref()).map_err(|e| fault(text, e.to_string()))
}

impl FileData {
    fn check(self) -> Result<Matrix, Fault> {
        if *self.schema.get_ref() != SCHEMA {
            return Err(fault(&self.schema, format!("this Kiln reads matrix files of schema {SCHEMA} only")));
        }
        let mut releases = BTreeMap::new();
        for (minor, release) in &self.releases {
            let (key, value) = (version(minor)?.major_minor(), version(release)?);
            if value.major_minor() != key {
                return Err(fault(release, format!("`{value}` is no release of torch {key}")));
            }
            releases.insert(key, value);
        }
        let rows = self.row.into_iter().map(|row| row.check(&releases)).collect::<Result<_, _>>()?;
        Ok(Matrix { revision: self.revision, rows })
    }
}

impl RowData {
    fn check(self, releases: &BTreeMap<MajorMinor, Version>) -> Result<Row, Fault> {
        let torch = version(&self.torch)?.major_minor();
        let release = releases.get(&torch).ok_or_else(|| fault(&self.torch, format!("`[releases]` names no release of torch {torch}")))?;
        let backend: BackendName =
            self.compute.get_ref().parse().map_err(|e: kiln_format::UnknownBackend| fault(&self.compute, e.to_string()))?;
        let compute_version = self.version.as_ref().map(version).transpose()?;
        let named = compute_version.as_ref().map_or(MajorMinor::new(0, 0), Version::major_minor);
        let compute = Compute::new(backend, named);
        match (compute.version(), &self.version) {
            (Some(_), None) => return Err(fault(&self.compute, format!("a row for {backend} needs a `version`"))),
            (None, Some(written)) => return Err(fault(written, format!("{backend} has no version"))),
            _ => {}
        }
        if self.systems.get_ref().is_empty() {
            return Err(fault(&self.systems, "a row needs at least one system"));
        }
        let system = |text: &Spanned<String>| text.get_ref().parse().map_err(|e: TargetError| fault(text, e.to_string()));
        let systems = self.systems.get_ref().iter().map(system).collect::<Result<_, _>>()?;
        let tvm_ffi = self.tvm_ffi.as_ref().map(version).transpose()?.map(|v| v.major_minor());
        let Self { default, broken, kiln_only, .. } = self;
        Ok(Row { torch, release: release.clone(), compute, compute_version, systems, default, tvm_ffi, broken, kiln_only })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_matrix_is_sound() {
        let matrix = Matrix::builtin().unwrap();
        let rows = |kiln_only| matrix.rows.iter().filter(|row| row.kiln_only == kiln_only).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            rows(true),
            [
                "torch 2.11 cuda 13.0",
                "torch 2.14 cpu",
                "torch 2.14 cuda 13.0",
                "torch 2.15 cpu",
                "torch 2.15 cuda 13.2",
                "torch 2.13 rocm 7.1",
                "torch 2.13 rocm 7.2",
                "torch 2.12 cann 8.5"
            ]
        );
        assert_eq!(matrix.peer_only().rows.len(), rows(false).len());
        assert_eq!(
            matrix.targets().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["aarch64-darwin", "aarch64-linux", "x86_64-linux"]
        );
        let release = |minor| matrix.rows.iter().find(|row| row.torch == MajorMinor::new(2, minor)).unwrap().release.to_string();
        assert_eq!([11, 12, 13, 14, 15].map(release), ["2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"]);
        assert_eq!(matrix.newest_torch(BackendName::Rocm, None), Some(MajorMinor::new(2, 13)));
        assert_eq!(matrix.newest_torch(BackendName::Cann, None), Some(MajorMinor::new(2, 12)));
        assert_eq!(matrix.newest_torch(BackendName::Neuron, None), None);
    }

    #[test]
    fn targets_round_trip() {
        for target in Target::ALL {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        assert_eq!("x86-linux".parse::<Target>(), Err(TargetError("x86-linux".into())));
        assert!(Target::ALL.is_sorted());
    }

    const HEAD: &str = "schema = 1\nrevision = \"r\"\n[releases]\n\"2.13\" = \"2.13.0\"\n[[row]]\n";

    #[test]
    fn faults_point_into_the_file() {
        let row = "torch = \"2.13\"\ncompute = \"cuda\"\nversion = \"13.0\"\nsystems = [\"x86_64-linux\"]\ndefault = true\n";
        assert!(Matrix::parse("m", &format!("{HEAD}{row}")).is_ok());
        let mut messages = Vec::new();
        for (from, to) in [
            ("\"2.13\"\ncompute", "\"2.12\"\ncompute"),
            ("\"cuda\"", "\"cudnn\""),
            ("version = \"13.0\"\n", ""),
            ("\"cuda\"", "\"cpu\""),
            ("\"13.0\"", "\"13.x\""),
            ("[\"x86_64-linux\"]", "[]"),
            ("x86_64", "x86"),
            ("default = true\n", ""),
            ("default = true", "default = true\ntvm = \"1\""),
            ("= \"2.13.0\"", "= \"2.12.0\""),
            ("schema = 1", "schema = 2"),
            ("[[row]]", "[[row]"),
        ] {
            let text = format!("{HEAD}{row}").replacen(from, to, 1);
            assert!(text != format!("{HEAD}{row}"), "{from}");
            let error = Matrix::parse("m", &text).unwrap_err().to_string();
            messages.push(error.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" "));
        }
        insta::assert_snapshot!(messages.join("\n"), @r"
        error[matrix]: `[releases]` names no release of torch 2.12 --> m:6:9
        error[matrix]: unknown backend `cudnn` --> m:7:11
        error[matrix]: a row for cuda needs a `version` --> m:7:11
        error[matrix]: cpu has no version --> m:8:11
        error[matrix]: malformed version `13.x`: numbers separated by dots are expected, such as `2.11` --> m:8:11
        error[matrix]: a row needs at least one system --> m:9:11
        error[matrix]: unknown system `x86-linux` --> m:9:12
        error[matrix]: missing field `default` --> m:5:1
        error[matrix]: unknown field `tvm`, expected one of `torch`, `compute`, `version`, `systems`, `default`, `tvm-ffi`, `broken`, `kiln-only` --> m:11:1
        error[matrix]: `2.12.0` is no release of torch 2.13 --> m:4:10
        error[matrix]: this Kiln reads matrix files of schema 1 only --> m:1:10
        error[matrix]: unclosed array table, expected `]` --> m:5:7
        ");
    }
}
