//! Reading the tables that several editions share; which keys they have there is each edition's [`Schema`].

mod framework;
mod general;
mod kernel;
mod keys;

use super::checks::{self, Component};
use super::model::Contents;
use super::reader::{Reader, Table};

pub(super) use self::framework::read as framework;
pub(super) use self::general::{FIRST_VERSION, hub};
pub(super) use self::kernel::{contents as kernel_contents, named as kernel_table, read_all as kernels};
pub(super) use self::keys::Schema;

/// Checks the document `root` by `schema` and makes the model of it. `None` only after an error was said.
pub(super) fn read<'a>(reader: &mut Reader<'a>, root: &Table<'a>, schema: &Schema) -> Option<Contents> {
    let kernels = kernel::read_all(reader, root, schema);
    read_with(reader, root, schema, kernels)
}

/// The same for an edition that reads its kernels itself; `None` for kernels of which one does not say its backend.
pub(super) fn read_with<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    schema: &Schema,
    kernels: Option<Vec<Component>>,
) -> Option<Contents> {
    schema.check(reader, root, schema.root);
    let (general, backends) = match root.get("general") {
        Some(entry) => general::read(reader, entry, schema),
        None => (reader.missing(root, "general", "[general]"), None),
    };
    let framework = framework::read(reader, root, schema);
    // What concerns several tables is checked as soon as those parts are right that it looks at.
    if let (Some(backends), Some(framework), Some(kernels)) = (&backends, &framework, &kernels) {
        checks::components(reader, backends, framework.kind, kernels);
    }
    let kernels = kernels?.into_iter().map(|kernel| kernel.contents).collect::<Option<Vec<_>>>();
    Some(Contents { general: general?, framework: framework?.contents?, kernels: kernels? })
}
