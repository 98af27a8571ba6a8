//! What a `build.rs` of somebody's does with a backend: compile sources into a static library for a Rust crate.
//!
//! ```no_run
//! # use kiln_backend::build_script::{Build, BuildError, Cargo, Vendor};
//! # fn build_script<Cpu: Vendor>() -> Result<(), BuildError> {
//! let cargo = Cargo::new(std::env::vars_os())?;
//! let library = Build::<Cpu>::new(&cargo).file("src/sum.cpp").include("include").compile("sum")?;
//! print!("{library}");
//! # Ok(())
//! # }
//! ```
//!
//! The builder is one for all vendors: each backend crate has it as its own `Build`. It describes steps, and the executor of
//! `kiln-graph` runs them, so that what holds for `kiln build` holds here: what is up to date is decided by content, results are shared
//! through the user's action cache, and jobs are taken from cargo's job server.
//!
//! Nothing here reads the environment or prints. A build script gives its environment to [`Cargo::new`], which says what is read of it,
//! and prints the [`Library`] that it gets.
//!
//! | module | its job |
//! |---|---|
//! | `cargo` | what cargo tells a build script, and what is read of the rest of its environment |
//! | `builder` | [`Build`]: what is to be compiled |
//! | `vendor` | what a backend crate adds |
//! | `places` | paths as a build script writes them, below roots |
//! | `run` | from the description to the archive |
//! | `archive` | the step that makes a static library of objects |
//! | `library` | what was made, and the lines that tell cargo of it |
//! | `error` | why there is none |

mod archive;
mod builder;
mod cargo;
mod error;
mod library;
mod places;
mod run;
mod vendor;

pub use builder::Build;
pub use cargo::Cargo;
pub use error::{BuildError, StepFailure};
pub use library::Library;
pub use vendor::{DeviceCode, DeviceOptions, Provided, Request, Vendor};
