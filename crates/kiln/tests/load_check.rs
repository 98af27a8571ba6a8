//! The load check of builds: a kernel for tvm-ffi that does not load never takes the place of one that does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use support::project::{ProjectBuilder, write};
use support::tvm_ffi::build_toml;
use support::{Deadline, Run, Sandbox, is_gone, tree};

const VARIANT: &str = "tvm-ffi01-cpu-x86_64-linux";

/// A function by hand, which needs no header: it compiles in a moment.
const BINDING: &str = "int tiny();\nextern \"C\" __attribute__((visibility(\"default\"))) int __tvm_ffi_tiny(void *, const void *, int, void *) \
                       { return tiny(); }\n";

/// What runs when the library is loaded.
fn at_load(body: &str) -> String {
    let includes =
        ["cstdio", "cstdlib", "stdexcept", "dlfcn.h", "unistd.h", "signal.h"].map(|name| format!("#include <{name}>\n")).concat();
    format!("{includes}int tiny() {{ return 0; }}\n__attribute__((constructor)) static void at_load() {{ {body} }}\n")
}

fn project(dir: &Path) -> PathBuf {
    write(dir, "build.toml", &build_toml("tiny", "tiny.cpp"));
    write(dir, "binding.cpp", BINDING);
    write(dir, "tiny.cpp", &at_load(""));
    write(dir, "tvm-ffi-ext/tiny/__init__.py", "from ._ops import ops\n");
    dir.to_owned()
}

fn stage(dir: &Path) -> String {
    let record: Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    record["variants"][VARIANT]["proven"]["stage"].as_str().unwrap().to_owned()
}

