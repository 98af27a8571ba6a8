//! Faults of `kiln.toml` and of the matrix that it names.

use crate::Place;

fn with(kiln_toml: &str) -> String {
    let place = Place::with_project();
    place.write("relu/kiln.toml", kiln_toml);
    place.say(&["check-config"])
}

#[test]
fn unknown_keys_and_wrong_types() {
    insta::assert_snapshot!(with("[index]\nurls = \"x\"\n\n[build]\ncxx = 3\n\n[matrices]\nfile = \"m.toml\"\n"), @r#"
    exit code 1
    --- stderr ---
    error[unknown-key]: unknown key `urls`
      --> kiln.toml:2:1
      |
    2 | urls = "x"
      | ^^^^
      = allowed here: `torch`, `url`

    error[wrong-type]: `cxx` must be a string, found an integer
      --> kiln.toml:5:7
      |
    5 | cxx = 3
      |       ^

    error[unknown-key]: unknown table `matrices`
      --> kiln.toml:7:2
      |
    7 | [matrices]
      |  ^^^^^^^^
      = allowed here: `[build]`, `[checks]`, `[headers]`, `[index]`, `[matrix]`, `[metal]`
    "#);
}

#[test]
fn bad_addresses() {
    insta::assert_snapshot!(with("[index]\nurl = \"mirror/simple\"\n"), @r#"
    exit code 1
    --- stderr ---
    error[invalid-url]: `url` is not the address of a package index: it begins neither with `https://`, `http://` or `file://` nor, as a path, with `/`, `./` or `../`
      --> kiln.toml:2:7
      |
    2 | url = "mirror/simple"
      |       ^^^^^^^^^^^^^^^
    hint: an index address has the form `https://host/simple`, or is a path such as `./wheels`
    "#);
    insta::assert_snapshot!(with("[index]\nurl = \"file:///srv/wheels\"\n"), @"exit code 0");
}

#[test]
fn no_toml() {
    insta::assert_snapshot!(with("[index\nurl = \"https://index.example/simple\"\n"), @"
    exit code 1
    --- stderr ---
    error[syntax]: unclosed table, expected `]`
      --> kiln.toml:1:7
      |
    1 | [index
      |       ^
    ");
}

#[test]
fn a_matrix_that_cannot_be_used() {
    insta::assert_snapshot!(with("[matrix]\nfile = \"gone.toml\"\n"), @r#"
    exit code 1
    --- stderr ---
    error[matrix]: the matrix file `gone.toml` cannot be read: No such file or directory (os error 2)
      --> kiln.toml:2:8
      |
    2 | file = "gone.toml"
      |        ^^^^^^^^^^^
    "#);
    let place = Place::with_project();
    place.write("relu/kiln.toml", "[matrix]\nfile = \"data/matrix.toml\"\n");
    place.write("relu/data/matrix.toml", "schema = 1\nrevision = \"mine\"\nrow = []\n[releases]\n\"2.13\" = \"2.12.0\"\n");
    insta::assert_snapshot!(place.say(&["build"]), @r#"
    exit code 1
    --- stderr ---
    error[matrix]: `2.12.0` is no release of torch 2.13
      --> data/matrix.toml:5:10
      |
    5 | "2.13" = "2.12.0"
      |          ^^^^^^^^
    error[configuration]: the configuration has 1 error
    "#);
    place.edit("relu/data/matrix.toml", "row = []\n", "");
    insta::assert_snapshot!(place.say(&["list-variants"]), @"
    exit code 1
    --- stderr ---
    error[matrix]: missing field `row`
      --> data/matrix.toml:1:1
      |
    1 | schema = 1
      | ^
    error[configuration]: the configuration has 1 error
    ");
    // With no row there is nothing that anybody could build.
    place.write("relu/data/matrix.toml", "schema = 1\nrevision = \"mine\"\nrow = []\n[releases]\n");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[selection]: no variant is left to build
    hint: `kiln list-variants --reasons` shows what there is
    ");
}
