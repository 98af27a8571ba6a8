//! Policies about object files, and findings against them.
//!
//! [`check_variant`] looks at a whole variant directory, [`check_file`] at one file by its content, [`check_elf`] at the dynamic
//! tables of a shared object, [`check_macho`] at what one tells the loader of macOS. Each takes an [`Expectation`] that says what the file should be, and fills a [`Report`]: a
//! [`Finding`] is a fact that was established against a file, with its [`Rule`], the evidence, the object that caused it and the
//! fix; a [`Failure`] says that a check could not run. Neither is ever a pass.
//!
//! Nothing here runs a program, prints, or reads anything but the files it is given. What a file takes from other libraries is
//! read from its dynamic tables only, so that a stripped copy gives the findings of the original.

mod directory;
mod elf;
mod expectation;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod libraries;
mod macho;
mod policy;
mod report;
mod rule;
pub mod shims;
mod systems;

pub use directory::{Shape, check_variant};
pub use elf::check_elf;
pub use expectation::{Cause, Expectation, Framework, KnownNames, Origins, Profile};
pub use file::check_file;
pub use kiln_object::names::PythonVersion;
pub use macho::check_macho;
pub use policy::{DEFAULT_POLICY, Policies, Policy, PolicyError};
pub use report::{Failure, FailureKind, Finding, Report};
pub use rule::{Rule, UnknownRule};

/// What the tables were made from, by table.
pub const DATA_SOURCES: &[(&str, &str)] = &[
    ("manylinux-policy", policy::SOURCE),
    ("baseline", "glibc, libstdc++ and libgcc_s of manylinux_2_28 and manylinux_2_34"),
    ("python-stable-abi", kiln_object::names::PYTHON_TABLE_SOURCE),
    ("torch-shims", shims::SOURCE),
];
