//! Directories that are no project.

use crate::Place;

#[test]
fn nothing_at_the_path() {
    let place = Place::new();
    insta::assert_snapshot!(place.say(&["build", "gone"]), @"
    exit code 1
    --- stderr ---
    error[project]: there is no directory `gone`
    ");
    insta::assert_snapshot!(place.say(&["hash", "gone"]), @"
    exit code 1
    --- stderr ---
    error[hash]: there is no directory `gone`
    ");
}

#[test]
fn a_file_in_place_of_the_directory() {
    let place = Place::with_project();
    insta::assert_snapshot!(place.say(&["check-config", "cpu/relu.cpp"]), @"
    exit code 1
    --- stderr ---
    error[project]: `cpu/relu.cpp` is not a directory
    hint: give the directory that holds build.toml
    ");
    insta::assert_snapshot!(place.say(&["check-config", "build.toml"]), @"
    exit code 1
    --- stderr ---
    error[project]: `build.toml` is not a directory
    hint: give the directory that holds it: `.`
    ");
    insta::assert_snapshot!(place.say(&["check-config", "cpu/relu.cpp/deeper"]), @"
    exit code 1
    --- stderr ---
    error[project]: there is no directory `cpu/relu.cpp/deeper`
    ");
}

#[test]
fn no_project_file() {
    let place = Place::new();
    insta::assert_snapshot!(place.say(&["list-variants"]), @"
    exit code 1
    --- stderr ---
    error[project]: `.` has no build.toml
    hint: run Kiln in the directory that holds build.toml, or give that directory
    ");
    place.write("relu/build.toml/x", "");
    insta::assert_snapshot!(place.say(&["check-config"]), @"
    exit code 1
    --- stderr ---
    error[project]: `build.toml` is a directory, not a file
    ");
}

#[test]
fn a_project_file_that_cannot_be_read() {
    let place = Place::with_project();
    std::fs::remove_file(place.path("relu/build.toml")).unwrap();
    place.link("relu/build.toml", "build.toml");
    insta::assert_snapshot!(place.say(&["check-config"]), @"
    exit code 1
    --- stderr ---
    error[project]: failed to read `build.toml`
      caused by: Too many levels of symbolic links (os error 40)
    ");

    let place = Place::with_project();
    place.set_mode("relu/build.toml", 0o000);
    insta::assert_snapshot!(place.into_unprivileged().say(&["check-config"]), @"
    exit code 1
    --- stderr ---
    error[project]: failed to read `build.toml`
      caused by: Permission denied (os error 13)
    ");
}

#[test]
fn a_source_that_cannot_be_read() {
    let place = Place::with_project();
    place.set_mode("relu/cpu/relu.cpp", 0o000);
    insta::assert_snapshot!(place.into_unprivileged().say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[source]: failed to read `[dir]/relu/cpu/relu.cpp`
      caused by: Permission denied (os error 13)
    ");
}

#[test]
fn nothing_was_built_yet() {
    insta::assert_snapshot!(Place::with_project().say(&["hash"]), @"
    exit code 1
    --- stderr ---
    error[hash]: no variants found: none of `./result`, `./build`, `.` holds a directory with a `metadata.json`
    hint: `kiln build` makes them
    ");
}

#[test]
fn built_metadata_that_are_no_json() {
    let place = Place::with_project();
    place.write("relu/build/torch-cpu/metadata.json", "{");
    insta::assert_snapshot!(place.say(&["hash"]), @"
    exit code 1
    --- stderr ---
    error[hash]: `./build/torch-cpu/metadata.json` is malformed
      caused by: EOF while parsing an object at line 1 column 1
    ");
    place.write("relu/build/torch-cpu/metadata.json", "{\"name\": \"relu\"}");
    place.write("relu/build/torch-cpu/metadata.json.sigstore", "{}");
    insta::assert_snapshot!(place.say(&["hash"]), @"
    exit code 1
    --- stderr ---
    error[hash]: `./build/torch-cpu/metadata.json` is signed: a new digest would break its signature
    hint: `--force` rewrites it all the same; sign it again afterwards
    ");
}

/// A file that is a link to nowhere is there: what it would say is not known.
#[test]
fn files_that_are_links_to_nowhere() {
    for name in ["kiln.toml", "kiln.lock", "build.toml"] {
        let place = Place::with_project();
        let _none_before = std::fs::remove_file(place.path("relu").join(name));
        place.link(&format!("relu/{name}"), "nowhere");
        for args in [&["build"][..], &["check-config"], &["list-variants"]] {
            let said = place.say(args);
            assert_eq!(said, format!("exit code 1\n--- stderr ---\nerror[project]: `{name}` is a link that leads nowhere\n"), "{args:?}");
        }
    }
    let mut place = Place::with_project();
    place.env("XDG_CONFIG_HOME", &place.path("config").display().to_string());
    place.write("config/kiln/other", "");
    place.link("config/kiln/kiln.lock", "nowhere");
    let said = place.say(&["list-variants"]);
    assert!(said.starts_with("exit code 1\n--- stderr ---\nerror[lock]: failed to read `[dir]/config/kiln/kiln.lock`\n"), "{said}");
}

#[test]
fn every_variant_that_cannot_be_hashed_is_named() {
    let place = Place::with_project();
    for name in ["torch-cpu", "torch-cuda", "torch-rocm", "torch-xpu"] {
        place.write(&format!("relu/build/{name}/metadata.json"), "{\"name\": \"relu\"}");
    }
    place.write("relu/build/torch-cpu/metadata.json", "[]");
    place.link("relu/build/torch-rocm/link", "nowhere");
    insta::assert_snapshot!(place.say(&["hash"]), @"
    exit code 1
    --- stderr ---
         Rewrote torch-cuda
         Rewrote torch-xpu
    error[hash]: `./build/torch-cpu/metadata.json` is malformed
      caused by: metadata must be a JSON object
    error[hash]: `./build/torch-rocm/link` is a link that leads nowhere
    hint: a variant holds plain files only: put one in its place, or remove it
    ");
    for name in ["torch-cpu", "torch-rocm"] {
        std::fs::remove_file(place.path(&format!("relu/build/{name}/metadata.json"))).unwrap();
    }
    insta::assert_snapshot!(place.say(&["hash"]), @"
    exit code 1
    --- stderr ---
    error[hash]: `./build/torch-cpu`, `./build/torch-rocm` have the names of variants and no `metadata.json`
    hint: `kiln build` makes them again; remove those that are none
    ");
}
