//! Builds where something is odd or missing: read-only places, no home, links, interruption, a full disk, a reader that goes away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use support::project::{BINDING, ProjectBuilder, commit_all, usual, write};
use support::read_only::{ReadOnly, bound_by_modes};
use support::started::real_program;
use support::{Deadline, Run, Sandbox, index, kiln_program, message, shared_cache, tree};

/// Where the usual project is after an undisturbed build in the sandbox.
fn undisturbed(sandbox: &Sandbox) -> PathBuf {
    let dir = usual().write(&sandbox.path("undisturbed"));
    sandbox.build(&dir, &[]);
    dir.join("build")
}

#[test]
fn a_read_only_project_is_built_elsewhere() {
    let sandbox = Sandbox::new();
    let expected = undisturbed(&sandbox);
    let dir = usual().write(&sandbox.path("project"));
    let before = tree::stamps(&dir);
    let read_only = ReadOnly::new(&dir);

    let run = Run::of(&mut bound_by_modes(&sandbox, &dir, &["build"]));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("Permission denied") && run.stderr.contains("hint: `--out DIR`"), "{}", run.stderr);

    let out = sandbox.path("out");
    let args = ["build", "--message-format", "json", "--out", out.to_str().unwrap()];
    let run = Run::of(&mut bound_by_modes(&sandbox, &dir, &args));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    tree::assert_equal(&expected, &out);
    assert_eq!(before, tree::stamps(&dir), "something was written into the project");
    assert_eq!(fs::read_dir(sandbox.cache().join("work")).unwrap().count(), 1);
    // The work is kept and found again.
    let again = Run::of(&mut bound_by_modes(&sandbox, &dir, &args));
    assert_eq!(again.steps().0, 0, "{}", again.stdout);
    drop(read_only);
}

