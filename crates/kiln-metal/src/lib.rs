//! The metal backend: shaders for Apple's GPUs, and extensions for macOS.
//!
//! A shader (`.metal`) becomes `.air`, all of a variant become one metallib, and a generated header embeds that into the host's part,
//! which is C++, Objective-C and Objective-C++.
//!
//! | module | its job |
//! |---|---|
//! | `settings` | the oldest macOS and the language of shaders |
//! | `toolkit` | what an installation of Apple's tools is, and why one cannot be used |
//! | `toolkits` | where one comes from |
//! | `shaders` | from `.metal` files to the header that embeds what was made of them |
//! | `header` | the text of that header |
//! | `backend` | all of it together, as a [`Backend`](kiln_backend::Backend) |

mod backend;
mod header;
mod settings;
mod shaders;
mod toolkit;
mod toolkits;

pub use backend::{MetalBackend, frameworks};
pub use settings::{MetalSettings, SettingError};
pub use shaders::{ShaderGroup, is_shader};
pub use toolkit::{MetalToolkit, MissingMetal, search_path};
pub use toolkits::MetalToolkits;
