//! `kiln-test-torch SITE_PACKAGES [OUT_DIR]`: makes what the torch in SITE_PACKAGES misses of CUDA, for tests only.
//!
//! Without OUT_DIR the libraries go where that torch finds them by itself. Prints one line per library.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

#[expect(clippy::print_stdout, reason = "a program's result")]
fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let site_packages = args.next().context("usage: kiln-test-torch SITE_PACKAGES [OUT_DIR]")?;
    let dir = match args.next() {
        Some(dir) => dir,
        None => kiln_test_torch::library_dir(&site_packages)?,
    };
    let missing = kiln_test_torch::missing(&site_packages)?;
    for path in kiln_test_torch::build(&missing, &dir, Path::new("cc"))? {
        println!("made for tests: {}", path.display());
    }
    Ok(())
}
