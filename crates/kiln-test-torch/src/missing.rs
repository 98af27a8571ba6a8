//! Which libraries torch needs and has not, and what it wants of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kiln_object::elf::{self, Dynamic};

use crate::Error;

/// A name that a missing library has to offer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The symbol.
    pub name: String,
    /// The version node that it is wanted at.
    pub version: Option<String>,
}

/// A library that torch needs and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its SONAME.
    pub soname: String,
    /// What torch wants of it; may be nothing.
    pub names: BTreeSet<Name>,
}

/// Loaded only once a device is used. What it needs (the driver) must not be made up: torch would find it and take the
/// machine for one with a driver.
const LAZY: &str = "libcaffe2_nvrtc.so";

/// Libraries that every Linux system with a Python and a C++ compiler has.
const SYSTEM: &[&str] = &[
    "libc.so",
    "libm.so",
    "libdl.so",
    "librt.so",
    "libpthread.so",
    "libutil.so",
    "libstdc++.so",
    "libgcc_s.so",
    "libgomp.so",
    "libz.so",
    "ld-linux",
];

/// Reads the libraries of the torch in `site_packages` and gives the ones that they miss, by SONAME.
///
/// # Errors
/// When there is no torch or one of its libraries cannot be read.
pub fn missing(site_packages: &Path) -> Result<Vec<Missing>, Error> {
    let libraries: Vec<Dynamic> = libraries(&site_packages.join("torch"))?
        .iter()
        .map(|path| elf::dynamic_file(path).map_err(|cause| Error::Object { path: path.clone(), cause }))
        .collect::<Result<_, _>>()?;
    let present: BTreeSet<&str> = libraries.iter().filter_map(|library| library.soname.as_deref()).collect();
    let offered: BTreeSet<&str> = libraries.iter().flat_map(|library| &library.exports).map(|export| export.name.as_str()).collect();

    let mut missing: BTreeMap<&str, BTreeSet<Name>> = BTreeMap::new();
    for library in &libraries {
        for needed in &library.needed {
            if !present.contains(needed.as_str()) && !SYSTEM.iter().any(|prefix| needed.starts_with(prefix)) {
                missing.entry(needed).or_default();
            }
        }
    }
    let sonames: Vec<&str> = missing.keys().copied().collect();
    for library in &libraries {
        for import in &library.imports {
            let owner = match &import.library {
                Some(owner) => Some(owner.as_str()),
                None if import.weak || offered.contains(import.name.as_str()) || is_elsewhere(&import.name) => None,
                None => {
                    closest(&import.name, sonames.iter().copied().filter(|soname| library.needed.iter().any(|needed| needed == soname)))
                }
            };
            if let Some(names) = owner.and_then(|owner| missing.get_mut(owner)) {
                names.insert(Name { name: import.name.clone(), version: import.version.clone() });
            }
        }
    }
    Ok(missing.into_iter().map(|(soname, names)| Missing { soname: soname.to_owned(), names }).collect())
}

fn libraries(torch: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for dir in [torch.to_owned(), torch.join("lib")] {
        for entry in std::fs::read_dir(&dir).map_err(Error::io(&dir))? {
            let entry = entry.map_err(Error::io(&dir))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if (name.ends_with(".so") || name.contains(".so.")) && name != LAZY {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Names of Python and of the C++ runtime, which some libraries of torch want without saying at which version. A made-up
/// `std::string` would be taken before the real one.
fn is_elsewhere(name: &str) -> bool {
    ["Py", "_Py", "_Z", "__cxa_", "__gxx_", "__dynamic_cast"].iter().any(|prefix| name.starts_with(prefix))
}

/// Names without a version do not say whose they are. Their prefix does: `ncclSend` is of `libnccl.so.2`. Any of the
/// loaded libraries would serve, so the first one is good enough for the rest.
fn closest<'a>(name: &str, sonames: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.trim_start_matches('_').to_lowercase();
    let common = |soname: &str| {
        let stem = soname.strip_prefix("lib").unwrap_or(soname).to_lowercase();
        stem.bytes().zip(name.bytes()).take_while(|(left, right)| left == right).count()
    };
    // The first of equals: `max_by_key` would give the last.
    sonames
        .fold(None, |best: Option<(usize, &str)>, soname| match (best, common(soname)) {
            (Some((most, _)), length) if length <= most => best,
            (_, length) => Some((length, soname)),
        })
        .map(|(_, soname)| soname)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_runtime_are_never_made_up() {
        for name in
            ["PyErr_Occurred", "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm", "__cxa_throw", "__gxx_personality_v0"]
        {
            assert!(is_elsewhere(name), "{name}");
        }
        for name in ["ncclSend", "__cudaRegisterFatBinary", "cuFileRead"] {
            assert!(!is_elsewhere(name), "{name}");
        }
    }

    #[test]
    fn names_go_to_the_library_they_are_called_after() {
        let sonames = ["libcublas.so.13", "libcufile.so.0", "libcupti.so.13", "libcusparse.so.12", "libcusparseLt.so.0", "libnccl.so.2"];
        for (name, expected) in [
            ("cuFileRead", "libcufile.so.0"),
            ("cuptiActivityEnable", "libcupti.so.13"),
            ("cusparseLtInit", "libcusparseLt.so.0"),
            ("ncclSend", "libnccl.so.2"),
            ("unheard_of", "libcublas.so.13"),
        ] {
            assert_eq!(closest(name, sonames.into_iter()), Some(expected), "{name}");
        }
        assert_eq!(closest("ncclSend", [].into_iter()), None);
    }
}
