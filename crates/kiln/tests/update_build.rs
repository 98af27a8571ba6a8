//! `kiln update-build` and `--deny-legacy`, as a user runs them.

#![expect(clippy::unwrap_used, reason = "a test ends at its first failure")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const OLD: &str = "[general]\nname = \"ab\" # x\nversion = 1\nlicense = \"MIT\"\nbackends = [\"cpu\", \"cuda\"]\n\n[general.cuda]\nminver = \"12\"\n\n[torch]\nsrc = [\"b.cpp\"]\nstable-abi = \"2.11\"\n\n\
    [kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\"]\n";
const NEW: &str = "[general]\nname = \"ab\" # x\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cpu\", \"cuda\"]\n\n[general.cuda]\nminver = \"12.0\"\n\n[torch]\nsrc = [\"b.cpp\"]\nstable-abi = { cpu = \"2.11\", cuda = \"2.11\" }\n\n\
    [kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\"]\n";

fn project(dir: &Path, text: &str) {
    fs::create_dir_all(dir.join("torch-ext/ab")).unwrap();
    for file in ["b.cpp", "k.cpp", "torch-ext/ab/__init__.py"] {
        fs::write(dir.join(file), "").unwrap();
    }
    fs::write(dir.join("build.toml"), text).unwrap();
}

fn kiln(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    command.args(args).current_dir(dir).env_clear().env("HOME", dir).stdin(Stdio::null());
    command
}

/// Exit code, standard output and standard error.
fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let output = kiln(dir, args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_file_is_updated_once() {
    let dir = tempfile::tempdir().unwrap();
    project(dir.path(), OLD);
    let (code, out, err) = run(dir.path(), &["update-build"]);
    assert_eq!((code, out.as_str()), (0, ""));
    insta::assert_snapshot!(err, @r#"
    Updated build.toml
            added `general.edition`: `5`
            changed `torch.stable-abi`: `"2.11"` became `{ cpu = "2.11", cuda = "2.11" }`
            changed `general.cuda.minver`: `"12"` became `"12.0"`
    "#);
    assert_eq!(fs::read_to_string(dir.path().join("build.toml")).unwrap(), NEW);
    assert_eq!(run(dir.path(), &["update-build"]), (0, String::new(), "   Unchanged build.toml\n".to_owned()));
    assert_eq!(run(dir.path(), &["update-build", "--check", "--diff"]), (0, String::new(), String::new()));
}

#[test]
fn check_and_diff_write_nothing() {
    let dir = tempfile::tempdir().unwrap();
    project(&dir.path().join("p"), OLD);
    let (code, out, err) = run(dir.path(), &["update-build", "--check", "p"]);
    assert_eq!((code, err.as_str()), (1, ""));
    insta::assert_snapshot!(out, @r#"
    p/build.toml: added `general.edition`: `5`
    p/build.toml: changed `torch.stable-abi`: `"2.11"` became `{ cpu = "2.11", cuda = "2.11" }`
    p/build.toml: changed `general.cuda.minver`: `"12"` became `"12.0"`
    "#);
    let (code, out, err) = run(dir.path(), &["update-build", "--diff", "p/build.toml"]);
    assert_eq!((code, err.as_str()), (1, ""));
    insta::assert_snapshot!(out.replace(" \n", "\n"), @r#"
    --- p/build.toml
    +++ p/build.toml
    @@ -1,15 +1,16 @@
     [general]
     name = "ab" # x
     version = 1
    +edition = 5
     license = "MIT"
     backends = ["cpu", "cuda"]

     [general.cuda]
    -minver = "12"
    +minver = "12.0"

     [torch]
     src = ["b.cpp"]
    -stable-abi = "2.11"
    +stable-abi = { cpu = "2.11", cuda = "2.11" }

     [kernel.k]
     backend = "cpu"
    "#);
    assert_eq!(run(dir.path(), &["update-build", "p", "--diff", "--check"]), (1, out, String::new()));
    assert_eq!(fs::read_to_string(dir.path().join("p/build.toml")).unwrap(), OLD);
}

#[test]
fn each_of_several_files_is_told_about() {
    let dir = tempfile::tempdir().unwrap();
    project(&dir.path().join("a"), OLD);
    project(&dir.path().join("b"), &OLD.replace("[torch]", "[torch]\nsrcs = []"));
    project(&dir.path().join("c"), "[general]\nname = 'ab'\nbackends = ['cpu']\n");
    let (code, _, err) = run(dir.path(), &["update-build", "-q", "gone", "b", "c", "a"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(err, @r#"
    error[project]: there is no directory `gone`
    error[unknown-key]: unknown key `srcs` in [torch]
       --> b/build.toml:11:1
       |
    11 | srcs = []
       | ^^^^
       = allowed here: `src`, `include`, `pyext`, `minver`, `maxver`, `cxx-flags`, `stable-abi`
    hint: did you mean `src`? it is there already
    error[configuration]: `b/build.toml` cannot be updated
      caused by: the file has errors
    error[missing-license]: `c/build.toml` cannot be updated
      caused by: the file names no license
    hint: name it with `--license ID`, such as `--license Apache-2.0`
    "#);
    assert_eq!(fs::read_to_string(dir.path().join("a/build.toml")).unwrap(), NEW);
    let (code, _, err) = run(dir.path(), &["update-build", "-q", "c", "--license", "Apache-2.0"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let text = fs::read_to_string(dir.path().join("c/build.toml")).unwrap();
    assert_eq!(text, "[general]\nname = 'ab'\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = ['cpu']\n\n[torch-noarch]\n");
    assert_eq!(run(dir.path(), &["update-build", "c", "--license", " "]).0, 2);
}

#[test]
fn old_editions_can_be_denied() {
    let dir = tempfile::tempdir().unwrap();
    project(&dir.path().join("a b"), OLD);
    let (code, _, err) = run(dir.path(), &["check-config", "a b"]);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(err, @r"
    warning[old-edition]: this file is written in edition 4 of the format; it is read as one of edition 5
      --> a b/build.toml:1:1
      = there is no `edition`, and it has `torch.stable-abi`
    hint: `kiln update-build 'a b'` brings it up to date
    ");
    for command in ["check-config", "list-variants", "matrix", "build"] {
        let (code, _, err) = run(dir.path(), &[command, "a b", "--deny-legacy", "--offline"]);
        assert_eq!(code, 1, "{command}: {err}");
        assert!(err.contains("error[old-edition]: this file is written in edition 4"), "{command}: {err}");
        assert_eq!(err.matches("old-edition").count(), 1, "{command}: {err}");
    }
    assert_eq!(run(&dir.path().join("a b"), &["update-build", "-q"]).0, 0);
    assert_eq!(run(dir.path(), &["check-config", "a b", "--deny-legacy"]).0, 0);
}

/// Whenever a process dies, the file is the old one or the new one.
#[test]
fn a_killed_update_leaves_the_old_file_or_the_new() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("build.toml");
    let mut old = OLD.to_owned();
    for number in 0..150 {
        old += &format!("\n[kernel.k{number}]\nbackend = \"cuda\"\ncuda-minver = \"12\"\ndepends = []\nsrc = [\"{number}.cu\"]\n");
    }
    fs::write(&file, &old).unwrap();
    let started = Instant::now();
    assert_eq!(run(dir.path(), &["update-build", "-q"]).0, 0);
    let whole = started.elapsed();
    let new = fs::read_to_string(&file).unwrap();
    assert_eq!(new.matches("cuda-minver = \"12.0\"").count(), 150);
    let mut killed = 0;
    for nth in 0..30u32 {
        fs::write(&file, &old).unwrap();
        let mut child = kiln(dir.path(), &["update-build", "-q"]).stderr(Stdio::null()).spawn().unwrap();
        // Most of them near the end, where the file is written.
        let part = if nth % 3 == 0 { nth * 32 } else { 700 + nth * 12 };
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * f64::from(part) / 1000.0));
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text == old || text == new, "a broken file:\n{text}");
    }
    assert!(killed > 0, "every process was faster");
    // Whatever was left beside it does not stand in the way.
    assert_eq!(run(dir.path(), &["update-build", "-q"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), new);
}