#[test]
fn what_does_not_load_takes_nobodys_place() {
    let sandbox = Sandbox::new();
    let dir = project(&sandbox.path("ein Kern – 核"));
    sandbox.build(&dir, &[]);
    assert_eq!(stage(&dir), "loaded");
    let good = tree::files(&dir.join("build"));

    let missing = "void *self = dlopen(nullptr, RTLD_NOW); if (!dlsym(self, \"nobody_has_this\")) \
                   { fprintf(stderr, \"tiny: %s\\n\", dlerror()); abort(); }";
    let faults: [(&str, &str, Option<&str>); 8] = [
        (missing, "was killed by signal 6 (SIGABRT)", Some("undefined symbol: nobody_has_this")),
        ("throw std::runtime_error(\"no such device, says tiny\");", "was killed by signal 6 (SIGABRT)", Some("no such device, says tiny")),
        ("fputs(\"tiny gives up\\n\", stdout); exit(3);", "ended the process with exit code 3", Some("tiny gives up")),
        ("exit(0);", "ended the process with exit code 0", None),
        ("_exit(0);", "ended the process with exit code 0", None),
        ("*(volatile int *)8 = 1;", "was killed by signal 11 (SIGSEGV)", Some("nothing was said; its trace begins with: ")),
        ("raise(SIGKILL);", "was killed by signal 9 (SIGKILL)", None),
        ("for (;;) pause();", "did not end within 1 s", None),
    ];
    for (body, said, evidence) in faults {
        write(&dir, "tiny.cpp", &at_load(body));
        // The others end by themselves, however busy the machine is.
        let limit = if body.contains("pause") { "1" } else { "300" };
        let run = sandbox.run(&dir, &["build", "--message-format", "json", "--load-timeout", limit]);
        assert_eq!(run.code, Some(1), "{body}: {}", run.stderr);
        let checks = run.reason("check");
        let [check] = checks.as_slice() else { panic!("{body}: {}", run.stdout) };
        assert_eq!(check["variant"], VARIANT, "{check}");
        let check = &check["check"];
        assert_eq!((&check["rule"], &check["level"], &check["file"]), (&"load".into(), &"error".into(), &VARIANT.into()), "{check}");
        let detail = check["detail"].as_str().unwrap();
        assert!(detail.starts_with("it does not load with tvm-ffi 0.1.") && detail.contains(said), "{body}: {check}");
        // How far it came is known of every one, and what it said of those that said something.
        let known = check["evidence"].as_str().unwrap();
        assert!(known.contains(".so` was being loaded, after `libtvm_ffi.so`; "), "{body}: {check}");
        assert!(known.contains(evidence.unwrap_or("; nothing was said")), "{body}: {check}");
        assert_eq!(run.reason("variant-failed")[0]["variant"], VARIANT, "{}", run.stdout);
        assert_eq!(run.reason("build-finished")[0]["success"], false);
        assert!(tree::files(&dir.join("build")) == good, "{body}: what was there before has changed");
    }

    // For people: the code, the variant, the kernel's own words.
    write(&dir, "tiny.cpp", &at_load(missing));
    let run = sandbox.run(&dir, &["build"]);
    assert_eq!(run.code, Some(1));
    for said in
        ["error[load]", VARIANT, "SIGABRT", "undefined symbol: nobody_has_this", "error[build-failed]: 1 of 1 variant could not be made"]
    {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    // Where nobody asks, it is put in place, and counts as linked. Asked again, it is refused although nothing has changed.
    let run = sandbox.build(&dir, &["--no-load-check"]);
    assert_eq!((stage(&dir).as_str(), &run.reason("variant-finished")[0]["stage"]), ("linked", &"linked".into()));
    assert_eq!(sandbox.run(&dir, &["build"]).code, Some(1));
    write(&dir, "tiny.cpp", &at_load(""));
    sandbox.build(&dir, &["--require-load-check"]);
    assert_eq!(stage(&dir), "loaded");
}

/// Nothing to call: the library is no kernel, whatever it does when it is loaded.
/// What is fetched ahead is all that a build needs later, and doctor knows what is missing as the build does.
#[test]
fn what_was_fetched_ahead_builds_offline() {
    let sandbox = Sandbox::without_torch();
    let dir = project(&sandbox.path("ahead"));
    let releases = kiln::call::runtime::usual_releases(&kiln_toolchain::Catalog::embedded().unwrap(), "linux-x86_64");
    let (oldest, newest) = (releases.first().unwrap().to_string(), releases.last().unwrap().to_string());
    let fetch = |release: &str| {
        // The only command that sees the caller's environment: it may name the index and the way to it.
        let mut command = std::process::Command::new(support::kiln_program());
        command.args(["toolchain", "fetch", &format!("tvm-ffi=={release}")]).env("KILN_CACHE_DIR", sandbox.cache());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let agree = |expected: Option<&str>| {
        let verdict = sandbox.run(&dir, &["--offline", "doctor", "cpu"]);
        let build = sandbox.run(&dir, &["--offline", "build", "--backend", "cpu"]);
        assert_eq!(
            (verdict.code, build.code),
            expected.map_or((Some(0), Some(0)), |_| (Some(1), Some(1))),
            "{} {}",
            verdict.stdout,
            build.stderr
        );
        for said in [&verdict.stdout, &build.stderr] {
            assert!(
                expected.is_none_or(|release| said.contains(&format!("run `kiln toolchain fetch tvm-ffi=={release}` while online"))),
                "{said}"
            );
        }
    };
    agree(Some(&oldest));
    fetch(&oldest);
    agree(Some(&newest));
    fetch(&newest);
    agree(None);
    assert_eq!(stage(&dir), "loaded");
}

#[test]
fn a_library_without_functions_is_no_kernel() {
    let sandbox = Sandbox::new();
    let dir = project(&sandbox.path("project"));
    write(&dir, "binding.cpp", "int tiny();\nint other() { return tiny(); }\n");
    let run = sandbox.run(&dir, &["build"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("error[") && run.stderr.contains(VARIANT), "{}", run.stderr);
    assert!(run.stderr.contains("__tvm_ffi_"), "{}", run.stderr);
    assert!(tree::extensions(&dir.join("build")).is_empty());
}

#[test]
fn what_cannot_be_loaded_is_refused_where_it_must_be() {
    let sandbox = Sandbox::new();
    let torch = ProjectBuilder::new().torch("stable-abi = { cpu = \"2.11\" }").kernel("empty", &[], &[], "").write(&sandbox.path("torch"));
    let run = sandbox.run(&torch, &["build", "--require-load-check"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error[not-loaded]: 1 of 1 variant cannot be loaded on this machine"), "{}", run.stderr);
    assert!(run.stderr.contains("torch-stable-abi211-cpu-x86_64-linux: only a Python with torch loads it"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: without `--require-load-check`") && !torch.join("build").exists(), "{}", run.stderr);
    // Without it, what was not loaded does not count as loaded.
    let run = sandbox.build(&torch, &[]);
    assert_eq!(run.reason("variant-finished")[0]["stage"], "linked");

    let dir = project(&sandbox.path("project"));
    let run = sandbox.run(&dir, &["build", "--require-load-check", "--target", "aarch64-linux"]);
    assert!(run.code == Some(1) && run.stderr.contains("it is for aarch64-linux, and this is x86_64-linux"), "{}", run.stderr);
    let both = sandbox.run(&dir, &["build", "--require-load-check", "--no-load-check"]);
    assert!(both.code == Some(2) && both.stderr.contains("cannot be used with"), "{}", both.stderr);
    let zero = sandbox.run(&dir, &["build", "--load-timeout", "0"]);
    assert_eq!(zero.code, Some(2), "{}", zero.stderr);
}

/// A directory whose name is no text: the runtime takes no such path, and the kernel is loaded all the same.
#[test]
fn directories_may_have_any_name() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let dir = project(&sandbox.path(std::ffi::OsStr::from_bytes(b"kern \xff")));
    sandbox.build(&dir, &["--require-load-check"]);
    assert_eq!(stage(&dir), "loaded");
    let run = sandbox.run(&dir, &["call", "-f", "tiny"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "tiny() returned none\n"), "{}", run.stderr);
}

/// Ctrl-C while a kernel hangs in its load: the build ends, and so does what it has started.
#[test]
fn an_interrupt_ends_a_load_that_hangs() {
    let sandbox = Sandbox::new();
    let dir = project(&sandbox.path("project"));
    let mark = sandbox.path("loading");
    // With a child of its own, which the interrupt has to end too.
    let body = format!(
        "int pid = fork(); if (pid == 0) {{ sleep(600); _exit(0); }} FILE *mark = fopen(\"{}\", \"w\"); fprintf(mark, \"%d\", pid); \
         fclose(mark); for (;;) pause();",
        mark.display()
    );
    write(&dir, "tiny.cpp", &at_load(&body));
    let scratch = sandbox.path("tmp");
    fs::create_dir(&scratch).unwrap();
    let nothing_is_there = || fs::read_dir(&scratch).unwrap().count() == 0;
    let mut build = sandbox.kiln(&dir, &["build"]);
    let mut child = build.env("TMPDIR", &scratch).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _deadline = Deadline::of(&child);
    while !mark.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Not even for a moment: a build may be killed, and whoever comes next looks into the work directory alone.
    assert!(nothing_is_there());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let run = Run::from(child.wait_with_output().unwrap());
    assert!(run.code == Some(130) && run.stderr.contains("the build was interrupted"), "{:?} {}", run.code, run.stderr);
    assert!(!run.stderr.contains("error[load]") && tree::extensions(&dir.join("build")).is_empty(), "{}", run.stderr);
    assert!(nothing_is_there() && fs::read_dir(dir.join(".kiln/tmp")).unwrap().count() == 0);
    assert!(is_gone(&fs::read_to_string(&mark).unwrap()), "what the kernel has started still runs");
}
