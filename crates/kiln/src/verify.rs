//! What a linked extension must be before it is packaged.

use std::path::{Path, PathBuf};

use kiln_format::OpsId;
use kiln_object::elf;
use thiserror::Error;

/// Why a linked extension is not packaged.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The file cannot be read as a shared object.
    #[error("failed to read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: kiln_object::Error,
    },
    /// Python would not find the module's entry point.
    #[error("the extension does not define `PyInit_{id}`, by which Python loads it")]
    NoEntryPoint {
        /// The ops id.
        id: String,
    },
    /// The entry point has a name that Python does not look for.
    #[error("the extension defines {}, but Python looks for `PyInit_{id}`", found.join(", "))]
    OtherEntryPoint {
        /// The ops id.
        id: String,
        /// The entry points that there are, each in backquotes.
        found: Vec<String>,
    },
    /// The extension offers names to others, which two extensions in one process would share by accident.
    #[error("the extension exports {}: only its entry point may be visible", names.join(", "))]
    Exports {
        /// The names, each in backquotes.
        names: Vec<String>,
    },
    /// The extension would look for libraries in a directory of the machine that built it.
    #[error("the extension has the run path `{path}`, a directory of this machine")]
    RunPath {
        /// The path.
        path: String,
    },
}

impl VerifyError {
    /// A stable name for programs and searches.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "object",
            Self::NoEntryPoint { .. } | Self::OtherEntryPoint { .. } => "entry-point",
            Self::Exports { .. } => "exports",
            Self::RunPath { .. } => "run-path",
        }
    }

    /// What the author can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unreadable { .. } => return None,
            Self::NoEntryPoint { .. } => {
                "put `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)` and `#include \"registration.h\"` into one of the [torch] sources"
            }
            Self::OtherEntryPoint { .. } => "write `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)`: the name is made for each build",
            Self::Exports { .. } => "write one `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)` and no other entry point",
            Self::RunPath { .. } => "remove the flag that sets it: torch brings its libraries along",
        };
        Some(hint.to_owned())
    }
}

/// Checks that the extension in `file` can be imported under `id` and carries nothing of the machine that built it.
///
/// # Errors
/// The first rule that it breaks.
pub fn verify_extension(file: &Path, id: &OpsId) -> Result<(), VerifyError> {
    let dynamic = elf::dynamic_file(file).map_err(|source| VerifyError::Unreadable { path: file.to_owned(), source })?;
    let entry = format!("PyInit_{id}");
    if !dynamic.exports.iter().any(|export| export.name == entry) {
        let id = id.to_string();
        let entries = dynamic.exports.iter().filter(|export| export.name.starts_with("PyInit_"));
        let found: Vec<String> = entries.map(|export| format!("`{}`", export.name)).collect();
        return Err(if found.is_empty() { VerifyError::NoEntryPoint { id } } else { VerifyError::OtherEntryPoint { id, found } });
    }
    let others: Vec<String> =
        dynamic.exports.iter().filter(|export| export.name != entry).map(|export| format!("`{}`", export.name)).collect();
    if !others.is_empty() {
        return Err(VerifyError::Exports { names: others });
    }
    if let Some(path) = dynamic.rpath.iter().chain(&dynamic.runpath).next() {
        return Err(VerifyError::RunPath { path: path.clone() });
    }
    Ok(())
}
