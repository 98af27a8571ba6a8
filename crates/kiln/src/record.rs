//! The build record `build/kiln-build.json`: how each variant there was made and what was proven of it.
//!
//! `metadata.json` keeps only what loaders know; everything else that a later `rebuild`, `why` or `check` needs is here. Equal builds
//! give equal bytes: no times, no directories of the machine, everything sorted.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::small_file;
use kiln_format::excerpt;
use kiln_toolchain::StandIn;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// Name of the record in the output directory.
pub const FILE_NAME: &str = "kiln-build.json";
/// The version of the record's form.
const SCHEMA: u64 = 1;

/// How one variant was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VariantRecord {
    /// The ops id.
    pub id: String,
    /// The backend's name.
    pub backend: String,
    /// `torch`, `torch-stable-abi`, `tvm-ffi` or `torch-noarch`.
    pub framework: String,
    /// The torch release whose headers were compiled against; none for noarch and tvm-ffi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch: Option<String>,
    /// Version of CUDA, ROCm and the like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute: Option<String>,
    /// Digest of the data that pins toolchains and symbols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// What was compiled with, by part (`torch`, `tvm-ffi`, `cxx`, `cuda`, and libraries as `depends` names them).
    pub toolchains: BTreeMap<String, ToolchainRecord>,
    /// The architectures that were compiled for, in metadata order.
    pub archs: Vec<String>,
    /// Whether the architectures were narrowed on the command line (development only).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archs_narrowed: bool,
    /// The oldest system library versions that the result may need, by library; empty while no floor is set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub floor: BTreeMap<String, String>,
    /// The arguments of each compile and link, in the order of the steps.
    pub steps: Vec<StepRecord>,
    /// What was proven of the result.
    pub proven: Proven,
}

/// One part of a toolchain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolchainRecord {
    /// Where it came from: `wheel`, `system`, `python`.
    pub provider: String,
    /// Version or release as text, for people.
    pub version: String,
    /// Digest that changes whenever the part does.
    pub identity: String,
    /// The terms under which its files came: the license that each wheel states, by project and version. None of the files is in
    /// the result.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub licenses: BTreeMap<String, String>,
    /// File name of the wheel that headers came from, with the local part of the build; none for what is no single wheel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheel: Option<String>,
    /// The build that its headers stood in for, where the variant's own build was not at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<StandInRecord>,
    /// The host compiler that is the usual one here and that the variant's toolkit refuses, where another one was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// A build of torch for which the headers of another one stood in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StandInRecord {
    /// The local part of its version, such as `cu126`.
    pub build: String,
    /// Whether its headers were compared with those that were used, and only generated ones differ.
    pub compared: bool,
    /// File name of its wheel, where it was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheel: Option<String>,
    /// Sha256 of that wheel's `RECORD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_sha256: Option<String>,
    /// The generated headers that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generated: Vec<String>,
}

impl From<&StandIn> for StandInRecord {
    fn from(stand_in: &StandIn) -> Self {
        let compared = stand_in.compared.as_ref();
        Self {
            build: stand_in.build.clone(),
            compared: compared.is_some(),
            wheel: compared.map(|compared| compared.wheel.clone()),
            record_sha256: compared.map(|compared| compared.record_sha256.clone()),
            generated: compared.map(|compared| compared.generated.clone()).unwrap_or_default(),
        }
    }
}

/// The arguments of one step, with roots in place of directories (`{project}/cpu/relu.cpp`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StepRecord {
    /// What it makes, such as `cpu/relu.cpp`.
    pub label: String,
    /// The program's name without its directory, or the builtin's.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

/// How far a variant was proven. Each stage implies those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Its steps are known.
    #[default]
    Planned,
    /// Every unit was compiled.
    Compiled,
    /// The shared object was linked (noarch: the directory was assembled).
    Linked,
    /// The loader imported it.
    Loaded,
    /// An operator of it was run.
    Ran,
}

impl Stage {
    /// Every stage in order.
    pub const ALL: [Self; 5] = [Self::Planned, Self::Compiled, Self::Linked, Self::Loaded, Self::Ran];

    /// The name as in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Compiled => "compiled",
            Self::Linked => "linked",
            Self::Loaded => "loaded",
            Self::Ran => "ran",
        }
    }
}

