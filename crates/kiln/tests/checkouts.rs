//! Equal sources give equal bytes: in every directory, with every cache, with any number of jobs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::project::{ProjectBuilder, commit_all, kept, usual};
use support::{Sandbox, shared_cache, tree};

/// The release that the usual project is compiled with.
const TREE: &str = "torch-2.15.0-linux-x86_64-";

/// A project that embeds whatever a compiler knows of places and times, in its own units and in a header that includes torch.
fn telltale() -> ProjectBuilder {
    usual()
        .file(
            "include/torch_where.h",
            "#pragma once\n#include <torch/headeronly/util/Exception.h>\n\
             inline const char *tiny_header(int x) { STD_TORCH_CHECK(x > 1, x); return __FILE__; }\n",
        )
        .file(
            "where/where.cpp",
            &format!(
                "#include \"torch_where.h\"\n#include <torch/headeronly/util/HeaderOnlyArrayRef.h>\n\
                 namespace {{ struct Static {{ Static() : text(__DATE__ \" \" __TIME__) {{}} const char *text; }} first; }}\n\
                 const char *tiny_where(int x) {{ return x > 2 ? __FILE__ : x > 1 ? tiny_header(x) : x > 0 ? first.text : __BASE_FILE__; }}\n\
                 int tiny_at(c10::HeaderOnlyArrayRef<int> list, size_t at) {{ return list.at(at); }}\n\
                 int tiny_x = 3, tiny_list[2] = {{1, 2}};\n{}",
                kept("tiny_where(tiny_x)[0] + tiny_at(tiny_list, 1)")
            ),
        )
        .kernel("where", &["torch"], &["where/where.cpp", "include/torch_where.h"], "include = [\"include\"]")
}

/// Builds a new checkout in the sandbox; gives its output directory.
fn checkout(sandbox: &Sandbox, name: &str, git: bool, args: &[&str]) -> PathBuf {
    let dir = telltale().write(&sandbox.path(name));
    if git {
        commit_all(&dir);
    }
    // Compiled for itself: a result of another checkout would be equal without a proof.
    sandbox.build(&dir, &[&["--no-cache"], args].concat());
    dir.join("build")
}

/// Asserts that an extension knows its files by their canonical names and no directory of this machine.
fn assert_canonical(build: &Path, sandbox: &Sandbox) {
    let extensions = tree::extensions(build);
    assert_eq!(extensions.len(), 1);
    let bytes = fs::read(&extensions[0]).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for text in [
        "./where/where.cpp",
        "./include/torch_where.h",
        "./checked/checked.cpp",
        "torch/torch/include/torch/headeronly/util/HeaderOnlyArrayRef.h",
    ] {
        assert!(has(text), "`{text}` is not in the extension");
    }
    let shared = shared_cache().to_str().unwrap();
    for text in [sandbox.path("").to_str().unwrap(), shared, ".kiln/out", ".kiln/tmp"] {
        assert!(!has(text), "`{text}` is in the extension");
    }
}

#[test]
fn directories_do_not_matter() {
    for git in [true, false] {
        let (one, two) = (Sandbox::new(), Sandbox::new());
        let first = checkout(&one, "one", git, &["-j1"]);
        let second = checkout(&two, "deeper/zwei – Ünïcode 家/with spaces", git, &["-j8"]);
        tree::assert_equal(&first, &second);
        assert_canonical(&first, &one);
        assert_canonical(&second, &two);
        let metadata = fs::read_to_string(tree::extensions(&first)[0].with_file_name("metadata.json")).unwrap();
        assert_eq!(metadata.contains("\"commit\""), git, "{metadata}");
    }
}

/// Another cache with the same headers, as files of its own.
fn copied_cache(dir: &Path) {
    let from = shared_cache().join("toolchains-v1/trees");
    let trees = fs::read_dir(&from).unwrap().map(|entry| entry.unwrap());
    let tree = trees.filter(|entry| entry.file_name().to_str().unwrap().starts_with(TREE)).map(|entry| entry.path()).next().unwrap();
    for entry in walkdir::WalkDir::new(&tree) {
        let entry = entry.unwrap();
        let to = dir.join("toolchains-v1/trees").join(entry.path().strip_prefix(&from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(to).unwrap();
        } else {
            // A link where that is possible; nothing ever writes to these files.
            fs::hard_link(entry.path(), &to).or_else(|_| fs::copy(entry.path(), &to).map(|_| ())).unwrap();
        }
    }
}

#[test]
fn caches_do_not_matter() {
    let usual = Sandbox::new();
    let expected = checkout(&usual, "project", false, &[]);
    assert_canonical(&expected, &usual);

    let own = Sandbox::without_torch();
    let place = own.path("a cache – Ü = 家");
    copied_cache(&place);
    let own = own.with_cache(place.clone());
    let build = checkout(&own, "project", false, &[]);
    tree::assert_equal(&expected, &build);
    assert_canonical(&build, &own);

    // Compilers resolve links to the directories of system headers, if the result is shorter.
    let linked = Sandbox::without_torch();
    let long = linked.path("a/link/with/a/name/that/is/much/longer/than/what/it/leads/to/so/that/resolving/it/would/shorten/the/name");
    fs::create_dir_all(long.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&place, &long).unwrap();
    let linked = linked.with_cache(long);
    let build = checkout(&linked, "project", false, &[]);
    tree::assert_equal(&expected, &build);
    assert_canonical(&build, &own);
}

#[test]
fn a_project_behind_a_link_is_the_same_project() {
    let sandbox = Sandbox::new();
    let expected = checkout(&sandbox, "project", true, &[]);
    let link = sandbox.path("link");
    std::os::unix::fs::symlink(sandbox.path("project"), &link).unwrap();
    let before = tree::stamps(&expected);
    let run = sandbox.build(&link, &[]);
    assert_eq!(run.steps().0, 0, "{}", run.stdout);
    let run = sandbox.build(&sandbox.path(""), &["link"]);
    assert_eq!(run.steps().0, 0, "{}", run.stdout);
    assert_eq!(before, tree::stamps(&expected));

    // A checkout that is only ever seen through a link.
    let real = telltale().write(&sandbox.path("real"));
    commit_all(&real);
    let link = sandbox.path("a much longer link to it");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    sandbox.build(&sandbox.path(""), &[link.to_str().unwrap()]);
    tree::assert_equal(&expected, &real.join("build"));
}

/// Characters that make files, depfiles, options and shells stumble.
const ODD: [&str; 3] = ["ü家 a=b $HOME", "# 50 % 'quoted' \" `", "back\\slash co:lon; &(star*)[x]?"];

#[test]
fn odd_names_do_not_matter() {
    let sandbox = Sandbox::new();
    // The ops id comes from all headers, and a new one would compile everything.
    const ID: [&str; 2] = ["--unique-id", "x"];
    let expected = checkout(&sandbox, "plain", false, &ID);
    for name in ODD {
        let build = checkout(&sandbox, &format!("odd/{name}"), false, &ID);
        tree::assert_equal(&expected, &build);
        let again = sandbox.build(build.parent().unwrap(), &ID);
        assert_eq!(again.steps().0, 0, "{name}: {}", again.stdout);
        // The depfile was understood: a header that is in no list is known.
        fs::write(build.with_file_name("include/only_plain.h"), "#pragma once\n#define OFFSET 40\n").unwrap();
        let edited = sandbox.build(build.parent().unwrap(), &[&ID[..], &["--no-cache"]].concat());
        assert_eq!(edited.ran("Compiling"), ["plain/plain.cpp"], "{name}");
    }
}
