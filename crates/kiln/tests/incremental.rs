//! What runs again after an edit, and what does not: counted in processes of the real compiler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use support::project::{ProjectBuilder, commit_all, kept, usual, write};
use support::{Sandbox, tree};

/// Changes a file so that its stamp changes even on a coarse clock.
fn edit(dir: &Path, name: &str, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(dir.join(name)).unwrap();
    let new = change(text.clone());
    assert_ne!(text, new, "`{name}` was not changed");
    write(dir, name, &new);
}

/// A sandbox and a project in a dirty git tree that was just built.
fn dirty_project() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let dir = usual().file("README.md", "tiny\n").write(&sandbox.path("project"));
    commit_all(&dir);
    edit(&dir, "README.md", |text| text + "changed\n");
    sandbox.build(&dir, &[]);
    sandbox.started();
    (sandbox, dir)
}

/// Builds and asserts which units were compiled, how many links ran, and that nothing else was started.
fn rebuild(sandbox: &Sandbox, dir: &Path, compiled: &[&str], links: usize) {
    let run = sandbox.build(dir, &[]);
    let started = sandbox.started();
    assert_eq!(run.ran("Compiling"), compiled);
    assert_eq!((started.compiles(), started.links(), started.probes()), (compiled.len(), links, 0), "{started:?}");
    assert_eq!(run.ran("Linking").len(), links);
}

#[test]
fn nothing_changed() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    commit_all(&dir);
    let first = sandbox.build(&dir, &[]);
    let (ran, up_to_date, failed, skipped) = first.steps();
    assert_eq!((up_to_date, failed, skipped), (0, 0, 0));
    let started = sandbox.started();
    // A binding, two components, and the module initialisation.
    assert_eq!((started.compiles(), started.links()), (4, 1), "{started:?}");
    assert!(started.probes() > 0, "the compiler was not asked: is the count broken?");

    let stamps = || ["build", ".kiln/out", ".kiln/runs"].map(|name| tree::stamps(&dir.join(name)));
    let before = stamps();
    for _ in 0..2 {
        let again = sandbox.build(&dir, &[]);
        assert_eq!(again.steps(), (0, ran, 0, 0));
        assert_eq!(again.reason("variant-finished")[0]["changed"], false);
        let started = sandbox.started();
        assert!(started.beside_git().is_empty(), "{started:?}");
        assert!(started.of("git").len() <= 2, "{started:?}");
        // The run's own list is touched: its time says which graph was run last.
        let (after, before) = (stamps(), &before);
        assert_eq!((&after[0], &after[1]), (&before[0], &before[1]));
    }
}

#[test]
fn nothing_changed_without_git() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    sandbox.build(&dir, &[]);
    sandbox.started();
    sandbox.build(&dir, &[]);
    assert!(sandbox.started().0.is_empty());
}

#[test]
fn a_second_checkout_starts_no_compiler() {
    let sandbox = Sandbox::new();
    let mut dirs = Vec::new();
    for (name, compiles, links) in [("first", 4, 1), ("a second, elsewhere", 0, 0)] {
        let dir = usual().write(&sandbox.path(name));
        commit_all(&dir);
        sandbox.build(&dir, &[]);
        let started = sandbox.started();
        assert_eq!((started.compiles(), started.links(), started.probes() > 0), (compiles, links, links > 0), "{started:?}");
        dirs.push(dir);
    }
    tree::assert_equal(&dirs[0].join("build"), &dirs[1].join("build"));
    // What is gone comes back, and another commit makes what names the ops only.
    fs::remove_dir_all(dirs[1].join("build")).unwrap();
    fs::remove_dir_all(dirs[1].join(".kiln")).unwrap();
    sandbox.build(&dirs[1], &[]);
    assert!(sandbox.started().beside_git().is_empty());
    tree::assert_equal(&dirs[0].join("build"), &dirs[1].join("build"));
    write(&dirs[1], "README.md", "more\n");
    commit_all(&dirs[1]);
    let renamed = sandbox.build(&dirs[1], &[]);
    assert_eq!(renamed.ran("Compiling"), ["binding.cpp"]);
    assert_eq!(sandbox.started().links(), 1);
}

#[test]
fn a_comment_that_moves_a_line_number_compiles_and_links_once() {
    let (sandbox, dir) = dirty_project();
    edit(&dir, "checked/checked.cpp", |text| format!("// one line more\n{text}"));
    rebuild(&sandbox, &dir, &["checked/checked.cpp"], 1);
    rebuild(&sandbox, &dir, &[], 0);
}

