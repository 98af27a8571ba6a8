//! Stubs for linkers of macOS: text.

use std::path::Path;
use std::sync::Arc;

use kiln_graph::{Builtin, BuiltinContext, BuiltinError};
use kiln_object::elf::Relocatable;
use kiln_object::macho::{self, tbd};

use super::{LinkNames, look_up, write};

/// The C++ library of macOS.
pub const CXX_LIBRARY: &str = "/usr/lib/libc++.1.dylib";

/// The file name of the stub of a library, by what those who link with it record: `libc10.tbd` of `@rpath/libc10.dylib`.
pub fn tbd_name(install_name: &str) -> String {
    let name = install_name.rsplit('/').next().unwrap_or(install_name);
    format!("{}.tbd", name.strip_suffix(".dylib").unwrap_or(name))
}

/// The builtin that reads the objects of an extension for macOS and writes a stub for every library of `names.linked`, as
/// [`link_stubs`](super::link_stubs) does for Linux: same inputs, same errors, outputs called by [`tbd_name`]. Linkers leave out a library
/// that nothing is wanted of when they are told to (`-dead_strip_dylibs`).
pub fn link_tbds(names: Arc<LinkNames>, labels: Vec<String>) -> Builtin {
    let mut key = names.identity();
    for label in &labels {
        key.push('\n');
        key.push_str(label);
    }
    Builtin { name: "link-tbds", version: 1, key, run: Arc::new(move |context| run(&names, &labels, context)) }
}

fn run(names: &LinkNames, labels: &[String], context: &BuiltinContext<'_>) -> Result<(), BuiltinError> {
    for (library, wanted) in names.linked.iter().zip(look_up(names, labels, context, read)?) {
        let symbols: Vec<String> = wanted.into_iter().map(|wanted| wanted.name).collect();
        write(context, &tbd_name(&library.soname), tbd::write(&library.soname, names.machine, &symbols).as_bytes())?;
    }
    Ok(())
}

fn read(label: &str, path: &Path) -> Result<Relocatable, BuiltinError> {
    let failed = |cause: String| BuiltinError::new("object", format!("cannot read the object of `{label}`: {cause}"));
    let data = std::fs::read(path).map_err(|cause| failed(cause.to_string()))?;
    macho::relocatable(&data).map_err(|cause| failed(cause.to_string()))
}