/// What was proven of a variant, and by which tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Proven {
    /// The last stage that was reached.
    pub stage: Stage,
    /// The tool that showed it, such as `g++ 12.2.0` or `kernels 0.17.2`.
    pub by: String,
}

/// The record could not be read or written.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file could not be read, made or put in place.
    #[error("failed to {what} `{}`", path.display())]
    Io {
        /// The act that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not a build record of a form that this Kiln knows.
    #[error("`{}` is no build record of this Kiln: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// The records of all variants of an output directory, sorted by variant.
///
/// Records are kept as they were read, so that those of variants which are not rebuilt stay what they were, later keys included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BuildRecord {
    variants: BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct FileOut<'a> {
    schema: u64,
    variants: &'a BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct FileIn {
    schema: u64,
    variants: BTreeMap<String, Value>,
}

impl BuildRecord {
    /// Reads the record of the output directory `out`; an empty one when there is none.
    ///
    /// # Errors
    /// When the file cannot be read or is malformed. A build that is about to write it may go on with an empty record.
    pub fn read(out: &Path) -> Result<Self, RecordError> {
        let path = out.join(FILE_NAME);
        let bytes = match small_file::read(&path) {
            Ok(bytes) => bytes,
            // A link that leads nowhere is there.
            Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(&path).is_err() => return Ok(Self::default()),
            Err(source) => return Err(RecordError::Io { what: "read", path, source }),
        };
        let malformed = |reason: String| RecordError::Malformed { path: path.clone(), reason };
        let file: FileIn = serde_json::from_slice(&bytes).map_err(|e| malformed(excerpt(&e.to_string()).into_owned()))?;
        match file.schema {
            SCHEMA => Ok(Self { variants: file.variants }),
            other => Err(malformed(format!("it has form {other}, known is {SCHEMA}"))),
        }
    }