/// Copies of units go where the work of a build goes.
#[test]
fn a_read_only_project_is_measured() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    let before = tree::stamps(&dir);
    let read_only = ReadOnly::new(&dir);
    let run = Run::of(&mut bound_by_modes(&sandbox, &dir, &["lint", "--format", "json"]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let unit = &report["units"][0];
    assert_eq!(unit["unit"].as_str(), Some("checked/checked.cpp"), "{report:#}");
    assert!(unit["headers-ms"].as_u64().is_some_and(|headers| headers > 0), "{report:#}");
    assert_eq!(before, tree::stamps(&dir), "something was written into the project");
    drop(read_only);
}

#[test]
fn a_user_without_a_home() {
    let sandbox = Sandbox::new();
    let expected = undisturbed(&sandbox);
    let dir = usual().write(&sandbox.path("project"));
    let run = Run::of(sandbox.kiln(&dir, &["build"]).env_remove("HOME"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    tree::assert_equal(&expected, &dir.join("build"));

    // Nor a cache: it is in the project then. The headers are put there, because nothing is to be fetched.
    let dir = usual().write(&sandbox.path("alone"));
    fs::create_dir_all(dir.join(".kiln/cache")).unwrap();
    std::os::unix::fs::symlink(shared_cache().join("toolchains-v1"), dir.join(".kiln/cache/toolchains-v1")).unwrap();
    for _ in 0..2 {
        let run = Run::of(sandbox.kiln(&dir, &["build", "--offline"]).env_remove("HOME").env_remove("KILN_CACHE_DIR"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        tree::assert_equal(&expected, &dir.join("build"));
        assert!(dir.join(".kiln/cache/toolchains-v1").exists());
    }
    sandbox.started();
    let run = Run::of(sandbox.kiln(&dir, &["build", "--offline"]).env_remove("HOME").env_remove("KILN_CACHE_DIR"));
    assert_eq!((run.code, sandbox.started().0.len()), (Some(0), 0), "{}", run.stderr);
}

#[test]
fn the_cache_may_be_named_from_here() {
    let sandbox = Sandbox::new();
    let expected = undisturbed(&sandbox);
    let dir = usual().write(&sandbox.path("project"));
    let mut command = sandbox.kiln(&dir, &["build", "--offline"]);
    command.env("KILN_CACHE_DIR", Path::new("..").join(sandbox.cache().file_name().unwrap()));
    let run = Run::of(&mut command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    tree::assert_equal(&expected, &dir.join("build"));
}

#[test]
fn from_another_directory_by_a_relative_path() {
    let sandbox = Sandbox::new();
    let expected = undisturbed(&sandbox);
    let dir = usual().write(&sandbox.path("a/project"));
    let here = sandbox.path("b/here");
    fs::create_dir_all(&here).unwrap();
    // Relative to where the command is started, whatever the project.
    sandbox.build(&here, &["../../a/project", "--out", "my out"]);
    tree::assert_equal(&expected, &here.join("my out"));
    assert!(!dir.join("build").exists() && !dir.join("my out").exists());
    let again = sandbox.build(&here, &["./../../a/./project/", "--out", "my out"]);
    assert_eq!(again.steps().0, 0);
    sandbox.build(&dir.join("torch-ext"), &[".."]);
    tree::assert_equal(&expected, &dir.join("build"));
}

#[test]
fn the_callers_environment_does_not_leak_in() {
    let sandbox = Sandbox::new();
    let expected = undisturbed(&sandbox);
    let dir = usual().write(&sandbox.path("project"));
    let header = sandbox.path("evil/only_plain.h");
    write(&sandbox.path("evil"), "only_plain.h", "#error from the environment\n");
    let evil = header.parent().unwrap();
    let mut command = sandbox.kiln(&dir, &["build"]);
    for name in ["CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"] {
        command.env(name, "-DEVIL -O0 -g");
    }
    for name in ["CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"] {
        command.env(name, evil);
    }
    command.env("SOURCE_DATE_EPOCH", "12345").env("LC_ALL", "de_DE.UTF-8").env("GIT_DIR", evil).env("DEPENDENCIES_OUTPUT", evil.join("d"));
    let run = Run::of(&mut command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    tree::assert_equal(&expected, &dir.join("build"));
}

#[test]
fn the_callers_mask_does_not_matter() {
    let sandbox = Sandbox::new();
    let expected = undisturbed(&sandbox);
    for mask in ["0000", "0077"] {
        let dir = usual().write(&sandbox.path(mask));
        let mut command = sandbox.command("/bin/sh");
        command.args(["-c", "umask \"$1\"; shift; exec \"$@\"", "sh", mask]).arg(kiln_program()).args(["build"]).current_dir(&dir);
        let run = Run::of(&mut command);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        for variant in fs::read_dir(&expected).unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir()) {
            tree::assert_equal(&variant.path(), &dir.join("build").join(variant.file_name()));
        }
    }
}

/// A project with a unit that is compiled until somebody writes into the pipe that it includes.
fn endless(sandbox: &Sandbox) -> PathBuf {
    let pipe = sandbox.path("pipe.h");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let dir = usual()
        .file("endless/endless.cpp", &format!("#include \"{}\"\n", pipe.display()))
        .kernel("endless", &[], &["endless/endless.cpp"], "")
        .write(&sandbox.path("endless"));
    commit_all(&dir);
    // Dirty, so that a later edit does not change the ops id.
    write(&dir, "binding.cpp", &format!("{BINDING}\n"));
    dir
}

/// Reads messages until the endless unit is being compiled and so many others are done.
fn until_endless(child: &mut Child, done: usize) -> BufReader<std::process::ChildStdout> {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let (mut line, mut endless, mut finished) = (String::new(), false, 0);
    while reader.read_line(&mut line).unwrap() > 0 {
        let message = message(line.trim_end());
        endless |= message["reason"] == "step-started" && message["label"] == "endless/endless.cpp";
        let is_done = message["reason"] == "step-finished" || message["reason"] == "step-up-to-date";
        finished += usize::from(is_done && message["verb"] == "Compiling");
        if endless && finished >= done {
            return reader;
        }
        line.clear();
    }
    panic!("the unit was never compiled");
}

/// Processes whose command line mentions `text`.
fn processes(text: &Path) -> Vec<String> {
    let text = text.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten().filter(|entry| entry.file_name().to_str().unwrap().parse::<u32>().is_ok());
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| line.contains(text)).collect()
}

/// Waits until `found` is true, for at most ten seconds.
fn soon(found: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !found() {
        if start.elapsed() > Duration::from_secs(10) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn an_interrupted_build_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let dir = endless(&sandbox);
    for (signal, code, done) in [(rustix::process::Signal::HUP, 129, 0), (rustix::process::Signal::TERM, 143, 4)] {
        let mut command = sandbox.kiln(&dir, &["build", "--message-format", "json", "-j4"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _deadline = Deadline::of(&child);
        let mut rest = until_endless(&mut child, done);
        assert!(soon(|| !processes(&dir.join("endless/endless.cpp")).is_empty()), "the compiler was not started");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let mut text = String::new();
        rest.read_to_string(&mut text).unwrap();
        let run = Run { stdout: text, ..Run::from(child.wait_with_output().unwrap()) };
        assert_eq!(run.code, Some(code), "{}{}", run.stdout, run.stderr);
        assert_eq!(run.reason("stopping")[0]["kills"], true);
        assert_eq!(run.reason("build-finished")[0]["interrupted"], true);
        assert_eq!(processes(&dir), Vec::<String>::new());
        assert_eq!(fs::read_dir(dir.join(".kiln/tmp")).unwrap().count(), 0);
        // Nothing of the variant, whole or in part.
        let left = if dir.join("build").exists() { tree::files(&dir.join("build")).into_keys().collect() } else { Vec::new() };
        assert!(left.iter().all(|name| name == "/" || name == "kiln-build.json"), "{left:?}");
    }
    // What was done before is kept.
    write(&dir, "endless/endless.cpp", "int tiny_endless;\n");
    let run = sandbox.build(&dir, &[]);
    assert_eq!(run.ran("Compiling"), ["endless/endless.cpp"]);
}

#[test]
fn an_interrupted_wait_ends() {
    let sandbox = Sandbox::new();
    let dir = endless(&sandbox);
    let start = || {
        let mut command = sandbox.kiln(&dir, &["build", "--message-format", "json", "-j4"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = start();
    let _deadline = Deadline::of(&first);
    let _messages = until_endless(&mut first, 0);
    let mut second = start();
    let _other_deadline = Deadline::of(&second);
    let mut lines = BufReader::new(second.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| message(&line.unwrap())["reason"] == "waiting"));
    // The first one would wait for its compiler.
    for (child, signal, code) in [(second, rustix::process::Signal::INT, 130), (first, rustix::process::Signal::TERM, 143)] {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", support::text(&output.stderr));
    }
}

#[test]
fn a_reader_that_goes_away_does_not_stop_a_build() {
    let sandbox = Sandbox::new();
    let expected = undisturbed(&sandbox);
    for (name, args) in [("json", &["build", "--message-format", "json"][..]), ("text", &["build"])] {
        let dir = usual().write(&sandbox.path(name));
        let mut child = sandbox.kiln(&dir, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(0));
        tree::assert_equal(&expected, &dir.join("build"));
    }
    let dir = sandbox.path("json");
    for args in [&["list-variants"][..], &["matrix"], &["build", "--plan"], &["toolchain", "list"], &["--help"]] {
        let mut child = sandbox.kiln(&dir, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), support::text(&output.stderr)), (Some(0), String::new()), "{args:?}");
    }
}

/// Builds with no file larger than this many blocks of 512 bytes: writing beyond fails, as on a full disk.
fn build_limited(sandbox: &Sandbox, dir: &Path, blocks: u32) -> Run {
    let mut command = sandbox.command("/bin/sh");
    // The signal is ignored, so that writing gives an error.
    let script = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    command.args(["-c", script, "sh", &blocks.to_string()]).arg(kiln_program()).args(["build", "-j1"]).current_dir(dir);
    Run::of(&mut command)
}

#[test]
fn files_that_cannot_be_written_lose_nothing() {
    let sandbox = Sandbox::new();
    let dir =
        ProjectBuilder::new().file("plain.cpp", "int tiny_plain;\n").kernel("plain", &[], &["plain.cpp"], "").write(&sandbox.path("p"));
    commit_all(&dir);
    write(&dir, "plain.cpp", "int tiny_plain() { return 1; }\n");
    sandbox.build(&dir, &[]);
    let before = tree::files(&dir.join("build"));

    // The variant gets larger, so the old one is of no use.
    write(
        &dir,
        "plain.cpp",
        "int tiny_plain() { return 2; }\nextern const char tiny_text[9000] = {1, 2, 3};\nstatic volatile int at = 5, kept = tiny_text[at];\n",
    );
    let mut failures = 0;
    for blocks in [0, 1, 2, 4, 8, 16, 20, 24, 28, 32] {
        let run = build_limited(&sandbox, &dir, blocks);
        if run.code == Some(0) {
            break;
        }
        failures += 1;
        assert_eq!(run.code, Some(1), "{blocks}: {}", run.stderr);
        assert!(run.stderr.contains("error[") && run.stderr.to_lowercase().contains("file too large"), "{blocks}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        assert_eq!(before, tree::files(&dir.join("build")), "{blocks}: {}", run.stderr);
    }
    assert!(failures >= 3);
    let healed = sandbox.build(&dir, &[]);
    assert_eq!(healed.reason("variant-finished").len(), 1);
    let other = sandbox.path("q");
    for entry in
        walkdir::WalkDir::new(&dir).into_iter().filter_entry(|entry| ![".kiln", "build"].contains(&entry.file_name().to_str().unwrap()))
    {
        let entry = entry.unwrap();
        let to = other.join(entry.path().strip_prefix(&dir).unwrap());
        if entry.file_type().is_dir() { fs::create_dir_all(to).unwrap() } else { fs::copy(entry.path(), to).map(drop).unwrap() }
    }
    sandbox.build(&other, &[]);
    tree::assert_equal(&other.join("build"), &dir.join("build"));
}

#[test]
fn a_full_disk_is_told() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    let (small, log) = (sandbox.path("small"), sandbox.path("left"));
    fs::create_dir(&small).unwrap();
    // A file system of its own, in a namespace of its own: it is gone with the process.
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" || exit 99; \"$2\" build --out \"$1/out\"; code=$?; \
                  find \"$1\" -mindepth 1 > \"$3\"; exit $code";
    let mut command = sandbox.command(real_program("unshare").expect("`unshare` (util-linux) is needed"));
    command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", sandbox.path("bin").display()));
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--", "/bin/sh", "-c", script, "sh"]).arg(&small).arg(kiln_program()).arg(&log).current_dir(&dir);
    // The extension alone fills it.
    write(
        &dir,
        "plain/plain.cpp",
        "extern const char tiny_text[99000] = {1, 2, 3};\nint tiny_plain(int) { return tiny_text[5]; }\n\
         static volatile int at = 5, kept = tiny_text[at];\n",
    );
    let run = Run::of(&mut command);
    assert_eq!(run.code, Some(1), "is a mount in a namespace permitted? {}", run.stderr);
    assert!(run.stderr.contains("No space left on device"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: free some space or choose another output directory with `--out`"), "{}", run.stderr);
    let left = fs::read_to_string(log).unwrap();
    assert!(!left.contains(".kiln-tmp") && !left.contains("torch-"), "{left}");
    // Nothing was lost but the last step.
    let healed = sandbox.build(&dir, &[]);
    assert_eq!(healed.steps().0, 0, "{}", healed.stdout);
}

/// Starts a build that needs torch from the index at `url`.
fn fetching(sandbox: &Sandbox, dir: &Path, url: &str) -> Child {
    let mut command = sandbox.kiln(dir, &["build", "--message-format", "json"]);
    command.env("KILN_INDEX_URL", url).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Interrupts a build as soon as it has told an event of this kind; it must end as interrupted builds do.
fn interrupt_at(mut child: Child, reason: &str) {
    let _deadline = Deadline::of(&child);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| message(&line.unwrap())["reason"] == reason), "no `{reason}`");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let rest: Vec<_> = lines.map(|line| message(&line.unwrap())).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest:?}{}", support::text(&output.stderr));
    let error = rest.iter().find(|message| message["reason"] == "error").unwrap();
    assert_eq!(error["code"], "interrupted", "{error}");
    assert!(rest.iter().all(|message| message["reason"] != "fetch-retry"), "an interrupted request is not made again");
}

#[test]
fn an_interrupted_fetch_ends() {
    let sandbox = Sandbox::without_torch();
    let dir = usual().write(&sandbox.path("project"));
    let work = || fs::read_dir(sandbox.cache().join("toolchains-v1/work")).map_or(0, |entries| entries.count());
    let trees = sandbox.cache().join("toolchains-v1/trees");

    // A server that is there and says nothing; and another build that waits for the first one's fetch.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/simple/", silent.local_addr().unwrap());
    let mut first = fetching(&sandbox, &dir, &url);
    assert!(soon(|| sandbox.cache().join("toolchains-v1/locks").exists()));
    let other = usual().write(&sandbox.path("other"));
    let second = fetching(&sandbox, &other, &url);
    interrupt_at(second, "fetch-waiting");
    assert!(first.try_wait().unwrap().is_none(), "the first one goes on");
    interrupt_at(first, "fetch-started");

    // In the middle of a transfer everything is put away.
    let mirror = index::mirror();
    interrupt_at(fetching(&sandbox, &dir, &mirror.index()), "fetch-bytes");
    assert_eq!((work(), trees.exists()), (0, false));
}
