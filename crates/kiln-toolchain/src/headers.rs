//! Whether the headers of one build of a torch release may stand in for those of another build of it.
//!
//! Builds of one release differ in what they were configured with. For builds of one platform that is written into a few generated
//! headers, and every other header is the same file; builds for another operating system differ in hundreds (the declarations of
//! `ATen/ops` follow the backends that were compiled in, and on Windows lines end otherwise). So nothing is assumed: headers stand in
//! only when both builds' lists of digests were compared and only [`GENERATED`] ones differ.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::wheel::record::lines;

/// Where the headers of torch are in its wheel.
const INCLUDE: &str = "torch/include/";

/// Headers that are generated from how a build of torch was configured. Where headers stand in, these are the other build's own.
pub const GENERATED: &[&str] = &[
    "ATen/Config.h",
    "ATen/cuda/CUDAConfig.h",
    "c10/cuda/impl/cuda_cmake_macros.h",
    "c10/hip/impl/hip_cmake_macros.h",
    "c10/macros/cmake_macros.h",
    "c10/xpu/impl/xpu_cmake_macros.h",
    "caffe2/core/macros.h",
    "torch/headeronly/macros/cmake_macros.h",
];

/// The headers of a build, each by its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderSet(BTreeMap<String, [u8; 32]>);

/// How the headers of a build differ from those of another one. Paths are relative to the include directory, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderDifference {
    /// How many are the same.
    pub same: usize,
    /// Generated ones that differ or that one build lacks.
    pub generated: Vec<String>,
    /// Others that differ.
    pub differing: Vec<String>,
    /// Others that only the first build has.
    pub only_first: Vec<String>,
    /// Others that only the second build has.
    pub only_second: Vec<String>,
}

impl HeaderSet {
    /// The headers that the text of a torch wheel's `RECORD` lists.
    ///
    /// # Errors
    /// What is wrong with it, or which header it lists without a sha256.
    pub fn of_record(record: &str) -> Result<Self, String> {
        let mut headers = BTreeMap::new();
        for line in lines(record) {
            let (_, path, entry) = line?;
            let Some(header) = path.strip_prefix(INCLUDE) else { continue };
            let entry = entry.ok_or_else(|| format!("has no sha256 of `{path}`"))?;
            headers.insert(header.to_owned(), entry.sha256);
        }
        Ok(Self(headers))
    }

    /// The headers below an include directory.
    ///
    /// # Errors
    /// When the directory or a file in it cannot be read.
    pub fn of_dir(include: &Path) -> io::Result<Self> {
        let mut headers = BTreeMap::new();
        let mut open = vec![(include.to_owned(), String::new())];
        while let Some((dir, prefix)) = open.pop() {
            for entry in std::fs::read_dir(dir)? {
                let entry = entry?;
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.path().is_dir() {
                    open.push((entry.path(), format!("{name}/")));
                } else {
                    headers.insert(name, Sha256::digest(std::fs::read(entry.path())?).into());
                }
            }
        }
        Ok(Self(headers))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares these headers, of the first build, with those of a second one.
    pub fn compare(&self, second: &Self) -> HeaderDifference {
        let mut found = HeaderDifference::default();
        for (path, digest) in &self.0 {
            let place = match second.0.get(path) {
                Some(other) if other == digest => {
                    found.same += 1;
                    continue;
                }
                _ if GENERATED.contains(&path.as_str()) => &mut found.generated,
                Some(_) => &mut found.differing,
                None => &mut found.only_first,
            };
            place.push(path.clone());
        }
        for path in second.0.keys().filter(|path| !self.0.contains_key(*path)) {
            let place = if GENERATED.contains(&path.as_str()) { &mut found.generated } else { &mut found.only_second };
            place.push(path.clone());
        }
        found.generated.sort();
        found
    }
}

impl HeaderDifference {
    /// Whether the headers of either build may stand in for the other's, but for the generated ones. Strict: a header that only one of
    /// them has may be asked for by `__has_include`.
    pub fn may_stand_in(&self) -> bool {
        self.same > 0 && self.differing.is_empty() && self.only_first.is_empty() && self.only_second.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64URL_NOPAD;

    use super::*;

    /// What the wheels of torch 2.13.0 for Linux list of some headers: x86_64, and below what aarch64 lists otherwise or in addition.
    const RECORD: &str = include_str!("../tests/data/torch-2.13.0-linux-x86_64.record");
    const AARCH64: &str = include_str!("../tests/data/torch-2.13.0-linux-aarch64.record");

    fn set(headers: &[(&str, u8)]) -> HeaderSet {
        HeaderSet(headers.iter().map(|(path, digest)| ((*path).to_owned(), [*digest; 32])).collect())
    }

    #[test]
    fn another_configuration_of_one_platform_stands_in() {
        let first = set(&[("ATen/Config.h", 1), ("ATen/ATen.h", 2), ("c10/cuda/impl/cuda_cmake_macros.h", 3)]);
        let second = set(&[("ATen/Config.h", 9), ("ATen/ATen.h", 2), ("c10/hip/impl/hip_cmake_macros.h", 4)]);
        let found = first.compare(&second);
        assert_eq!((found.same, found.may_stand_in()), (1, true));
        let generated = ["ATen/Config.h", "c10/cuda/impl/cuda_cmake_macros.h", "c10/hip/impl/hip_cmake_macros.h"];
        assert_eq!(found.generated, generated);
        assert!(first.compare(&first).may_stand_in());
    }

    #[test]
    fn any_other_difference_does_not() {
        let base = [("ATen/ATen.h", 2), ("ATen/Config.h", 1)];
        let first = set(&base);
        for other in [&[("ATen/ATen.h", 3), ("ATen/Config.h", 1)][..], &base[1..], &[base[0], base[1], ("ATen/New.h", 1)], &[]] {
            assert!(!first.compare(&set(other)).may_stand_in(), "{other:?}");
            assert!(!set(other).compare(&first).may_stand_in(), "{other:?}");
        }
        // Nothing in common proves nothing.
        assert!(!HeaderSet::default().compare(&HeaderSet::default()).may_stand_in());
    }

    /// The real lists: the builds for two processors differ in generated headers, one of a third party and what only one of them has.
    #[test]
    fn builds_for_two_processors_do_not() {
        let (first, second) = (HeaderSet::of_record(RECORD).unwrap(), HeaderSet::of_record(AARCH64).unwrap());
        let found = first.compare(&second);
        assert_eq!(found.generated, ["ATen/Config.h", "ATen/cuda/CUDAConfig.h", "caffe2/core/macros.h"]);
        assert_eq!(found.differing, ["sleef.h"]);
        assert!(!found.only_first.is_empty() && !found.only_second.is_empty() && found.same > 0);
        assert!(!found.may_stand_in());
        assert!(HeaderSet::of_record("torch/include/a.h,,\n").is_err());
    }

    #[test]
    fn a_directory_is_read_like_its_record() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ATen")).unwrap();
        std::fs::write(dir.path().join("ATen/ATen.h"), "text").unwrap();
        let digest = BASE64URL_NOPAD.encode(&Sha256::digest("text"));
        let record = format!("torch/include/ATen/ATen.h,sha256={digest},4\ntorch/lib/x.so,sha256={digest},4\n");
        assert_eq!(HeaderSet::of_dir(dir.path()).unwrap(), HeaderSet::of_record(&record).unwrap());
    }
}
