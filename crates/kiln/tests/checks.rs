//! The checks at the end of a build, and on demand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::project::{BINDING, ProjectBuilder, usual};
use support::{Run, Sandbox, text, tree};

/// A project whose extension calls a C function of torch when it is loaded.
fn calling(name: &str) -> ProjectBuilder {
    let call = format!("extern \"C\" int {name}(...);\n__attribute__((constructor)) static void call() {{ {name}(); }}\n");
    let project = ProjectBuilder::new().file("binding.cpp", &format!("{BINDING}{call}"));
    project.file("plain.cpp", "int tiny_plain() { return 1; }\n").kernel("plain", &[], &["plain.cpp"], "")
}

/// A sandbox with a project that was built for torch's stable ABI, and takes a function of torch 2.10 from it.
fn built() -> (Sandbox, PathBuf, PathBuf) {
    let sandbox = Sandbox::new();
    let dir = calling("torch_call_dispatcher").torch(STABLE).write(&sandbox.path("project"));
    sandbox.build(&dir, &[]);
    let variant = tree::extensions(&dir.join("build")).first().unwrap().parent().unwrap().to_owned();
    (sandbox, dir, variant)
}

/// The report of a check, and its exit code.
fn report(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> (Option<i32>, Value) {
    let output = sandbox.kiln(dir, &[args, &["--format", "json"]].concat()).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|cause| panic!("{cause}: {}", text(&output.stderr)));
    (output.status.code(), report)
}

/// The codes of the findings and of the failures of a report.
fn codes(report: &Value) -> (Vec<&str>, Vec<&str>) {
    let of = |key: &str| report[key].as_array().unwrap().iter().map(|remark| remark["rule"].as_str().unwrap()).collect();
    (of("findings"), of("failures"))
}

fn code(report: &(Option<i32>, Value)) -> (Option<i32>, (Vec<&str>, Vec<&str>)) {
    (report.0, codes(&report.1))
}

/// What a `[torch]` table says of the stable ABI.
const STABLE: &str = "stable-abi = { cpu = \"2.11\" }";
/// A function of torch 2.13.
const NEWER: &str = "torch_delete_generator";
const CLEAN: (Option<i32>, (Vec<&str>, Vec<&str>)) = (Some(0), (Vec::new(), Vec::new()));

/// Links a shared object with gcc and gives its bytes.
fn linked(dir: &Path, source: &str, args: &[&str]) -> Vec<u8> {
    let (input, output) = (dir.join("other.c"), dir.join("other.so"));
    fs::write(&input, source).unwrap();
    let mut command = Command::new("gcc");
    command.args(["-shared", "-fPIC", "-nostdlib", "-Wl,-z,noexecstack"]).args(args).arg(&input).arg("-o").arg(&output);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    fs::read(output).unwrap()
}

#[test]
fn what_was_built_is_clean() {
    let (sandbox, dir, variant) = built();
    let name = variant.file_name().unwrap().to_str().unwrap();
    for args in [&["check"][..], &["check-abi"], &["check-builds"], &["check", "build"], &["check", &format!("build/{name}")]] {
        let found = report(&sandbox, &dir, args);
        assert_eq!(code(&found), CLEAN, "{args:?}: {}", found.1);
        assert!(!found.1["files"].as_array().unwrap().is_empty(), "{args:?}");
        assert_eq!(found.1["data"]["manylinux-policy"], "auditwheel 6.8.2");
    }
    // A file inside of a variant is what the variant's name says; the same file elsewhere is only a shared object.
    let extension = tree::extensions(&variant).remove(0);
    assert_eq!(code(&report(&sandbox, &dir, &["check", extension.to_str().unwrap()])), CLEAN);
    let run = Run::of(&mut sandbox.kiln(&dir, &["check"]));
    assert_eq!(run.stderr, "     Checked 3 files: nothing found\n");
}

