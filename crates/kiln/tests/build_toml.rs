//! `build.toml` as the loader's own package reads it: the same verdict, backends and kernel dependencies, and every updated file is read.

#![expect(clippy::unwrap_used, reason = "a test ends at its first failure")]

#[path = "../../kiln-format/tests/generate/mod.rs"]
mod generate;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kiln_format::build;
use serde_json::Value;

use self::generate::{Generated, MUTATIONS, compared, generate, generate_bad};

/// An interpreter that has the `kernels` package: that of the test environment, or the one in `KILN_TEST_PYTHON`.
fn python() -> PathBuf {
    let set_up = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join("base/bin/python");
    let python = std::env::var_os("KILN_TEST_PYTHON").map_or(set_up, PathBuf::from);
    assert!(python.exists(), "`{}` is missing: `cargo xtask setup` makes it", python.display());
    python
}

/// What the `kernels` package reads in each text; the error's text where it refuses it.
fn ask(texts: &[&str]) -> Vec<Result<Read, String>> {
    let dir = tempfile::tempdir().unwrap();
    let mut input = String::new();
    for (number, text) in texts.iter().enumerate() {
        let project = dir.path().join(number.to_string());
        fs::create_dir(&project).unwrap();
        fs::write(project.join("build.toml"), text).unwrap();
        input += &format!("{}\n", project.display());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/check_build_toml.py");
    let mut child = Command::new(python())
        .args(["-I", "-B"])
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // It warns of every file of an old edition.
        .stderr(Stdio::null())
        .env("HOME", dir.path())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let answers: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(answer).collect();
    assert_eq!(answers.len(), texts.len());
    answers
}

/// What there is to compare.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    backends: Vec<String>,
    kernel_depends: BTreeMap<String, Vec<String>>,
}

fn answer(line: &str) -> Result<Read, String> {
    let value: Value = serde_json::from_str(line).unwrap();
    if let Some(error) = value["error"].as_str() {
        return Err(error.to_owned());
    }
    let texts = |value: &Value| value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let kernel_depends = value["kernel_depends"].as_object().unwrap().iter().map(|(backend, list)| (backend.clone(), texts(list)));
    Ok(Read { backends: texts(&value["backends"]), kernel_depends: kernel_depends.collect() })
}

/// The same, as Kiln reads it.
fn read(text: &str) -> Option<Read> {
    use kiln_format::KernelDependencyVersion::{Revision, Version};
    let build = build::parse("build.toml", text).build?;
    let named = |dependency: &kiln_format::KernelDependency| match &dependency.version {
        Version(version) => format!("{}@{version}", dependency.repo_id),
        Revision(revision) => format!("{}@{revision}", dependency.repo_id),
    };
    let depends = |backend| build.kernel_depends_for(backend).into_iter().map(named).collect();
    Some(Read {
        backends: build.backends().map(|backend| backend.to_string()).collect(),
        kernel_depends: build.backends().map(|backend| (backend.to_string(), depends(backend))).collect(),
    })
}

fn cases(dir: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-format/tests/cases").join(dir);
    let mut cases: Vec<(String, String)> = walkdir::WalkDir::new(root)
        .into_iter()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "toml"))
        .map(|entry| (entry.path().display().to_string(), fs::read_to_string(entry.path()).unwrap()))
        .collect();
    cases.sort();
    cases
}

#[test]
fn accepted_cases_are_read_alike() {
    let cases = cases("ok");
    for ((name, text), theirs) in cases.iter().zip(ask(&cases.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>())) {
        assert_eq!(Ok(read(text).unwrap()), theirs, "{name}");
    }
    assert!(cases.len() >= 12);
}

#[test]
fn generated_files_are_read_alike() {
    let files = compared();
    for (file, theirs) in files.iter().zip(ask(&files.iter().map(|file| file.text.as_str()).collect::<Vec<_>>())) {
        let ours = read(&file.text).unwrap_or_else(|| panic!("refused:\n{}", file.text));
        assert_eq!(ours.backends, file.backends, "{}", file.text);
        assert_eq!(Ok(ours), theirs, "{}", file.text);
    }
}

