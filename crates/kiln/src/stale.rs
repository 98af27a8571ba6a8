//! Variants of earlier builds that stand in the output directory and do not go with what was built now.
//!
//! Loaders take whatever they find: a variant that the kernel no longer has, or one of another state of the sources, is loaded by some
//! machines in place of the new ones. A build leaves other directories alone and says so; with `--prune` it removes what its record says Kiln has
//! made, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kiln_format::{BackendName, Build, OpsId};

use crate::matrix::{Matrix, Target, select};
use crate::record::BuildRecord;

/// Variants of earlier builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stale {
    /// Those that the kernel no longer has, on any system; sorted.
    pub gone: Vec<String>,
    /// Those that were made of another state of the sources; sorted.
    pub other_sources: Vec<String>,
}

impl Stale {
    /// What stands in `out` by its record, without the variants `made`, against the kernel as it is and the ops ids of its backends.
    pub fn find(
        out: &Path,
        record: &BuildRecord,
        build: &Build,
        matrix: &Matrix,
        made: &BTreeSet<String>,
        ids: &BTreeMap<BackendName, OpsId>,
    ) -> Self {
        let possible: BTreeSet<String> =
            Target::ALL.into_iter().flat_map(|target| select(build, matrix, target).variants).map(|found| found.variant.name()).collect();
        let ids: BTreeMap<String, &OpsId> = ids.iter().map(|(backend, id)| (backend.to_string(), id)).collect();
        let mut stale = Self::default();
        for name in record.names().filter(|name| !made.contains(*name) && out.join(name).is_dir()) {
            let recorded = record.get(name);
            let other = |now: &&OpsId| recorded.as_ref().is_some_and(|variant| variant.id != now.as_str());
            if !possible.contains(name) {
                stale.gone.push(name.to_owned());
            } else if recorded.as_ref().and_then(|variant| ids.get(&variant.backend)).is_some_and(other) {
                stale.other_sources.push(name.to_owned());
            }
        }
        stale
    }

    /// Every name, sorted.
    pub fn names(&self) -> BTreeSet<&str> {
        self.gone.iter().chain(&self.other_sources).map(String::as_str).collect()
    }

    /// One line for each kind there is.
    pub fn warnings(&self, out: &Path) -> Vec<String> {
        let line = |names: &[String], one: &str, several: &str| {
            let quoted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let what = if names.len() == 1 { one } else { several };
            format!(
                "in `{}`, {quoted} {what}: `kiln build --prune` removes {}",
                out.display(),
                if names.len() == 1 { "it" } else { "them" }
            )
        };
        let gone = line(&self.gone, "is no variant of this kernel any more", "are no variants of this kernel any more");
        let other = line(&self.other_sources, "is of another state of the sources", "are of another state of the sources");
        let lines = [(&self.gone, gone), (&self.other_sources, other)];
        lines.into_iter().filter(|(names, _)| !names.is_empty()).map(|(_, line)| line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::record::{Proven, VariantRecord};

    const TOML: &str = "[general]\nname = \"relu\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cpu\"]\n[torch]\n[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\"]\n";

    fn stale(toml: &str, made: &[&str], there: &[(&str, &str)]) -> (Stale, String) {
        let build = kiln_format::build::parse("build.toml", toml).build.unwrap();
        let out = tempfile::tempdir().unwrap();
        let mut record = BuildRecord::default();
        for (name, id) in there {
            fs::create_dir(out.path().join(name)).unwrap();
            record.set(
                name,
                &VariantRecord {
                    id: (*id).to_owned(),
                    backend: "cpu".to_owned(),
                    framework: "torch".to_owned(),
                    torch: None,
                    compute: None,
                    catalog: None,
                    toolchains: BTreeMap::new(),
                    archs: Vec::new(),
                    archs_narrowed: false,
                    floor: BTreeMap::new(),
                    steps: Vec::new(),
                    proven: Proven::default(),
                },
            );
        }
        // What the record says and is not there any more is nobody's concern.
        fs::remove_dir(out.path().join("torch211-cxx11-cpu-x86_64-linux")).ok();
        let ids = BTreeMap::from([(BackendName::Cpu, OpsId::parse("_relu_cpu_now").unwrap())]);
        let made = made.iter().map(|&name| name.to_owned()).collect();
        let stale = Stale::find(out.path(), &record, &build, &Matrix::builtin().unwrap(), &made, &ids);
        let text = stale.warnings(Path::new("build")).join("\n");
        (stale, text)
    }

    #[test]
    fn what_loaders_would_take_in_place_of_the_new() {
        let there = [
            ("torch215-cxx11-cpu-x86_64-linux", "_relu_cpu_now"),
            ("torch214-cxx11-cpu-x86_64-linux", "_relu_cpu_now"),
            ("torch213-cxx11-cpu-x86_64-linux", "_relu_cpu_old"),
            ("torch213-cxx11-cpu-aarch64-linux", "_relu_cpu_old"),
            ("torch-stable-abi211-cpu-x86_64-linux", "_relu_cpu_now"),
            ("torch211-cxx11-cpu-x86_64-linux", "_relu_cpu_old"),
        ];
        let (found, text) = stale(TOML, &["torch215-cxx11-cpu-x86_64-linux"], &there);
        assert_eq!(found.gone, ["torch-stable-abi211-cpu-x86_64-linux"]);
        assert_eq!(found.other_sources, ["torch213-cxx11-cpu-aarch64-linux", "torch213-cxx11-cpu-x86_64-linux"]);
        insta::assert_snapshot!(text, @"
        in `build`, `torch-stable-abi211-cpu-x86_64-linux` is no variant of this kernel any more: `kiln build --prune` removes it
        in `build`, `torch213-cxx11-cpu-aarch64-linux`, `torch213-cxx11-cpu-x86_64-linux` are of another state of the sources: `kiln build --prune` removes them
        ");
        // After a switch to the stable ABI, the other way round.
        let (found, _) =
            stale(&TOML.replace("[torch]\n", "[torch]\nstable-abi = \"2.11\"\n"), &["torch-stable-abi211-cpu-x86_64-linux"], &there);
        assert_eq!((found.gone.len(), found.other_sources.len()), (4, 0));
        assert_eq!(found.names().len(), 4);
    }
}