/// What the checks had nothing to say of is read again only when something changed; what they said is said by every build.
#[test]
fn an_unchanged_variant_is_not_read_again() {
    let (sandbox, dir, variant) = built();
    let note = dir.join(".kiln/unobjected").join(variant.file_name().unwrap());
    let noted = || (fs::read_to_string(&note).unwrap(), fs::metadata(&note).unwrap().modified().unwrap());
    let first = noted();
    sandbox.build(&dir, &[]);
    assert_eq!(noted(), first);
    fs::write(&note, "of another state").unwrap();
    sandbox.build(&dir, &[]);
    let again = noted();
    assert!(again.0 == first.0 && again.1 != first.1);
    // Another declaration for the same bytes, and another file beside them.
    fs::write(dir.join("torch-ext/tiny/more.py"), "").unwrap();
    sandbox.build(&dir, &[]);
    assert_ne!(noted().0, first.0);
}

/// Names of the stable ABI that are newer than what is declared are found by the name of the directory alone.
#[test]
fn an_extension_that_promises_too_much() {
    let (sandbox, dir, variant) = built();
    let wrong = variant.with_file_name("torch-stable-abi29-cpu-x86_64-linux");
    fs::rename(&variant, &wrong).unwrap();
    let found = report(&sandbox, &dir, &["check-abi"]);
    let (findings, failures) = codes(&found.1);
    assert!(found.0 == Some(1) && failures.is_empty() && findings.iter().all(|rule| *rule == "torch-shim-newer"), "{}", found.1);
    let finding = &found.1["findings"][0];
    assert!(finding["detail"].as_str().unwrap().ends_with("and the variant is for torch 2.9 and newer"), "{finding}");
    assert_eq!(code(&report(&sandbox, &dir, &["check-abi", "--torch-stable-abi", "2.11"])), CLEAN);
}

/// A finding stops the package and names the source that brought the symbol; what is in place stays.
#[test]
fn a_build_that_breaks_a_rule_is_not_placed() {
    let sandbox = Sandbox::new();
    let dir = calling("torch_call_dispatcher").torch(STABLE).write(&sandbox.path("project"));
    sandbox.build(&dir, &["--unique-id", "1"]);
    let before = tree::files(&dir.join("build"));
    // Of torch 2.13, in an extension for 2.11 and newer.
    calling(NEWER).torch(STABLE).write(&dir);
    let run = Run::of(&mut sandbox.kiln(&dir, &["build", "--unique-id", "1", "--message-format", "json"]));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let remarks = run.reason("check");
    let [remark] = remarks.as_slice() else { panic!("{remarks:?}") };
    assert_eq!((&remark["check"]["rule"], &remark["check"]["symbol"]), (&json!("torch-shim-newer"), &json!(NEWER)));
    assert_eq!(remark["check"]["caused_by"], json!(["binding.cpp"]));
    assert_eq!(run.reason("variant-failed").first().map(|failed| failed["code"].clone()), Some(json!("checks")));
    assert_eq!(tree::files(&dir.join("build")), before);

    let run = Run::of(&mut sandbox.kiln(&dir, &["build", "--unique-id", "1"]));
    let said: Vec<&str> = run.stderr.lines().skip_while(|line| !line.starts_with("error[")).take(5).collect();
    assert_eq!(
        said,
        [
            &format!("error[torch-shim-newer]: `{NEWER}` came with torch 2.13, and the variant is for torch 2.11 and newer"),
            "  in torch-stable-abi211-cpu-x86_64-linux/_tiny_cpu_1.abi3.so",
            &format!("  found undefined `{NEWER}` without a version"),
            "  from binding.cpp",
            "hint: declare `stable-abi = \"2.13\"`, or use what torch 2.11 has",
        ]
    );
}