#[test]
fn a_comment_that_moves_nothing_compiles_once_and_links_nothing() {
    let (sandbox, dir) = dirty_project();
    let before = tree::stamps(&dir.join("build"));
    edit(&dir, "checked/checked.cpp", |text| text + "// the end\n");
    rebuild(&sandbox, &dir, &["checked/checked.cpp"], 0);
    edit(&dir, "plain/plain.cpp", |text| format!("// moved, but nobody asks for the line\n{text}"));
    rebuild(&sandbox, &dir, &["plain/plain.cpp"], 0);
    assert_eq!(before, tree::stamps(&dir.join("build")));
}

#[test]
fn a_header_runs_exactly_its_users() {
    let (sandbox, dir) = dirty_project();
    edit(&dir, "include/shared.h", |text| text.replace('3', "5"));
    rebuild(&sandbox, &dir, &["checked/checked.cpp", "plain/plain.cpp"], 1);
    edit(&dir, "include/only_plain.h", |text| text.replace('4', "6"));
    rebuild(&sandbox, &dir, &["plain/plain.cpp"], 1);
    edit(&dir, "include/only_plain.h", |text| text.replace('6', "4"));
    edit(&dir, "include/shared.h", |text| text.replace('5', "3"));
    // All is as it was in the first build.
    rebuild(&sandbox, &dir, &[], 0);
}

/// A compiler takes the first header of a name: beside the file that includes it, then in one include directory after the other.
#[test]
fn a_new_header_in_front_of_another_runs_the_users_of_that_one() {
    let (sandbox, dir) = dirty_project();
    write(&dir, "plain/shared.h", "#pragma once\n#define FACTOR 5\n");
    rebuild(&sandbox, &dir, &["plain/plain.cpp"], 1);
    rebuild(&sandbox, &dir, &[], 0);
    fs::remove_file(dir.join("plain/shared.h")).unwrap();
    rebuild(&sandbox, &dir, &[], 0);

    let sandbox = Sandbox::new();
    let dir = ProjectBuilder::new()
        .file("second/deep/x.h", "#define X 1\n")
        .file("first/other.h", "\n")
        .file("a.cpp", &format!("#include <deep/x.h>\nint tiny_a() {{ return X; }}\n{}", kept("tiny_a()")))
        .kernel("a", &[], &["a.cpp"], "include = [\"first\", \"second\"]")
        .write(&sandbox.path("two"));
    commit_all(&dir);
    write(&dir, "first/other.h", "\n\n");
    sandbox.build(&dir, &[]);
    sandbox.started();
    write(&dir, "first/deep/x.h", "#define X 2\n");
    rebuild(&sandbox, &dir, &["a.cpp"], 1);
    rebuild(&sandbox, &dir, &[], 0);
}

#[test]
fn touching_runs_nothing() {
    let (sandbox, dir) = dirty_project();
    let before = tree::stamps(&dir.join("build"));
    for name in ["checked/checked.cpp", "include/shared.h", "binding.cpp", "build.toml"] {
        let file = fs::File::options().append(true).open(dir.join(name)).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    }
    // Written anew with the same bytes, as an editor or a checkout does.
    let text = fs::read(dir.join("plain/plain.cpp")).unwrap();
    fs::remove_file(dir.join("plain/plain.cpp")).unwrap();
    fs::write(dir.join("plain/plain.cpp"), text).unwrap();
    rebuild(&sandbox, &dir, &[], 0);
    edit(&dir, "README.md", |text| text + "once more\n");
    rebuild(&sandbox, &dir, &[], 0);
    assert_eq!(before, tree::stamps(&dir.join("build")));
}

