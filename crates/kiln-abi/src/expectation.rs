//! What a file should be.

use std::collections::{BTreeMap, BTreeSet};

use kiln_format::MajorMinor;
use kiln_format::variant::{ArchFramework, ArchVariant, Compute, Cpu, Os, Variant};
use kiln_object::elf::{Binding, Relocatable};
use kiln_object::macho::SystemVersion;
use kiln_object::names::PythonVersion;

use crate::policy::Policy;

/// How strict to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// An extension that a loader imports: every rule.
    Extension,
    /// A library that others link with, such as torch's own: what its loader must find on an old system. It may export, need
    /// other libraries and have a run path.
    Library,
}

impl Profile {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Extension => "extension",
            Self::Library => "library",
        }
    }
}

/// The ABI that an extension speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// Torch's C++ ABI.
    Torch,
    /// Torch's stable ABI of this version.
    TorchStable(MajorMinor),
    /// That of tvm-ffi.
    TvmFfi,
}

/// Whether a library, by its SONAME, exports a name. None when it is not known what the library exports.
pub type KnownNames<'a> = dyn Fn(&str, &str) -> Option<bool> + 'a;

/// What a file should be, and what is known beside it.
#[derive(Clone, Copy)]
pub struct Expectation<'a> {
    /// How strict to be.
    pub profile: Profile,
    /// The policy whose floor holds; none where a build was told to use its host's libraries.
    pub floor: Option<&'a Policy>,
    /// The ABI, where it is known.
    pub framework: Option<Framework>,
    /// What runs the kernel, where it is known.
    pub compute: Option<Compute>,
    /// The processor and the system, where they are known.
    pub platform: Option<(Cpu, Os)>,
    /// The ops id, where it is known: the extension's entry point ends with it.
    pub id: Option<&'a str>,
    /// The oldest supported Python.
    pub python: PythonVersion,
    /// The oldest macOS that a file for it may ask for; none for that which loaders take a variant on.
    pub macos: Option<SystemVersion>,
    /// Libraries that may be needed beyond those that are always allowed.
    pub allowed_libraries: &'a BTreeSet<String>,
    /// What torch's libraries and the like export.
    pub known_names: &'a KnownNames<'a>,
    /// The objects that the file was linked from.
    pub origins: &'a Origins,
    /// Directories of the build machine, which must not be inside.
    pub host_paths: &'a [String],
    /// Whether the file is of Kiln's own making: what is doubtful in the file of another is then an error.
    pub own: bool,
}

impl<'a> Expectation<'a> {
    /// The same for the files of a variant: framework, compute and platform as its name says.
    #[must_use]
    pub fn for_variant(self, variant: &Variant) -> Self {
        match variant {
            Variant::Noarch(_) => self,
            Variant::Arch(ArchVariant { framework, compute, cpu, os }) => Self {
                framework: Some(match framework {
                    ArchFramework::TorchCxx { .. } => Framework::Torch,
                    ArchFramework::TorchStable { version } => Framework::TorchStable(*version),
                    ArchFramework::TvmFfi { .. } => Framework::TvmFfi,
                }),
                compute: Some(*compute),
                platform: Some((*cpu, *os)),
                ..self
            },
        }
    }

    /// The same for a file that is not the extension itself, but comes with it.
    #[must_use]
    pub fn without_id(self) -> Self {
        Self { id: None, ..self }
    }
}

/// What an object contributed to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It wants the name.
    Wants,
    /// It defines the name.
    Defines,
}

/// Which object brought which name into a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    wants: BTreeMap<String, Vec<String>>,
    defines: BTreeMap<String, Vec<String>>,
}

impl Origins {
    /// The origins in a link of these objects, given with their labels in link order.
    pub fn new<'o>(objects: impl IntoIterator<Item = (&'o str, &'o Relocatable)>) -> Self {
        let mut origins = Self::default();
        for (label, object) in objects {
            for symbol in &object.undefined {
                origins.wants.entry(symbol.name.clone()).or_default().push(label.to_owned());
            }
            for symbol in object.defined.iter().filter(|symbol| symbol.binding != Binding::Local) {
                origins.defines.entry(symbol.name.clone()).or_default().push(label.to_owned());
            }
        }
        origins
    }

    /// Labels of the objects that want or define `name`, in link order.
    pub fn of(&self, cause: Cause, name: &str) -> Vec<String> {
        let map = match cause {
            Cause::Wants => &self.wants,
            Cause::Defines => &self.defines,
        };
        map.get(name).cloned().unwrap_or_default()
    }
}