#[test]
fn objects_that_were_exchanged() {
    let (sandbox, dir, variant) = built();
    let extension = tree::extensions(&variant).remove(0);
    let id = extension.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
    let source = format!("extern void arc4random(void); void PyInit_{id}(void) {{ arc4random(); }}");
    fs::write(&extension, linked(sandbox.cache(), &source, &["-Wl,-rpath,/opt/lib"])).unwrap();
    let found = report(&sandbox, &dir, &["check"]);
    assert_eq!(code(&found), (Some(1), (vec!["digest", "run-path", "unversioned-symbol"], vec![])), "{}", found.1);
    for (only, codes) in [("run-path", vec!["run-path"]), ("digest", vec!["digest"]), ("machine", vec![])] {
        let exit = if codes.is_empty() { Some(0) } else { Some(1) };
        assert_eq!(code(&report(&sandbox, &dir, &["check", "--only", only])), (exit, (codes, vec![])));
    }
    // Findings of one rule are one section.
    let two = format!("extern void arc4random(void); extern void brand_new(void); void PyInit_{id}(void) {{ arc4random(); brand_new(); }}");
    fs::write(&extension, linked(sandbox.cache(), &two, &[])).unwrap();
    let said = Run::of(&mut sandbox.kiln(&dir, &["check-abi"])).stderr;
    let name = format!("{}/{id}.abi3.so", variant.file_name().unwrap().to_str().unwrap());
    let wanted = format!(
        "error[unversioned-symbol]: 2 in {name}\n  the name `arc4random` is provided by nothing that the file needs\n  the name `brand_new` is provided by \
         nothing that the file needs\nhint: define it, or link with the library that has it; a name that newer systems only have needs another way\n     \
         Checked 1 file: 2 errors, 0 warnings\n"
    );
    assert_eq!(said, wanted);
    // As a library of others it may have a run path, and its names are its own business.
    let file = extension.to_str().unwrap();
    assert_eq!(code(&report(&sandbox, &dir, &["check", "--profile", "library", file])), CLEAN);

    fs::write(&extension, "").unwrap();
    let found = report(&sandbox, &dir, &["check-abi"]);
    assert_eq!(code(&found), (Some(1), (vec!["file-kind"], vec!["empty-file"])), "{}", found.1);
    assert_eq!(code(&report(&sandbox, &dir, &["check", "--only", "digest"])).0, Some(1), "what could not be checked fails all the same");
    fs::remove_file(&extension).unwrap();
    assert_eq!(code(&report(&sandbox, &dir, &["check"])), (Some(1), (vec!["metadata-id", "digest", "file-kind"], vec![])));
}

#[test]
fn metadata_that_do_not_fit() {
    let (sandbox, dir, variant) = built();
    let path = variant.join("metadata.json");
    let good = fs::read_to_string(&path).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&good).unwrap();
        change(&mut value);
        fs::write(&path, value.to_string()).unwrap();
        let found = report(&sandbox, &dir, &["check-builds"]);
        assert_eq!(found.0, Some(1));
        codes(&found.1).0.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(with(&|value| value["backend"]["type"] = json!("cuda")), ["metadata-backend", "metadata-id"]);
    assert_eq!(with(&|value| value["id"] = json!("_other_cpu_1")), ["metadata-id", "metadata-id"]);
    assert_eq!(with(&|value| value["license"] = json!(null)), ["metadata"]);
    assert_eq!(with(&|value| value["digest"] = json!(null)), ["digest"]);
    fs::write(&path, &good).unwrap();
    fs::create_dir(variant.join("__pycache__")).unwrap();
    assert_eq!(code(&report(&sandbox, &dir, &["check-builds"])), (Some(1), (vec!["bytecode"], vec![])));
    fs::remove_dir(variant.join("__pycache__")).unwrap();

    // Another variant beside it, of another state and under a name that nobody reads.
    let other = variant.with_file_name("torch-stable-abi2-11-cpu");
    fs::create_dir(&other).unwrap();
    let mut value: Value = serde_json::from_str(&good).unwrap();
    (value["version"], value["digest"]) = (json!(7), json!({"algorithm": "sha256", "files": {}}));
    fs::write(other.join("metadata.json"), value.to_string()).unwrap();
    let found = report(&sandbox, &dir, &["check"]);
    assert_eq!(code(&found), (Some(1), (vec!["variant-name", "consistent"], vec!["unknown-variant"])), "{}", found.1);
}