#[test]
fn a_deleted_header_is_the_compilers_own_error() {
    let (sandbox, dir) = dirty_project();
    let before = tree::files(&dir.join("build"));
    fs::remove_file(dir.join("include/only_plain.h")).unwrap();
    let run = sandbox.run(&dir, &["build"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("plain/plain.cpp:2:10: fatal error: only_plain.h: No such file or directory"), "{}", run.stderr);
    assert!(run.stderr.contains("error[step-failed]: failed to compile `plain/plain.cpp`: exit code 1\n"), "{}", run.stderr);
    let started = sandbox.started();
    assert_eq!((started.compiles(), started.links(), started.probes()), (1, 0, 0), "{started:?}");
    assert_eq!(before, tree::files(&dir.join("build")));

    write(&dir, "include/only_plain.h", "#pragma once\n#define OFFSET 4\n");
    rebuild(&sandbox, &dir, &[], 0);
}

#[test]
fn another_source_is_compiled_alone() {
    let (sandbox, dir) = dirty_project();
    write(&dir, "plain/more.cpp", "int tiny_more() { return 1; }\n");
    edit(&dir, "build.toml", |text| text.replace("\"plain/plain.cpp\"", "\"plain/plain.cpp\", \"plain/more.cpp\""));
    rebuild(&sandbox, &dir, &["plain/more.cpp"], 1);
    edit(&dir, "build.toml", |text| text.replace(", \"plain/more.cpp\"", ""));
    rebuild(&sandbox, &dir, &[], 0);
}

#[test]
fn flags_are_a_components_own() {
    let (sandbox, dir) = dirty_project();
    edit(&dir, "build.toml", |text| text.replace("[kernel.plain]\n", "[kernel.plain]\ncxx-flags = [\"-DEXTRA\"]\n"));
    // The unit does not look at it: its object is the same, and so is what is linked from it.
    rebuild(&sandbox, &dir, &["plain/plain.cpp"], 0);
    edit(&dir, "build.toml", |text| text.replace("cxx-flags = [\"-DEXTRA\"]\n", ""));
    rebuild(&sandbox, &dir, &[], 0);
}

/// A project for torch's C++ ABI, so with a variant for each torch, of units that take a moment only.
fn for_each_torch() -> ProjectBuilder {
    ProjectBuilder::new()
        .file("plain.cpp", "int tiny_plain(int x) { return 3 * x; }\n")
        .file("checked.cpp", "#include <torch/headeronly/util/Exception.h>\nvoid tiny_checked(int x) { STD_TORCH_CHECK(x > 3, x); }\n")
        .kernel("plain", &[], &["plain.cpp"], "")
        .kernel("checked", &["torch"], &["checked.cpp"], "")
}

#[test]
fn what_sees_no_torch_is_compiled_once_for_all() {
    let sandbox = Sandbox::new();
    let dir = for_each_torch().write(&sandbox.path("project"));
    let run = sandbox.build(&dir, &["--all", "--torch", "2.11", "--torch", "2.13", "--torch", "2.15"]);
    let module_init = "module_init.c";
    // The binding reads nothing of torch either, but for one of them at another language level.
    let compiled = [&["binding.cpp"; 2][..], &["checked.cpp"; 3], &[module_init, "plain.cpp"]].concat();
    assert_eq!(run.ran("Compiling"), compiled);
    let started = sandbox.started();
    assert_eq!((started.compiles(), started.links()), (7, 3), "{started:?}");
    assert_eq!(run.ran("Generating"), ["exports.map", "module_init.c", "registration.h"]);
    assert_eq!(tree::extensions(&dir.join("build")).len(), 3);
}

#[test]
fn switching_torch_back_and_forth_reuses() {
    let sandbox = Sandbox::new();
    let dir = for_each_torch().write(&sandbox.path("project"));
    let build = |torch: &str| {
        let run = sandbox.build(&dir, &["--torch", torch]);
        let started = sandbox.started();
        (run.ran("Compiling").len(), started.compiles(), started.links())
    };
    assert_eq!(build("2.11"), (4, 4, 1));
    assert_eq!(build("2.13"), (2, 2, 1), "only what sees torch");
    let before = tree::stamps(&dir.join("build"));
    for torch in ["2.11", "2.13", "2.11"] {
        assert_eq!(build(torch), (0, 0, 0));
    }
    assert_eq!(before, tree::stamps(&dir.join("build")));
}

/// Another compiler under the same path is another compiler, and the one before is known again when it is back.
#[test]
fn a_compiler_that_is_replaced_under_its_path_compiles_everything_anew() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    sandbox.build(&dir, &[]);
    sandbox.started();
    let compilers = ["c++", "g++"].map(|name| sandbox.path("bin").join(name));
    let compilers: Vec<_> = compilers.into_iter().filter(|path| path.exists()).collect();
    let originals: Vec<_> = compilers.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(!compilers.is_empty());
    for (path, text) in compilers.iter().zip(&originals) {
        fs::write(path, format!("{text}\n# another one\n")).unwrap();
    }
    let run = sandbox.build(&dir, &[]);
    let started = sandbox.started();
    assert_eq!((run.ran("Compiling").len(), run.ran("Linking").len()), (4, 1), "{}", run.stderr);
    // It may also compile the shims of a floor of its own, unless an earlier run has.
    assert!(started.compiles() >= 4 && started.probes() > 0, "{started:?}");
    sandbox.build(&dir, &[]);
    assert!(sandbox.started().0.is_empty());
    for (path, text) in compilers.iter().zip(&originals) {
        fs::write(path, text).unwrap();
    }
    sandbox.build(&dir, &[]);
    let started = sandbox.started();
    assert_eq!((started.compiles(), started.links()), (0, 0), "{started:?}");
}

