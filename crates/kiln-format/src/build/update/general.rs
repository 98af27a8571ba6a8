//! Keys of `[general]` that every file has now and older ones may lack.

use super::editor::Editor;
use super::{UpdateError, string};
use crate::build::model::Build;

const NAME: [&str; 2] = ["general", "name"];
const VERSION: [&str; 2] = ["general", "version"];
const EDITION: [&str; 2] = ["general", "edition"];

/// Where new keys go: behind `version`, or behind `name`.
fn anchor(editor: &Editor<'_>) -> [&'static str; 2] {
    if editor.has(&VERSION) { VERSION } else { NAME }
}

/// Makes the file say that it is of edition `number`.
pub(in crate::build) fn name_edition(editor: &mut Editor<'_>, number: u64) {
    let number = number.to_string();
    if editor.has(&EDITION) {
        editor.set(&EDITION, &number);
    } else {
        editor.add_after(&anchor(editor), "edition", &number);
    }
}

/// The same, and the version and the license as well where they are missing.
///
/// # Errors
/// When the file has no license and `license` gives none.
pub(in crate::build) fn complete(editor: &mut Editor<'_>, build: &Build, license: Option<&str>, number: u64) -> Result<(), UpdateError> {
    if !editor.has(&VERSION) {
        editor.add_after(&NAME, "version", &build.general.version.to_string());
    }
    name_edition(editor, number);
    if build.general.license.is_none() {
        let license = license.ok_or(UpdateError::NoLicense)?;
        editor.add_after(&anchor(editor), "license", &string(license));
    }
    Ok(())
}

/// Adds `key = value` to `[general]`, behind those.
pub(in crate::build) fn add(editor: &mut Editor<'_>, key: &str, value: &str) {
    editor.add_after(&anchor(editor), key, value);
}