/// A check that does not know what a library exports says so instead of passing.
#[test]
fn a_torch_that_is_not_in_the_catalog() {
    let sandbox = Sandbox::new();
    let dir = calling("aoti_torch_device_type_cpu").write(&sandbox.path("project"));
    sandbox.build(&dir, &["--torch", "2.13"]);
    assert_eq!(code(&report(&sandbox, &dir, &["check-abi"])), CLEAN);
    let variant = tree::extensions(&dir.join("build")).first().unwrap().parent().unwrap().to_owned();
    fs::rename(&variant, variant.with_file_name("torch29-cxx11-cpu-x86_64-linux")).unwrap();
    let found = report(&sandbox, &dir, &["check-abi"]);
    assert_eq!(code(&found), (Some(1), (vec![], vec!["unknown-exports"])), "{}", found.1);
}

/// What a link leads to is not what others get.
#[test]
fn links_that_leave_a_variant() {
    let (sandbox, dir, variant) = built();
    let extension = tree::extensions(&variant).remove(0);
    let outside = sandbox.path("outside.so");
    fs::rename(&extension, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &extension).unwrap();
    let found = report(&sandbox, &dir, &["check"]);
    assert_eq!(code(&found), (Some(1), (vec!["plain-files"], vec![])), "{}", found.1);
    fs::remove_file(&extension).unwrap();
    fs::rename(&outside, &extension).unwrap();
    assert_eq!(code(&report(&sandbox, &dir, &["check"])), CLEAN);
}

#[test]
fn options_and_forms() {
    let (sandbox, dir, _) = built();
    let run = |args: &[&str]| Run::of(&mut sandbox.kiln(&dir, args));
    let unknown = run(&["check", "--only", "glibc"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.starts_with("error[usage]: there is no rule `glibc`\nhint: the rules are floor-version, "),
        "{}",
        unknown.stderr
    );
    let unknown = run(&["check-abi", "-m", "manylinux_2_99"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("there is no policy `manylinux_2_99`"), "{}", unknown.stderr);
    assert_eq!(run(&["check-abi", "--manylinux", "manylinux_2_34", "-p", "3.9", "--macos", "15.0"]).code, Some(0));
    assert_eq!(run(&["check-abi", "-p", "three"]).code, Some(2));
    // An older Python than the names that the module's start needs.
    let old = run(&["check-abi", "-p", "3.1"]);
    assert!(old.code == Some(1) && old.stderr.contains("error[python-abi-newer]"), "{}", old.stderr);
    // What is not there keeps nothing else from being checked, and the report from being one.
    let missing = report(&sandbox, &dir, &["check", "nowhere", "."]);
    assert_eq!(code(&missing), (Some(1), (vec![], vec!["unreadable"])), "{}", missing.1);
    assert!(missing.1["files"].as_array().unwrap().len() > 1, "{}", missing.1);
    fs::create_dir(sandbox.path("other")).unwrap();
    let other = Run::of(&mut sandbox.kiln(&sandbox.path(""), &["check", "other"]));
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.starts_with("error[file-kind]: there is no shared object in the directory\n  in other\n"), "{}", other.stderr);
    let empty = sandbox.path("empty");
    usual().write(&empty);
    let unbuilt = Run::of(&mut sandbox.kiln(&empty, &["check"]));
    assert!(unbuilt.code == Some(1) && unbuilt.stderr.contains("`kiln build` makes them"), "{}", unbuilt.stderr);
    // A file has no metadata that could be checked.
    let of_file = Run::of(&mut sandbox.kiln(&dir, &["check-builds", "build.toml"]));
    assert!(of_file.code == Some(1) && of_file.stderr.contains("error[no-variants]"), "{}", of_file.stderr);

    let output = sandbox.kiln(&dir, &["check", "--format", "sarif"]).output().unwrap();
    let sarif: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&sarif["version"], &sarif["runs"][0]["invocations"][0]["executionSuccessful"]), (&json!("2.1.0"), &json!(true)));
    assert_eq!(sarif["runs"][0]["results"], json!([]));
}