    /// Names of the recorded variants, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variants.keys().map(String::as_str)
    }

    /// The record of one variant, if it is there and of the known form.
    pub fn get(&self, variant: &str) -> Option<VariantRecord> {
        self.read_variant(variant)?.ok()
    }

    /// The record of one variant, if it is there, or what keeps it from being read.
    pub fn read_variant(&self, variant: &str) -> Option<Result<VariantRecord, String>> {
        let read = VariantRecord::deserialize(self.variants.get(variant)?);
        Some(read.map_err(|fault| excerpt(&fault.to_string()).into_owned()))
    }

    /// Sets the record of one variant.
    pub fn set(&mut self, variant: &str, record: &VariantRecord) {
        // Only maps with keys other than text fail to become a value, and the type has none.
        if let Ok(value) = serde_json::to_value(record) {
            self.variants.insert(variant.to_owned(), value);
        }
    }

    /// Drops the records of variants that `keep` denies, such as those whose directory is gone.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.variants.retain(|name, _| keep(name));
    }

    /// The file's text: two spaces of indentation, a line end at the end.
    pub fn to_text(&self) -> String {
        let file = FileOut { schema: SCHEMA, variants: &self.variants };
        serde_json::to_string_pretty(&file).map(|text| text + "\n").unwrap_or_default()
    }

    /// Writes the record into `out`, whole or not at all, and only when its bytes differ from what is there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), RecordError> {
        let path = out.join(FILE_NAME);
        let text = self.to_text();
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        let io = |source| RecordError::Io { what: "write", path: path.clone(), source };
        crate::replace::write_file(&path, |file| file.write_all(text.as_bytes())).map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str) -> VariantRecord {
        let cxx = ToolchainRecord {
            provider: "system".into(),
            version: "g++ 12.2.0".into(),
            identity: "ab".into(),
            ..ToolchainRecord::default()
        };
        VariantRecord {
            id: id.into(),
            backend: "cpu".into(),
            framework: "torch".into(),
            torch: Some("2.13.0".into()),
            compute: None,
            catalog: Some("cd".into()),
            toolchains: BTreeMap::from([("cxx".into(), cxx)]),
            archs: Vec::new(),
            archs_narrowed: false,
            floor: BTreeMap::new(),
            steps: vec![StepRecord {
                label: "cpu/a.cpp".into(),
                program: "g++".into(),
                args: vec!["-c".into(), "{project}/cpu/a.cpp".into()],
            }],
            proven: Proven { stage: Stage::Linked, by: "g++ 12.2.0".into() },
        }
    }

    #[test]
    fn text_of_a_record() {
        let mut records = BuildRecord::default();
        records.set("torch213-cxx11-cpu-x86_64-linux", &record("_relu_cpu_1"));
        insta::assert_snapshot!(records.to_text(), @r#"
        {
          "schema": 1,
          "variants": {
            "torch213-cxx11-cpu-x86_64-linux": {
              "id": "_relu_cpu_1",
              "backend": "cpu",
              "framework": "torch",
              "torch": "2.13.0",
              "catalog": "cd",
              "toolchains": {
                "cxx": {
                  "provider": "system",
                  "version": "g++ 12.2.0",
                  "identity": "ab"
                }
              },
              "archs": [],
              "steps": [
                {
                  "label": "cpu/a.cpp",
                  "program": "g++",
                  "args": [
                    "-c",
                    "{project}/cpu/a.cpp"
                  ]
                }
              ],
              "proven": {
                "stage": "linked",
                "by": "g++ 12.2.0"
              }
            }
          }
        }
        "#);
    }

    #[test]
    fn variants_that_are_not_rebuilt_keep_their_record() {
        let tmp = tempfile::tempdir().unwrap();
        let mut first = BuildRecord::default();
        first.set("b", &record("_r_cpu_1"));
        first.set("gone", &record("_r_cpu_1"));
        first.write(tmp.path()).unwrap();
        let mut second = BuildRecord::read(tmp.path()).unwrap();
        second.set("a", &record("_r_cpu_2"));
        second.retain(|name| name != "gone");
        second.write(tmp.path()).unwrap();
        let read = BuildRecord::read(tmp.path()).unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((read.get("a"), read.get("b")), (Some(record("_r_cpu_2")), Some(record("_r_cpu_1"))));
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 1);
    }

    #[test]
    fn unknown_keys_of_kept_variants_stay() {
        let tmp = tempfile::tempdir().unwrap();
        fs::write(tmp.path().join(FILE_NAME), r#"{"schema": 1, "variants": {"v": {"new": 1}}}"#).unwrap();
        let read = BuildRecord::read(tmp.path()).unwrap();
        assert_eq!(read.get("v"), None);
        assert!(read.to_text().contains("\"new\": 1"));
    }

    #[test]
    fn equal_records_are_not_written_again() {
        let tmp = tempfile::tempdir().unwrap();
        let mut records = BuildRecord::default();
        records.set("v", &record("_r_cpu_1"));
        records.write(tmp.path()).unwrap();
        let before = fs::metadata(tmp.path().join(FILE_NAME)).unwrap();
        records.write(tmp.path()).unwrap();
        let after = fs::metadata(tmp.path().join(FILE_NAME)).unwrap();
        use std::os::unix::fs::MetadataExt;
        assert_eq!((before.ino(), before.modified().unwrap()), (after.ino(), after.modified().unwrap()));
    }

    #[test]
    fn malformed_records_are_named() {
        let tmp = tempfile::tempdir().unwrap();
        for (text, part) in [("{", "EOF"), ("[]", "invalid length 0"), (r#"{"schema": 2, "variants": {}}"#, "it has form 2, known is 1")] {
            fs::write(tmp.path().join(FILE_NAME), text).unwrap();
            let error = BuildRecord::read(tmp.path()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn stages_are_ordered_and_named_alike() {
        assert!(Stage::ALL.is_sorted());
        for stage in Stage::ALL {
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        }
    }

    #[test]
    fn a_build_that_stands_in_is_told() {
        use kiln_toolchain::ComparedHeaders;
        let compared = ComparedHeaders {
            wheel: "torch-2.11.0+cu126.whl".to_owned(),
            record_sha256: "ab".to_owned(),
            same: 9000,
            generated: vec!["ATen/cuda/CUDAConfig.h".to_owned()],
            differing: Vec::new(),
        };
        let shown = |compared: Option<ComparedHeaders>| {
            let stand_in = StandIn { build: "cu126".to_owned(), compared };
            serde_json::to_string(&StandInRecord::from(&stand_in)).unwrap()
        };
        assert_eq!(shown(None), r#"{"build":"cu126","compared":false}"#);
        assert_eq!(
            shown(Some(compared)),
            r#"{"build":"cu126","compared":true,"wheel":"torch-2.11.0+cu126.whl","record-sha256":"ab","generated":["ATen/cuda/CUDAConfig.h"]}"#
        );
    }
}
