//! How far each variant of the examples was proven, and by which tools: what `build-kernels` saw, kept in `docs/proof.json`.
//!
//! `build-kernels` fails where that file claims more than it sees, and writes it with `--update`; `docs` makes the table of
//! `docs/backends.md` of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::build_kernels::Stage;
use crate::workspace::Workspace;

/// One variant of an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// How far it was proven.
    pub(crate) stage: Stage,
    /// By which tools.
    pub(crate) by: String,
}

/// By what a variant is proven whose compilers are not here.
pub(crate) const COMMAND_LINES: &str = "command lines only";

/// By example and variant.
pub(crate) type Proofs = BTreeMap<(String, String), Proof>;

/// Tests that prove command lines of compilers which nobody here has, by a stand-in that records them: what it stands in for, its name, and the
/// file of the tests.
const RECORDED: [(&str, &str, &str); 3] = [
    ("icpx", "recording-icpx", "crates/kiln/tests/xpu/main.rs"),
    ("xcrun", "recording-xcrun", "crates/kiln-metal/tests/lines.rs"),
    ("bisheng", "recording-bisheng", "crates/kiln/tests/npu.rs"),
];

/// Where the table begins and ends in `docs/backends.md`.
const MARKS: [&str; 2] = ["<!-- proof: by `cargo xtask docs` -->\n", "<!-- end of proof -->\n"];

fn file(workspace: &Workspace) -> PathBuf {
    workspace.root.join("docs/proof.json")
}

/// What the file says.
pub(crate) fn read(workspace: &Workspace) -> anyhow::Result<Proofs> {
    let path = file(workspace);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    parse(&text).with_context(|| format!("`{}`", path.display()))
}

fn parse(text: &str) -> anyhow::Result<Proofs> {
    let value: Value = serde_json::from_str(text)?;
    let mut proofs = Proofs::new();
    for row in value.as_array().context("it is no list")? {
        let text = |key: &str| row[key].as_str().map(str::to_owned).with_context(|| format!("a row has no `{key}`: {row}"));
        let stage = Stage::parse(&text("stage")?).with_context(|| format!("a row has an unknown stage: {row}"))?;
        proofs.insert((text("example")?, text("variant")?), Proof { stage, by: text("by")? });
    }
    Ok(proofs)
}

/// Writes what was seen in the place of what the file says of the same variants; of all variants when `all` were to be seen.
pub(crate) fn update(workspace: &Workspace, seen: &Proofs, all: bool) -> anyhow::Result<()> {
    let mut proofs = if all { Proofs::new() } else { read(workspace).unwrap_or_default() };
    proofs.extend(seen.iter().map(|(key, proof)| (key.clone(), proof.clone())));
    Ok(std::fs::write(file(workspace), written(&proofs)?)?)
}

fn written(proofs: &Proofs) -> anyhow::Result<String> {
    let rows: Vec<Value> = proofs
        .iter()
        .map(|((example, variant), proof)| json!({ "example": example, "variant": variant, "stage": proof.stage.name(), "by": proof.by }))
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}

/// What is wrong with the file: claims that were not seen, and variants that it does not have. `all`: everything was to be seen.
pub(crate) fn differences(known: &Proofs, seen: &Proofs, all: bool) -> Vec<String> {
    let mut differences = Vec::new();
    for ((example, variant), is) in seen {
        let said = match known.get(&(example.clone(), variant.clone())) {
            None => Some("it is not in docs/proof.json".to_owned()),
            Some(claimed) if claimed.stage > is.stage => {
                Some(format!("docs/proof.json claims `{}`, and it is `{}`", claimed.stage.name(), is.stage.name()))
            }
            Some(_) => None,
        };
        differences.extend(said.map(|said| format!("{example}: {variant}: {said}")));
    }
    let unseen = known.keys().filter(|key| all && !seen.contains_key(*key));
    differences.extend(unseen.map(|(example, variant)| format!("{example}: {variant}: docs/proof.json claims it, and it was not built")));
    differences
}

/// What this machine proves otherwise, which is no fault: further than the file claims, or by other tools.
pub(crate) fn otherwise(known: &Proofs, seen: &Proofs) -> Vec<String> {
    let said = |(key @ (example, variant), is): (&(String, String), &Proof)| {
        let claimed = known.get(key)?;
        let differs = claimed.stage < is.stage || without_releases(&claimed.by) != without_releases(&is.by);
        let text = |proof: &Proof| format!("`{}` by {}", proof.stage.name(), proof.by);
        differs.then(|| format!("{example}: {variant}: {} here, and docs/proof.json has {}", text(is), text(claimed)))
    };
    seen.iter().filter_map(said).collect()
}

/// Tools without their releases, which differ from machine to machine.
fn without_releases(by: &str) -> String {
    by.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect()
}