/// Names of files and out of files may hold what a terminal obeys, and line breaks: people see them escaped, programs as they are.
#[test]
fn names_that_a_terminal_would_obey() {
    const OBEYED: &str = "\u{1b}[31m\n\r\u{7}";
    let sandbox = Sandbox::new();
    let source = "extern void EVILEVIL_a(void); extern void EVILEVIL_b(void); void PyInit_x(void) { EVILEVIL_a(); EVILEVIL_b(); }";
    let plain = linked(sandbox.cache(), source, &["-Wl,-rpath,/EVILEVIL", "-Wl,-soname,EVILEVIL.so"]);
    let mut bytes = plain;
    let place = |bytes: &[u8]| bytes.windows(OBEYED.len()).position(|part| part == b"EVILEVIL");
    while let Some(at) = place(&bytes) {
        bytes[at..at + OBEYED.len()].copy_from_slice(OBEYED.as_bytes());
    }
    let dir = sandbox.path("shipped");
    fs::create_dir(&dir).unwrap();
    let names = [format!("a{OBEYED}error[forged]: b.so"), "c\u{202e}os.so".to_owned(), "d\u{9b}31m.so".to_owned()];
    for name in &names {
        fs::write(dir.join(name), &bytes).unwrap();
    }
    fs::write(dir.join(format!("empty{OBEYED}.so")), "").unwrap();
    let extension = format!("shipped/{}", names[0]);
    for args in [&["check", "shipped"][..], &["check-abi", "shipped"], &["check", &extension]] {
        let run = Run::of(&mut sandbox.kiln(&sandbox.path(""), args));
        assert_eq!(run.code, Some(1));
        let bad = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!run.stderr.contains(bad) && !run.stdout.contains(bad), "{:?}", run.stderr);
        let begins = ["error[", "  in ", "  found ", "hint: ", "  ", "     Checked "];
        assert!(run.stderr.lines().all(|line| begins.iter().any(|begin| line.starts_with(begin))), "{}", run.stderr);
        assert!(!run.stderr.contains("\nerror[forged]") && run.stderr.contains("\\u{1b}[31m\\u{a}\\u{d}\\u{7}"), "{}", run.stderr);
    }
    let (_, found) = report(&sandbox, &sandbox.path(""), &["check", "shipped"]);
    let symbols: Vec<&str> = found["findings"].as_array().unwrap().iter().filter_map(|finding| finding["symbol"].as_str()).collect();
    assert!(symbols.contains(&format!("{OBEYED}_a").as_str()), "{symbols:?}");
    let files: Vec<&str> = found["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    assert!(files.contains(&format!("shipped/{}", names[0]).as_str()), "{files:?}");
    let output = sandbox.kiln(&sandbox.path(""), &["check", "shipped", "--format", "sarif"]).output().unwrap();
    let sarif: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = sarif.to_string();
    assert!(text.contains("shipped/a%1B%5B31m%0A%0D%07error%5Bforged%5D%3A%20b.so"), "{text}");
}

/// Everyday C++ that asks a new system for much: every line of it needs a name that is newer than the floor.
const KITCHEN: &str = r#"
#include <charconv>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <memory_resource>
#include <mutex>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <dlfcn.h>
#include <sys/stat.h>

int tiny_kitchen(double x) {
  std::ostringstream out;
  out << std::pow(x, x) + std::hypot(x, x) + std::exp(x) + std::log(x);
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof digits, x);
  std::string text(digits, end.ptr);
  struct stat about;
  int found = stat(text.c_str(), &about) + std::filesystem::exists(text) + std::regex_match(text, std::regex("[0-9.]+"));
  std::pmr::vector<int> numbers(std::pmr::get_default_resource());
  numbers.push_back(found);
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  std::thread other([&] { std::lock_guard lock(mutex); done = true; ready.notify_all(); });
  { std::unique_lock lock(mutex); ready.wait(lock, [&] { return done; }); }
  other.join();
  auto pointer = std::make_exception_ptr(std::runtime_error(out.str()));
  try { std::rethrow_exception(pointer); } catch (const std::exception &error) { text += error.what(); }
  return int(text.size()) + numbers[0] + (dlsym(nullptr, "nothing") != nullptr) + int(std::vector<double>(numbers.size() + 3).size());
}
"#;

