//! A seventh backend, to show what one more vendor costs: its crate, and the few places of [`PLACES`].
//!
//! A copy of the workspace gets the crate `xtask/seventh/kiln-acme` and these places, and nothing else. That it compiles shows that no other file
//! needs to know of a vendor; its tests, that a kernel for it is built, linked, checked and recorded like any other.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::stages::Counts;
use crate::test::cargo_tests;
use crate::workspace::{self, Workspace};

/// Where the crate and its tests are.
const DIR: &str = "xtask/seventh";
/// The crate.
const CRATE: &str = "kiln-acme";
/// Its tests, which belong to the program.
const TESTS: &str = "acme.rs";

/// A text of a file, and what stands there when the vendor is added.
struct Place {
    file: &'static str,
    text: &'static str,
    with: &'static str,
}

const fn place(file: &'static str, text: &'static str, with: &'static str) -> Place {
    Place { file, text, with }
}

const FORMAT: &str = "crates/kiln-format/src/";

/// All of them: name, compute prefix and keys, the dependency, and the line where vendors are listed.
const PLACES: [Place; 17] = [
    place(
        "crates/kiln-format/src/backend.rs",
        "pub enum BackendName {\n",
        "pub enum BackendName {\n    /// What only tests have.\n    Acme,\n",
    ),
    place("crates/kiln-format/src/backend.rs", "pub const ALL: [Self; 8] = [", "pub const ALL: [Self; 9] = [Self::Acme, "),
    place(
        "crates/kiln-format/src/backend.rs",
        "            Self::Cann => \"cann\",\n",
        "            Self::Acme => \"acme\",\n            Self::Cann => \"cann\",\n",
    ),
    place(
        "crates/kiln-format/src/variant/mod.rs",
        "pub enum Compute {\n",
        "pub enum Compute {\n    /// What only tests have, with its version.\n    Acme(MajorMinor),\n",
    ),
    place(
        "crates/kiln-format/src/variant/mod.rs",
        "            BackendName::Cann => Self::Cann(version),\n",
        "            BackendName::Acme => Self::Acme(version),\n            BackendName::Cann => Self::Cann(version),\n",
    ),
    place(
        "crates/kiln-format/src/variant/mod.rs",
        "            Self::Cann(_) => BackendName::Cann,\n",
        "            Self::Acme(_) => BackendName::Acme,\n            Self::Cann(_) => BackendName::Cann,\n",
    ),
    place("crates/kiln-format/src/variant/mod.rs", "Self::Cuda(version) | ", "Self::Acme(version) | Self::Cuda(version) | "),
    place(
        "crates/kiln-format/src/variant/grammar.rs",
        "        \"cu\" => Some(Compute::Cuda(version)),\n",
        "        \"acme\" => Some(Compute::Acme(version)),\n        \"cu\" => Some(Compute::Cuda(version)),\n",
    ),
    place(
        "crates/kiln-format/src/build/model.rs",
        "pub enum KernelOptions {\n",
        "pub enum KernelOptions {\n    /// For Acme.\n    Acme {\n        /// `acme-flags`: for the device compiler.\n        flags: Vec<Spanned<String>>,\n    },\n",
    ),
    place(
        "crates/kiln-format/src/build/model.rs",
        "            Self::Cuda { flags, .. } | ",
        "            Self::Acme { flags } | Self::Cuda { flags, .. } | ",
    ),
    place(
        "crates/kiln-format/src/build/checks.rs",
        "        KernelOptions::Cpu | ",
        "        KernelOptions::Acme { .. } | KernelOptions::Cpu | ",
    ),
    place(
        "crates/kiln-format/src/build/tables/kernel.rs",
        "        BackendName::Cuda => KernelOptions::Cuda {\n",
        "        BackendName::Acme => KernelOptions::Acme { flags: values::flags(reader, table, \"acme-flags\") },\n        BackendName::Cuda => KernelOptions::Cuda {\n",
    ),
    place("crates/kiln-format/src/build/v5.rs", "    kernels: &[\n", "    kernels: &[\n        (BackendName::Acme, &[\"acme-flags\"]),\n"),
    place(
        "crates/kiln-format/src/build/v5.rs",
        "    (\"kernel.* (cuda)\", \"",
        "    (\"kernel.* (acme)\", \"Keys of Acme kernels beyond those.\"),\n    (\"kernel.* (cuda)\", \"",
    ),
    place("Cargo.toml", "kiln-backend = {", "kiln-acme = { path = \"crates/kiln-acme\", version = \"0.1.0\" }\nkiln-backend = {"),
    place("crates/kiln/Cargo.toml", "kiln-backend.workspace = true\n", "kiln-acme.workspace = true\nkiln-backend.workspace = true\n"),
    place(
        "crates/kiln/src/backends.rs",
        "    &kiln_cuda::CudaToolkits,\n",
        "    &kiln_cuda::CudaToolkits,\n    &kiln_acme::AcmeToolkits,\n",
    ),
];

