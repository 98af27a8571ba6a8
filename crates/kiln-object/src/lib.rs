//! Reading and writing object files: what is in them, never whether that is allowed.
//!
//! [`elf::relocatable`] tells what a `.o` file defines and wants, [`elf::dynamic`] what a shared library exports, imports and
//! needs ([`elf::dynamic_file`] does the same without holding the file in memory), and [`exports`] what a library of any format
//! offers; [`macho`] is the same for macOS, with what its loader is told. [`archive`] looks into static libraries, [`fatbin`],
//! [`offload`] and [`sycl`] tell what device code a file holds, [`stub`] writes shared libraries
//! that hold names and no code, and [`demangle`] turns C++ symbols into text. [`baseline`] and
//! [`names`] are data: what old system libraries export, and whose a name is.
//!
//! All input is untrusted: damage is an [`Error`], never a panic. Policies (which names may be used, which libraries
//! may be needed) live in other crates.

pub mod archive;
pub mod baseline;
pub mod demangle;
pub mod elf;
mod error;
pub mod exports;
pub mod fatbin;
pub mod macho;
pub mod names;
pub mod offload;
pub mod stub;
pub mod sycl;

pub use error::Error;