/// What Kiln accepts, the checkers of others accept as well, at every level of optimisation.
#[test]
fn everyday_code_keeps_to_the_floor() {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join("oracles/bin/python");
    assert!(python.exists(), "`{}` is missing: run `cargo xtask setup`", python.display());
    let sandbox = Sandbox::new();
    let call =
        "int tiny_kitchen(double);\n__attribute__((constructor)) static void call() { if (tiny_kitchen(1.5) == 7) __builtin_trap(); }\n";
    let project = |name: &str, level: &str| {
        let project = ProjectBuilder::new().torch(STABLE).file("binding.cpp", &format!("{BINDING}{call}")).file("kitchen.cpp", KITCHEN);
        project.kernel("kitchen", &[], &["kitchen.cpp"], &format!("cxx-flags = [\"{level}\"]")).write(&sandbox.path(name))
    };
    let mut files = Vec::new();
    for level in ["-O0", "-O2"] {
        let dir = project(level, level);
        let run = sandbox.build(&dir, &[]);
        assert_eq!((run.reason("check"), run.reason("warning")), (vec![], vec![]), "{level}");
        assert_eq!(code(&report(&sandbox, &dir, &["check"])), CLEAN, "{level}");
        files.extend(tree::extensions(&dir.join("build")));
    }

    // The same with what the host has: nobody promised anything, and asked for it, the check names what is too new.
    let dir = project("host", "-O0");
    fs::write(dir.join("kiln.toml"), "[build]\nfloor = \"host\"\n").unwrap();
    sandbox.build(&dir, &[]);
    let found = report(&sandbox, &dir, &["check-abi", "-m", "manylinux_2_28"]);
    let symbols: Vec<&str> = found.1["findings"].as_array().unwrap().iter().filter_map(|finding| finding["symbol"].as_str()).collect();
    assert!(found.0 == Some(1) && codes(&found.1).0.iter().all(|rule| *rule == "floor-version"), "{}", found.1);
    assert!(symbols.contains(&"pow") && symbols.contains(&"stat") && symbols.len() > 15, "{symbols:?}");
    files.extend(tree::extensions(&dir.join("build")));

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-abi/tests/python/oracles.py");
    let output = Command::new(python).arg(script).args(&files).output().unwrap();
    let verdicts = text(&output.stdout);
    let (ours, hosts): (Vec<&str>, Vec<&str>) = verdicts.lines().partition(|line| !line.starts_with("2\t"));
    assert!(ours.len() == 6 && ours.iter().all(|line| line.ends_with("\tok")), "{verdicts}{}", text(&output.stderr));
    assert!(hosts.iter().any(|line| line.starts_with("2\tauditwheel\tmanylinux_2_3")), "{verdicts}");
}

/// Without a policy that is asked for, that of the build counts: one for its host promises nothing.
#[test]
fn a_floor_that_is_the_hosts() {
    let sandbox = Sandbox::new();
    let call = "#include <cmath>\nstatic volatile double given = 1.5;\n\
                __attribute__((constructor)) static void call() { given = std::pow(given, given); }\n";
    let dir =
        calling("torch_call_dispatcher").torch(STABLE).file("binding.cpp", &format!("{BINDING}{call}")).write(&sandbox.path("project"));
    fs::write(dir.join("kiln.toml"), "[build]\nfloor = \"host\"\n").unwrap();
    sandbox.build(&dir, &[]);
    let extension = tree::extensions(&dir.join("build")).remove(0);
    let extension = extension.to_str().unwrap();
    for args in [&["check"][..], &["check-abi"], &["check", extension]] {
        let found = report(&sandbox, &dir, args);
        assert_eq!(code(&found), (Some(0), (vec!["host-floor"], vec![])), "{args:?}: {}", found.1);
        assert_eq!(found.1["findings"][0]["level"], "note");
    }
    let found = report(&sandbox, &dir, &["check-abi", "-m", "manylinux_2_28"]);
    assert_eq!(code(&found), (Some(1), (vec!["floor-version"], vec![])), "{}", found.1);
}