/// `text` of a file with the vendor's places in it.
fn with_places(file: &str, mut text: String) -> anyhow::Result<String> {
    for place in PLACES.iter().filter(|place| place.file == file) {
        if text.matches(place.text).count() != 1 {
            bail!("`{file}` does not have `{}` once: `xtask/src/seventh.rs` says where a vendor is added", place.text.trim());
        }
        text = text.replace(place.text, place.with);
    }
    Ok(text)
}

/// The files of [`PLACES`], each once.
fn files() -> Vec<&'static str> {
    let mut files: Vec<&str> = PLACES.iter().map(|place| place.file).collect();
    files.dedup();
    files
}

/// That the places are where they should be, and no others than a vendor may have.
pub(crate) fn check_places(workspace: &Workspace) -> anyhow::Result<()> {
    for file in files() {
        if !file.starts_with(FORMAT) && !["Cargo.toml", "crates/kiln/Cargo.toml", "crates/kiln/src/backends.rs"].contains(&file) {
            bail!("`{file}` is no place where a vendor is added");
        }
        with_places(file, std::fs::read_to_string(workspace.root.join(file)).with_context(|| format!("cannot read `{file}`"))?)?;
    }
    Ok(())
}

/// Adds the vendor to a copy of the workspace, and runs its tests there.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    check_places(workspace)?;
    let dir = workspace.target.join("seventh");
    let (tree, target) = (dir.join("workspace"), dir.join("target"));
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    for file in workspace.tracked_files()? {
        copy(&workspace.root.join(&file), &tree.join(&file))?;
    }
    for file in files() {
        let path = tree.join(file);
        std::fs::write(&path, with_places(file, std::fs::read_to_string(&path)?)?)?;
    }
    workspace.copy_tracked(&workspace.root.join(DIR).join(CRATE), &tree.join("crates").join(CRATE))?;
    copy(&workspace.root.join(DIR).join(TESTS), &tree.join("crates/kiln/tests").join(TESTS))?;
    share_cache(workspace, &target)?;
    let mut test = workspace::cargo();
    // The lock file of the workspace does not have the crate.
    test.current_dir(&tree).args(["test", "--offline", "--package", "kiln", "--test", "acme", "--target-dir"]).arg(&target);
    cargo_tests(&mut test)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to.parent().context("a file lies in a directory")?)?;
    std::fs::copy(from, to).with_context(|| format!("cannot copy `{}`", from.display()))?;
    Ok(())
}

/// Lets its tests use what the tests of the workspace have fetched.
fn share_cache(workspace: &Workspace, target: &Path) -> anyhow::Result<()> {
    let (known, link) = (workspace.target.join("tmp/kiln-cache"), target.join("tmp/kiln-cache"));
    std::fs::create_dir_all(target.join("tmp"))?;
    if known.is_dir() && std::fs::symlink_metadata(&link).is_err() {
        std::os::unix::fs::symlink(&known, &link)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_must_be_there_once() {
        assert!(with_places("Cargo.toml", "kiln-backend = { path = \"x\" }".to_owned()).unwrap().starts_with("kiln-acme"));
        assert!(with_places("Cargo.toml", String::new()).is_err());
        assert!(with_places("Cargo.toml", "kiln-backend = {\nkiln-backend = {".to_owned()).is_err());
        assert_eq!(with_places("README.md", "x".to_owned()).unwrap(), "x");
    }
}
