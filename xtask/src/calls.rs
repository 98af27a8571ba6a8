//! Calling built kernels of tvm-ffi through `kiln call`: their numbers without Python, and what loads without a device.

use anyhow::{Context as _, bail};
use kiln_toolchain::Catalog;
use serde_json::Value;

use crate::build_kernels::Stage;
use crate::kiln::Kiln;
use crate::prove::Case;
use crate::setup::{self, sycl::sycl};
use crate::test_python::Which;
use crate::workspace::{Workspace, file_name};

/// How far a variant gets with the oldest and the newest runtime of the catalog, each with its name.
///
/// One for this processor makes all calls of the project's `tests/reference.toml`; another one is loaded, and lists its functions.
pub(crate) fn prove(workspace: &Workspace, kiln: &Kiln, case: &Case) -> anyhow::Result<Vec<(String, Stage)>> {
    let mut reached = Vec::new();
    let shim = (case.backend == "xpu").then(|| sycl(workspace)).transpose()?;
    for release in releases()? {
        let mut command = kiln.command();
        command.arg("call").arg(case.project.join("build").join(&case.variant)).args(["--runtime", &release, "--format", "json"]);
        if let Some(shim) = &shim {
            shim.run(&mut command);
        }
        if case.backend == "rocm" {
            command.env("LD_LIBRARY_PATH", setup::amd_run_time(workspace)?);
        }
        if !case.runs {
            command.arg("--list");
        }
        let result = command.output().context("cannot run `kiln call`")?;
        let report = String::from_utf8_lossy(&result.stdout);
        let found = if result.status.success() { proven(&report, case) } else { Err(anyhow::anyhow!("{}", result.status)) };
        let stage = found.unwrap_or_else(|error| {
            println!(
                "`kiln call` of {} with tvm-ffi {release}: {error:#}\n{report}{}",
                case.variant,
                String::from_utf8_lossy(&result.stderr)
            );
            Stage::Linked
        });
        reached.push((format!("kiln call, tvm-ffi {release}"), stage));
    }
    Ok(reached)
}

/// The oldest and the newest release of the catalog.
fn releases() -> anyhow::Result<[String; 2]> {
    let catalog = Catalog::embedded()?;
    let version = |which: Which| anyhow::Ok(which.of_catalog(&catalog)?.version.to_string());
    Ok([version(Which::Oldest)?, version(Which::Newest)?])
}

/// What a report of `kiln call` shows.
fn proven(report: &str, case: &Case) -> anyhow::Result<Stage> {
    let report: Value = serde_json::from_str(report).context("it wrote no JSON")?;
    let list = |name: &str| report[name].as_array().map(Vec::as_slice);
    if !case.runs {
        let functions = list("functions").unwrap_or_default();
        return if functions.is_empty() { bail!("it lists no functions") } else { Ok(Stage::Loaded) };
    }
    let Some(calls) = list("calls") else { bail!("`{}` has no tests/reference.toml", file_name(&case.project)) };
    match calls.iter().filter(|call| call["ok"] == true && call["compared"] == true).count() {
        0 => bail!("nothing was compared"),
        _ if calls.iter().all(|call| call["ok"] == true) => Ok(Stage::Ran),
        _ => bail!("a call is not as expected"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(runs: bool) -> Case {
        Case { project: "p".into(), variant: "v".to_owned(), backend: "cpu".to_owned(), runs }
    }

    #[test]
    fn only_what_was_compared_has_run() {
        let of = |report: &str| proven(report, &case(true)).map_err(|error| error.to_string());
        assert_eq!(of(r#"{"calls": [{"ok": true, "compared": true}, {"ok": true, "compared": false}]}"#), Ok(Stage::Ran));
        for (report, said) in [
            (r#"{"calls": [{"ok": true, "compared": false}]}"#, "nothing was compared"),
            (r#"{"calls": []}"#, "nothing was compared"),
            (r#"{"calls": [{"ok": true, "compared": true}, {"ok": false, "compared": true}]}"#, "a call is not as expected"),
            (r#"{"functions": [{"name": "f"}]}"#, "`p` has no tests/reference.toml"),
            ("", "it wrote no JSON"),
        ] {
            assert_eq!(of(report), Err(said.to_owned()), "{report}");
        }
    }

    #[test]
    fn what_is_loaded_has_functions() {
        assert_eq!(proven(r#"{"functions": [{"name": "f"}]}"#, &case(false)).unwrap(), Stage::Loaded);
        assert!(proven(r#"{"functions": []}"#, &case(false)).is_err());
    }

    #[test]
    fn both_ends_of_the_catalog_are_called() {
        let [oldest, newest] = releases().unwrap();
        assert!(oldest == "0.1.9" && newest != oldest, "{oldest} {newest}");
    }
}
