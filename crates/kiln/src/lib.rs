//! Hub-loadable GPU kernels from a build.toml.
//!
//! Where to start: [`build::Checked`] opens a project and checks it, [`build::prepare`] chooses variants, provides toolchains and
//! plans the graph, [`build::run`] runs it and puts variants in place. What happens meanwhile is one stream of [`Event`]s.

pub mod arch;
pub mod backends;
pub mod build;
pub mod build_error;
pub mod call;
pub mod check;
pub mod compiler_messages;
pub mod compiler_text;
pub mod config_check;
pub mod dependencies;
pub mod disk;
pub mod doctor;
pub mod event;
pub mod floor;
pub mod frameworks;
pub mod git;
pub mod globs;
pub mod hash;
pub mod host;
pub mod known_projects;
pub mod lock_file;
pub mod matrix;
pub mod ops_id;
pub mod ops_py;
pub mod out_dir;
pub mod package;
pub mod plan;
pub mod project;
pub mod record;
pub mod replace;
pub mod settings_file;
pub mod shipped;
pub mod small_file;
pub mod stale;
pub mod update_build;

pub use crate::build_error::BuildError;
pub use crate::event::Event;
