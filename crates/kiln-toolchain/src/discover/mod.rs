//! What a machine has, as data: vendors' toolkits, C++ compilers, Pythons, and its distribution.
//!
//! Everything is found over a [`View`]: a root directory and an environment, both values of the caller's. Nothing here starts a
//! process, so that looking is cheap and has no effect. The order is that of all system discovery: the command line, the
//! environment, `PATH`, then the usual places. A candidate is complete, or it names what it lacks; what was named and is not there
//! is told too. The tables of each vendor, with where things lie and which variables name them, stand in [`kits`](self::KitKind).

pub mod apple;
mod compilers;
mod distribution;
mod files;
mod find;
mod identity;
mod kits;
mod loaded;
mod named;
mod packages;
mod pythons;
mod versions;
mod view;

pub use self::compilers::{CompilerCandidate, compilers};
pub use self::distribution::{Distribution, PackageManager};
pub use self::find::{Candidate, Findings, FoundPart, Lack, Origin, Passed, find, of_this_machine};
pub use self::identity::identity;
pub use self::kits::KitKind;
pub use self::loaded::loaded_beside;
pub use self::named::STARTER;
pub use self::packages::Need;
pub use self::pythons::{PythonCandidate, PythonLayout, pythons};
pub use self::versions::clang_release;
pub use self::view::View;
