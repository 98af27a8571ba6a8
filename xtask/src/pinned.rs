//! Torch releases that the catalog lacks: pinned by one `toolchain add`, built with, and built with again without a network.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::kiln::Kiln;
use crate::process;
use crate::stages::Counts;
use crate::workspace::Workspace;

/// Releases that the index has and the catalog does not.
const RELEASES: [&str; 2] = ["2.12.0", "2.14.0"];

/// Pins each release in a copy of `relu` and builds it twice. Counts builds.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let kiln = Kiln::build(workspace)?;
    let scratch = tempfile::tempdir()?;
    let original = workspace.examples()?.into_iter().find(|dir| dir.ends_with("relu")).context("there is no example `relu`")?;
    let mut counts = Counts { passed: 0, failed: 0 };
    for release in RELEASES {
        let project = scratch.path().join(release);
        workspace.copy_tracked(&original, &project)?;
        // An empty cache: what is offline comes from the one reading.
        let cache = scratch.path().join(format!("cache-{release}"));
        let run = |args: &[&str]| process::aloud(command(&kiln, &project, &cache).args(args));
        run(&["toolchain", "add", &format!("torch=={release}")])?.check()?;
        for offline in [&[][..], &["--frozen"]] {
            let built = run(&[&["build", "--torch", release], offline].concat())?;
            let record = std::fs::read_to_string(project.join("build/kiln-build.json")).unwrap_or_default();
            let right = built.check().is_ok() && record.contains(&format!("\"torch\": \"{release}\""));
            if !right {
                println!("`relu` was not built with torch {release}");
            }
            counts.passed += usize::from(right);
            counts.failed += usize::from(!right);
            for made in ["build", ".kiln"] {
                std::fs::remove_dir_all(project.join(made))?;
            }
        }
    }
    Ok(counts)
}

fn command(kiln: &Kiln, project: &Path, cache: &Path) -> Command {
    let mut command = kiln.command();
    command.current_dir(project).arg("--cache-dir").arg(cache);
    command
}
