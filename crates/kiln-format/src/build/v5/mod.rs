//! Edition 5: its keys, its checks, and the model made from it.
//!
//! The model is shaped after this edition, so its values are made while walking and need no conversion afterwards.

mod framework;
mod general;
mod kernel;
mod keys;

use super::checks;
use super::model::Contents;
use super::reader::{Reader, Table};

/// Checks the document `root` and makes the model of it. `None` only after an error was said.
pub(super) fn read<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> Option<Contents> {
    keys::check(reader, root, keys::ROOT);
    let (general, backends) = match root.get("general") {
        Some(entry) => general::read(reader, entry),
        None => (reader.missing(root, "general", "[general]"), None),
    };
    let framework = framework::read(reader, root);
    let kernels = kernel::read_all(reader, root);
    // What concerns several tables is checked as soon as those parts are right that it looks at.
    if let (Some(backends), Some(framework), Some(kernels)) = (&backends, &framework, &kernels) {
        checks::components(reader, backends, framework.kind, kernels);
    }
    let kernels = kernels?.into_iter().map(|kernel| kernel.contents).collect::<Option<Vec<_>>>();
    Some(Contents { general: general?, framework: framework?.contents?, kernels: kernels? })
}
