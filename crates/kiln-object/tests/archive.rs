//! Static libraries as `ar` makes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use common::{gxx, run};
use kiln_object::archive::{self, IndexEntry};
use kiln_object::elf;

fn two_objects(dir: &std::path::Path) {
    gxx(dir, "one.o", &["-c"], "extern \"C\" int one() { return 1; }");
    gxx(dir, "a_member_with_a_long_name.o", &["-c"], "extern \"C\" { int one(); int two() { return one(); } }");
}

#[test]
fn members_and_index_are_read() {
    let dir = tempfile::tempdir().unwrap();
    two_objects(dir.path());
    run(dir.path(), "ar", &["rcsD", "x.a", "one.o", "a_member_with_a_long_name.o"]);
    let data = std::fs::read(dir.path().join("x.a")).unwrap();
    assert!(archive::is_archive(&data));
    let members = archive::members(&data).unwrap();
    assert_eq!(members.iter().map(|member| member.name).collect::<Vec<_>>(), ["one.o", "a_member_with_a_long_name.o"]);
    assert_eq!(members[0].data, std::fs::read(dir.path().join("one.o")).unwrap());
    let index = archive::symbol_index(&data).unwrap();
    assert_eq!(index, [IndexEntry { name: "one", member: "one.o" }, IndexEntry { name: "two", member: "a_member_with_a_long_name.o" }]);
    // Members lie at even addresses only: the reader must not ask for more.
    for member in members {
        elf::relocatable(member.data).unwrap();
    }
}

#[test]
fn an_archive_without_an_index_has_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "text").unwrap();
    run(dir.path(), "ar", &["rcSD", "x.a", "a.txt"]);
    let data = std::fs::read(dir.path().join("x.a")).unwrap();
    assert_eq!(archive::symbol_index(&data).unwrap(), []);
    assert_eq!(archive::members(&data).unwrap()[0].data, b"text");
}

#[test]
fn what_is_no_archive_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    two_objects(dir.path());
    run(dir.path(), "ar", &["rcsT", "thin.a", "one.o"]);
    let thin = std::fs::read(dir.path().join("thin.a")).unwrap();
    assert_eq!(archive::members(&thin).unwrap_err().to_string(), "a thin archive is not supported");
    assert_eq!(archive::members(b"/* GNU ld script */").unwrap_err().to_string(), "not a static library");
    run(dir.path(), "ar", &["rcsD", "x.a", "one.o", "a_member_with_a_long_name.o"]);
    let data = std::fs::read(dir.path().join("x.a")).unwrap();
    assert!(archive::members(&data[..data.len() - 1000]).unwrap_err().to_string().starts_with("damaged archive: "));
    assert!(archive::symbol_index(&data[..90]).unwrap_err().to_string().starts_with("damaged archive: "));
}
