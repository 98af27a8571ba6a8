//! Hub-loadable GPU kernels from a build.toml.

pub mod config_check;
pub mod git;
pub mod hash;
pub mod matrix;
pub mod ops_id;
pub mod ops_py;
pub mod package;
pub mod project;
pub mod record;
pub mod replace;
pub mod settings_file;
pub mod shipped;
