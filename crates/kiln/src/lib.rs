//! Hub-loadable GPU kernels from a build.toml.

pub mod git;
pub mod ops_py;
pub mod record;
pub mod replace;