/// Whatever `update-build` writes is read, with the same backends: unless it said that a version is beyond `kernel-builder`.
#[test]
fn updated_files_are_read() {
    let files: Vec<Generated> = (1..=5).flat_map(|edition| (0..150).map(move |seed| generate(seed, edition, true))).collect();
    let mut updated: Vec<String> = files.iter().map(|file| build::update("build.toml", &file.text, Some("MIT")).unwrap().text).collect();
    updated.extend(
        cases("migrate").into_iter().filter(|(name, _)| name.ends_with("out.toml") && !name.contains("v2-every-key")).map(|(_, text)| text),
    );
    let answers = ask(&updated.iter().map(String::as_str).collect::<Vec<_>>());
    for (text, theirs) in updated.iter().zip(&answers) {
        assert_eq!(&Ok(read(text).unwrap()), theirs, "{text}");
    }
    for (file, theirs) in files.iter().zip(&answers) {
        assert_eq!(theirs.as_ref().unwrap().backends, file.backends, "{}", file.text);
    }
}

/// A file that the `kernels` package takes although Kiln refuses it has one of the mistakes for which that is meant, and every such
/// mistake is taken.
#[test]
fn mistakes_are_refused_alike() {
    let mut files = Vec::new();
    for mutation in MUTATIONS {
        let editions: &[u8] = if mutation.also_in_4 { &[4, 5] } else { &[5] };
        let seeds = (0..400).flat_map(|seed| editions.iter().map(move |&edition| (seed, edition)));
        let before = files.len();
        files.extend(seeds.filter_map(|(seed, edition)| Some((mutation, generate_bad(seed, edition, mutation)?))).take(20));
        assert_eq!(files.len() - before, 20, "{}", mutation.name);
    }
    let answers = ask(&files.iter().map(|(_, file)| file.text.as_str()).collect::<Vec<_>>());
    for ((mutation, file), theirs) in files.iter().zip(answers) {
        assert!(read(&file.text).is_none(), "{}:\n{}", mutation.name, file.text);
        assert_eq!(theirs.is_ok(), mutation.taken_by_peer.is_some(), "{}: {theirs:?}\n{}", mutation.name, file.text);
    }
}

/// What Kiln reads and `kernel-builder` does not, each with a note or with a place to update.
#[test]
fn what_only_kiln_reads() {
    let file = |keys: &str, rest: &str| {
        format!("[general]\nname = 'ab'\nversion = 1\nedition = 5\nlicense = 'MIT'\nbackends = ['cpu', 'cuda']\n{keys}\n{rest}\n")
    };
    let texts = [
        ("a version of one number", file("cuda.minver = '12'", "[torch]")),
        ("a version of three numbers", file("cuda.minver = '12.8.1'", "[torch]")),
        ("kebab case in torch-noarch", file("", "[torch-noarch]\ncuda-capabilities = ['9.0']")),
        ("a kernel for NPUs", file("", "[torch]\n[kernel.k]\nbackend = 'cann'\nsrc = []\ndepends = []")),
        ("edition 4 by name", file("", "[torch]").replace("edition = 5", "edition = 4")),
        ("edition 3", file("", "").replace("edition = 5\n", "")),
    ];
    let answers = ask(&texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>());
    for ((what, text), theirs) in texts.iter().zip(answers) {
        assert!(theirs.is_err(), "{what} is read:\n{text}");
        let parsed = build::parse("build.toml", text);
        assert!(parsed.build.is_some(), "{what}");
        let told = parsed.diagnostics.iter().any(|diagnostic| matches!(diagnostic.code, "not-portable" | "old-edition"));
        assert!(told, "{what}: {:?}", parsed.diagnostics);
    }
}
