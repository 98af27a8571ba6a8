//! Real compilers for the tests.

#![allow(dead_code, reason = "every test program uses a part of this")]

use std::path::Path;
use std::process::Command;

/// Runs a program in `dir` and gives its stdout. A failing program fails the test.
pub(crate) fn run(dir: &Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(dir).env("LC_ALL", "C").output();
    let output = output.unwrap_or_else(|cause| panic!("{program}: {cause}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles C++ text with g++ into `dir/out` and gives the file's bytes.
pub(crate) fn gxx(dir: &Path, out: &str, args: &[&str], source: &str) -> Vec<u8> {
    std::fs::write(dir.join("in.cpp"), source).unwrap();
    let mut all = vec!["-o", out];
    all.extend(args);
    all.push("in.cpp");
    run(dir, "g++", &all);
    std::fs::read(dir.join(out)).unwrap()
}

/// The object that most tests read: something of every kind.
pub(crate) const KINDS: &str = r#"
extern "C" {
    extern int plain_data;
    extern __thread int wanted_tls;
    void wanted_function();
    __attribute__((weak)) void maybe();
    __attribute__((visibility("hidden"))) void inside();
    __thread int own_tls = 3;
    int own_data = 4;
    __attribute__((weak)) void own_weak() {}
    __attribute__((visibility("hidden"))) void own_hidden() {}
    __attribute__((visibility("protected"))) void own_protected() {}
    static void *resolve() { return (void *)own_weak; }
    __attribute__((ifunc("resolve"))) void own_ifunc();
}
template <typename T> struct Counter { static int &count() { static int n; return n; } };
static int own_static() { return plain_data; }
extern "C" int own_function() {
    wanted_function();
    inside();
    if (maybe) maybe();
    own_ifunc();
    return wanted_tls + own_static() + Counter<int>::count();
}
"#;
