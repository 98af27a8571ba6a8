//! The libraries that a compiler links by itself, and the names they offer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use kiln_object::elf::Machine;
use kiln_object::{archive, elf, macho};
use serde::{Deserialize, Serialize};

use super::machine;
use crate::names::{NameSet, versioned};

/// One file of the host's runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeFile {
    /// What it is called in the compiler's directories: `libstdc++.so.6`.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Digest of its content, as lower-case hexadecimal text.
    pub digest: String,
}

/// What a compiler links without being told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRuntime {
    /// Shared libraries: of C++, C, mathematics, unwinding, and the loader.
    pub libraries: Vec<RuntimeFile>,
    /// Static parts that come along with them.
    pub archives: Vec<RuntimeFile>,
    /// Start-up objects.
    pub objects: Vec<RuntimeFile>,
    /// The C++ library as an archive. Never linked as it is; the portability floor takes parts of it.
    #[serde(default)]
    pub static_cxx: Option<RuntimeFile>,
}

/// File names, each with the packages that have it when it is a must.
type Names = &'static [(&'static str, Option<&'static str>)];

const CXX_PACKAGES: &str = "the C++ library: `libstdc++-N-dev` on Debian and Ubuntu, `libstdc++-devel` on Fedora and RHEL";
const C_PACKAGES: &str = "the C library: `libc6-dev` on Debian and Ubuntu, `glibc-devel` on Fedora and RHEL";
const CXX: Option<&str> = Some(CXX_PACKAGES);
const C: Option<&str> = Some(C_PACKAGES);

/// Headers that every kernel needs, each with the packages that have it.
pub(super) const HEADERS: &[(&str, &str)] = &[("cstddef", CXX_PACKAGES), ("stdio.h", C_PACKAGES)];

/// The small ones of the C library have been empty since glibc 2.34 and are not always there.
const LIBRARIES: Names = &[
    ("libstdc++.so.6", CXX),
    ("libm.so.6", C),
    ("libgcc_s.so.1", CXX),
    ("libc.so.6", C),
    ("libpthread.so.0", None),
    ("libdl.so.2", None),
    ("librt.so.1", None),
];

/// The shared libraries of a processor, the loader among them.
pub(super) fn libraries(machine: Option<Machine>) -> Vec<(&'static str, Option<&'static str>)> {
    let loader = machine.and_then(machine::loader).map(|loader| (loader, C));
    LIBRARIES.iter().copied().chain(loader).collect()
}

/// The compiler's support library.
const SUPPORT: &str = "libgcc.a";

pub(super) const ARCHIVES: Names = &[(SUPPORT, CXX), ("libc_nonshared.a", None), ("libpthread_nonshared.a", None)];

pub(super) const OBJECTS: Names = &[("crti.o", C), ("crtbeginS.o", CXX), ("crtendS.o", CXX), ("crtn.o", C)];

/// The stub of macOS's own library, which stands in place of it in SDKs.
pub(super) const SYSTEM_STUB: &str = "libSystem.tbd";

/// What linkers for macOS make, and what compilers for it link statically.
const MADE_FOR_MACOS: [&str; 5] =
    ["__dso_handle", "_mh_dylib_header", "_mh_bundle_header", "__isPlatformVersionAtLeast", "__isOSVersionAtLeast"];

pub(super) const STATIC_CXX: &str = "libstdc++.a";

/// A file of the runtime that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{}`: {cause}", path.display())]
pub struct RuntimeError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub cause: String,
}

impl HostRuntime {
    /// Digest of all files' content, as lower-case hexadecimal text.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for file in self.files() {
            hasher.update(file.name.as_bytes()).update(b"\0").update(file.digest.as_bytes()).update(b"\0");
        }
        HEXLOWER.encode(hasher.finalize().as_bytes())
    }

    /// Every name that a link with this runtime finds in it, those of shared libraries also with each of their versions. Reads a dozen files: to be done once and kept.
    ///
    /// # Errors
    /// When one of the files cannot be read.
    pub fn names(&self) -> Result<NameSet, RuntimeError> {
        let mut names = BTreeSet::new();
        for file in &self.libraries {
            if file.name == SYSTEM_STUB {
                let text = String::from_utf8_lossy(&read(&file.path)?).into_owned();
                names.extend(macho::tbd::names(&text));
                names.extend(MADE_FOR_MACOS.map(str::to_owned));
                continue;
            }
            let library = elf::dynamic_file(&file.path).map_err(|cause| error(&file.path, cause))?;
            for export in library.exports {
                names.extend(export.version.map(|version| versioned(&export.name, &version)));
                names.insert(export.name);
            }
        }
        for file in &self.archives {
            names.extend(names_of_archive(file)?);
        }
        names.extend(self.names_of_objects()?);
        Ok(NameSet::exact(names))
    }

    /// The names that come with every link whatever the shared libraries are: those of the compiler's support library and of the
    /// start-up objects.
    ///
    /// # Errors
    /// As [`HostRuntime::names`].
    pub(crate) fn static_names(&self) -> Result<BTreeSet<String>, RuntimeError> {
        let mut names = self.names_of_objects()?;
        for file in self.archives.iter().filter(|file| file.name == SUPPORT) {
            names.extend(names_of_archive(file)?);
        }
        Ok(names)
    }

    fn names_of_objects(&self) -> Result<BTreeSet<String>, RuntimeError> {
        let mut names = BTreeSet::new();
        for file in &self.objects {
            let object = elf::relocatable(&read(&file.path)?).map_err(|cause| error(&file.path, cause))?;
            let seen = object.defined.into_iter().filter(|symbol| symbol.binding != elf::Binding::Local);
            names.extend(seen.map(|symbol| symbol.name));
        }
        Ok(names)
    }

    fn files(&self) -> impl Iterator<Item = &RuntimeFile> {
        self.libraries.iter().chain(&self.archives).chain(&self.objects)
    }
}

fn names_of_archive(file: &RuntimeFile) -> Result<Vec<String>, RuntimeError> {
    let data = read(&file.path)?;
    let index = archive::symbol_index(&data).map_err(|cause| error(&file.path, cause))?;
    Ok(index.into_iter().map(|entry| entry.name.to_owned()).collect())
}

fn read(path: &Path) -> Result<Vec<u8>, RuntimeError> {
    std::fs::read(path).map_err(|cause| error(path, cause))
}

fn error(path: &Path, cause: impl ToString) -> RuntimeError {
    RuntimeError { path: path.to_owned(), cause: cause.to_string() }
}
