//! Types of the interfaces, as their headers have them. `cargo xtask codegen` writes them.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    reason = "names and forms are those of the headers"
)]

pub(super) mod cuda;
pub(super) mod hip;
pub(super) mod level_zero;
pub(super) mod tvm_ffi;