/// The tools that made a variant, by its record.
pub(crate) fn tools(record: &Value, backend: &str) -> String {
    let host = record["proven"]["by"].as_str().unwrap_or_default();
    // The major release is enough to know which one it was.
    let short = |text: &str| match text.rsplit_once(' ') {
        Some((name, version)) => format!("{name} {}", version.split('.').next().unwrap_or_default()),
        None => text.to_owned(),
    };
    let kit = |name: &str| {
        let kit = &record["toolchains"][name];
        let release = kit["version"].as_str()?.split('.').take(2).collect::<Vec<_>>().join(".");
        Some((release, kit["provider"].as_str().unwrap_or_default().to_owned()))
    };
    if record["framework"] == "torch-noarch" {
        return "assembled".to_owned();
    }
    match backend {
        "cuda" => match kit("cuda") {
            Some((release, provider)) => {
                format!("{}, nvcc {release} of {}", short(host), if provider == "wheels" { "wheels" } else { "the machine" })
            }
            None => short(host),
        },
        "rocm" => match kit("rocm") {
            Some((release, _)) => format!("{}, Debian's HIP {release}", short(host)),
            None => short(host),
        },
        // What stands in for it here knows nothing of its own work.
        "xpu" => "sycl-shim, not icpx".to_owned(),
        _ => short(host),
    }
}

/// The page with the table in its place.
pub(crate) fn page(workspace: &Workspace) -> anyhow::Result<(PathBuf, String)> {
    let path = workspace.root.join("docs/backends.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    if let Some((_, _, gone)) = RECORDED.iter().find(|(_, _, tests)| !workspace.root.join(tests).is_file()) {
        bail!("there is no `{gone}`, which is to prove command lines");
    }
    let text = replaced(&text, &table(&read(workspace)?, &RECORDED)).with_context(|| format!("`{}`", path.display()))?;
    Ok((path, text))
}

fn replaced(text: &str, table: &str) -> anyhow::Result<String> {
    let [begin, end] = MARKS;
    let parts = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let Some((before, after)) = parts else { bail!("it has no place for the table: `{}` and `{}`", begin.trim(), end.trim()) };
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

fn table(proofs: &Proofs, recorded: &[(&str, &str, &str)]) -> String {
    let mut text = "\n| Example | Variant | Proven | By |\n|---|---|---|---|\n".to_owned();
    for ((example, variant), Proof { stage, by }) in proofs {
        text += &format!("| `{example}` | `{variant}` | {} | {by} |\n", stage.name());
    }
    text += "\nOf compilers that no machine of ours has, tests check **command lines only**, by a program that records them and refuses options that the \
             compiler does not have:\n\n";
    for (program, recorder, tests) in recorded {
        text += &format!("- `{program}`: `{recorder}`, in `{tests}`\n");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proofs(stage: Stage, by: &str) -> Proofs {
        Proofs::from([(("relu".to_owned(), "torch-cpu".to_owned()), Proof { stage, by: by.to_owned() })])
    }

    #[test]
    fn a_claim_that_was_not_seen_is_told() {
        let said = |known: &Proofs, seen: &Proofs, all| differences(known, seen, all).join("\n");
        let linked = proofs(Stage::Linked, "g++ 12");
        assert_eq!(said(&linked, &linked, true), "");
        assert_eq!(said(&linked, &proofs(Stage::Linked, "g++ 15"), true), "", "releases differ from machine to machine");
        assert!(said(&proofs(Stage::Ran, "g++ 12"), &linked, true).contains("claims `ran`, and it is `linked`"));
        for (stage, by) in [(Stage::Ran, "g++ 12"), (Stage::Linked, "clang++ 19")] {
            let seen = proofs(stage, by);
            assert_eq!(said(&linked, &seen, true), "", "another machine has other tools and devices");
            assert_eq!(otherwise(&linked, &seen).len(), 1);
        }
        assert!(otherwise(&linked, &proofs(Stage::Linked, "g++ 15")).is_empty());
        assert!(said(&Proofs::new(), &linked, false).contains("is not in docs/proof.json"));
        assert!(said(&linked, &Proofs::new(), true).contains("claims it, and it was not built"));
        assert_eq!(said(&linked, &Proofs::new(), false), "", "only some were to be seen");
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let linked = proofs(Stage::Linked, "g++ 12");
        assert_eq!(parse(&written(&linked).unwrap()).unwrap(), linked);
        assert!(parse("[{ \"example\": \"x\", \"variant\": \"y\", \"stage\": \"proven\", \"by\": \"z\" }]").is_err());
    }

    #[test]
    fn tools_are_those_of_the_record() {
        let record = json!({ "framework": "tvm-ffi", "proven": { "by": "g++ 12.2.0" },
                             "toolchains": { "cuda": { "version": "13.2.86", "provider": "wheels" }, "rocm": { "version": "5.2.21153" } } });
        let by = |backend: &str| tools(&record, backend);
        assert_eq!(by("cpu"), "g++ 12");
        assert_eq!(by("cuda"), "g++ 12, nvcc 13.2 of wheels");
        assert_eq!(by("rocm"), "g++ 12, Debian's HIP 5.2");
        assert_eq!(by("xpu"), "sycl-shim, not icpx");
        assert_eq!(tools(&json!({ "framework": "torch-noarch" }), "cuda"), "assembled");
    }

    #[test]
    fn the_table_stands_in_its_place() {
        let [begin, end] = MARKS;
        let page = format!("a\n{begin}old\n{end}b\n");
        let new = replaced(&page, &table(&proofs(Stage::Ran, "g++ 12"), &[("icpx", "recording-icpx", "x.rs")])).unwrap();
        assert!(new.starts_with("a\n") && new.ends_with("b\n") && !new.contains("old"), "{new}");
        assert!(new.contains("| `relu` | `torch-cpu` | ran | g++ 12 |"), "{new}");
        assert!(new.contains("- `icpx`: `recording-icpx`, in `x.rs`"), "{new}");
        assert!(replaced("a", "b").is_err());
    }
}