/// On demand as by a build: directories of this machine are looked for in extensions.
#[test]
fn a_path_of_this_machine() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("project");
    let text = format!(
        "static const char *volatile place;\n__attribute__((constructor)) static void keep() {{ place = \"{}/plain.cpp\"; }}\n",
        path.display()
    );
    let dir = calling("torch_call_dispatcher").torch(STABLE).file("binding.cpp", &format!("{BINDING}{text}")).write(&path);
    let run = sandbox.build(&dir, &[]);
    assert_eq!(run.reason("check").len(), 1);
    let extension = tree::extensions(&dir.join("build")).remove(0);
    for args in [&["check"][..], &["check-abi"], &["check", "build"], &["check", extension.to_str().unwrap()]] {
        let found = report(&sandbox, &dir, args);
        assert_eq!(code(&found), (Some(0), (vec!["host-path"], vec![])), "{args:?}: {}", found.1);
        assert_eq!(found.1["findings"][0]["level"], "warning");
    }
}

/// A build record that cannot be read is told by every check of variants: what it says of a floor would count.
#[test]
fn a_build_record_that_says_nothing() {
    let (sandbox, dir, variant) = built();
    let name = variant.file_name().unwrap().to_str().unwrap();
    let file = dir.join("build/kiln-build.json");
    let right = fs::read_to_string(&file).unwrap();
    let floor = right.find("\"policy\": \"").unwrap() + "\"policy\": \"".len();
    let of_variant = |value: &str| format!("{{\"schema\": 1, \"variants\": {{\"{name}\": {value}}}}}");
    let texts = [
        right[..right.len() / 2].to_owned(),
        String::new(),
        "[]".to_owned(),
        "{\"schema\": 2, \"variants\": {}}".to_owned(),
        of_variant("5"),
        of_variant("{}"),
        format!("{}no{}", &right[..floor], &right[floor..]),
    ];
    let extension = tree::extensions(&variant).remove(0);
    let extension = extension.to_str().unwrap();
    for number in 0..texts.len() + 2 {
        let _gone = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
        let code = match texts.get(number) {
            Some(text) => {
                fs::write(&file, text).unwrap();
                "damaged-record"
            }
            None => {
                let is_directory = number == texts.len();
                if is_directory { fs::create_dir(&file) } else { std::os::unix::fs::symlink("nowhere", &file) }.unwrap();
                "unreadable"
            }
        };
        for args in [&["check"][..], &["check-abi"], &["check-builds"], &["check", extension], &["check", &format!("build/{name}")]] {
            // Which floor a variant was built for does not concern its metadata.
            if args == ["check-builds"] && (4..=6).contains(&number) {
                continue;
            }
            let found = report(&sandbox, &dir, args);
            assert_eq!(codes(&found.1), (Vec::new(), vec![code]), "{number} {args:?}: {}", found.1);
            assert_eq!((found.0, &found.1["failures"][0]["file"]), (Some(1), &json!("kiln-build.json")), "{number} {args:?}");
        }
    }
    fs::remove_file(&file).unwrap();
    fs::write(&file, "{").unwrap();
    let run = Run::of(&mut sandbox.kiln(&dir, &["check-abi"]));
    insta::assert_snapshot!(run.stderr, @"
    error[damaged-record]: the check could not run: it is no build record of this Kiln: EOF while parsing an object at line 1 column 1
      in kiln-build.json
    hint: build again, or remove the file: then the default floor is checked
         Checked 1 file: 1 error, 0 warnings
    ");
    // A build begins a new one, and says so.
    let run = Run::of(&mut sandbox.kiln(&dir, &["build"]));
    assert!(run.stderr.contains("is no build record of this Kiln: ") && run.stderr.contains("; a new one is begun\n"), "{}", run.stderr);
    assert_eq!(code(&report(&sandbox, &dir, &["check"])), CLEAN);
    // Without any, nothing is promised.
    fs::remove_file(&file).unwrap();
    assert_eq!(code(&report(&sandbox, &dir, &["check"])), CLEAN);
}

/// Without its metadata it is not known what an extension is called: the check of objects says so when it runs alone.
#[test]
fn metadata_that_say_nothing() {
    let (sandbox, dir, variant) = built();
    fs::write(variant.join("metadata.json"), "{").unwrap();
    let found = report(&sandbox, &dir, &["check-abi"]);
    let (_, failures) = codes(&found.1);
    assert_eq!((found.0, failures), (Some(1), vec!["unreadable"]), "{}", found.1);
}