/// What was damaged in the cache is told where somebody asks for details, and made again.
#[test]
fn damage_of_the_cache_is_said_and_mended() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    sandbox.build(&dir, &[]);
    let good = sandbox.path("good");
    fs::rename(dir.join("build"), &good).unwrap();
    sandbox.started();
    let damage = || {
        let mut files = 0;
        for entry in walkdir::WalkDir::new(sandbox.cache().join("actions-v1/blobs")) {
            let entry = entry.unwrap();
            if entry.file_type().is_file() {
                let mut bytes = fs::read(entry.path()).unwrap();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                    fs::write(entry.path(), bytes).unwrap();
                    files += 1;
                }
            }
        }
        assert!(files > 0);
        for name in ["build", ".kiln"] {
            fs::remove_dir_all(dir.join(name)).unwrap_or_default();
        }
    };
    let said = |run: &support::Run| run.stderr.matches("of the action cache was damaged and was removed").count();
    damage();
    let loud = sandbox.run(&dir, &["build", "-v"]);
    assert_eq!(loud.code, Some(0), "{}", loud.stderr);
    assert!(said(&loud) > 0, "{}", loud.stderr);
    assert!(sandbox.started().compiles() > 0);
    tree::assert_equal(&good, &dir.join("build"));
    damage();
    let quiet = sandbox.run(&dir, &["build"]);
    assert_eq!((quiet.code, said(&quiet)), (Some(0), 0), "{}", quiet.stderr);
    tree::assert_equal(&good, &dir.join("build"));
    assert_eq!(sandbox.run(&dir, &["cache", "verify"]).code, Some(0));
}

/// Outside git every edit renames the ops; that is in the arguments of every unit, and seldom why one is compiled.
#[test]
fn explanations_name_the_edit_and_units() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    sandbox.build(&dir, &[]);
    let explained = |line: &str| {
        let said = sandbox.run(&dir, &["build", "-j1", "--explain"]).stderr;
        assert!(!said.contains("never ran with these arguments"), "{said}");
        let is_id = |word: &str| word.len() >= 32 && word.chars().all(|c| c.is_ascii_hexdigit());
        assert!(!said.split(|c: char| !c.is_ascii_alphanumeric()).any(is_id), "{said}");
        assert!(said.contains(line), "{line}\n{said}");
    };
    edit(&dir, "include/only_plain.h", |text| text.replace('4', "5"));
    explained("Compiling plain/plain.cpp (`project:include/only_plain.h` changed)");
    // A header in front of another.
    write(&dir, "plain/shared.h", "#pragma once\n#define FACTOR 7\n");
    explained("Compiling plain/plain.cpp (`project:plain/shared.h` is new)");
}

/// Files of the cache that went are a miss and no damage.
#[test]
fn a_cache_without_some_files_is_sound() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    sandbox.build(&dir, &[]);
    let blobs = sandbox.cache().join("actions-v1/blobs");
    fs::remove_dir_all(&blobs).unwrap();
    let verified = sandbox.run(&dir, &["cache", "verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    assert!(verified.stderr.contains("without all files"), "{}", verified.stderr);
    let again = sandbox.run(&dir, &["cache", "verify"]).stderr;
    assert!(!again.contains("Removed"), "{again}");
    let pruned = sandbox.run(&dir, &["cache", "prune", "--max-size", "0"]).stderr;
    assert!(pruned.contains("; nothing is left"), "{pruned}");
    assert_eq!(sandbox.run(&dir, &["cache", "clean"]).stderr.trim(), "Removed 0 files, 0 bytes");

    // One that cannot be used is told, and builds go on.
    fs::remove_dir_all(sandbox.cache().join("actions-v1")).unwrap();
    write(sandbox.cache(), "actions-v1", "");
    edit(&dir, "include/only_plain.h", |text| text.replace('4', "5"));
    let without = sandbox.run(&dir, &["build"]);
    assert_eq!(without.code, Some(0), "{}", without.stderr);
    assert_eq!(without.stderr.matches("warning: the action cache `").count(), 1, "{}", without.stderr);
    fs::remove_file(sandbox.cache().join("actions-v1")).unwrap();
}
