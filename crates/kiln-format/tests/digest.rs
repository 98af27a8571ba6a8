//! The digest of directories: what is hashed, what is left out, and the order of violations.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kiln_format::{Digest, DigestAlgorithm, DigestError, DigestViolation};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

fn write(dir: &Path, path: &str, content: &[u8]) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn digest(dir: &Path) -> Digest {
    Digest::of_directory(dir, DigestAlgorithm::Sha256).unwrap()
}

fn paths(digest: &Digest) -> Vec<&str> {
    digest.files.keys().map(String::as_str).collect()
}

#[test]
fn what_is_hashed() {
    let dir = TempDir::new().unwrap();
    for path in [
        "__init__.py",
        "B.py",
        "a.py",
        "a-b/x.py",
        "a/b/data.json",
        "a/metadata.json",
        "a/metadata.json.sigstore",
        "metadata.json",
        "metadata.json.sigstore",
        "a.pyc",
        "a/c.pyc",
        "__pycache__/x.cpython-312.pyc",
        "a/__pycache__/readme.txt",
        "ü.py",
    ] {
        write(dir.path(), path, b"x = 1\n");
    }
    fs::create_dir(dir.path().join("empty")).unwrap();
    let digest = digest(dir.path());
    assert_eq!(
        paths(&digest),
        ["B.py", "__init__.py", "a-b/x.py", "a.py", "a/b/data.json", "a/metadata.json", "a/metadata.json.sigstore", "ü.py"]
    );
    assert!(digest.files.values().all(|hash| hash == "nia/NpkRxFwkPGhBR7I/yeHc/PJX0pmhxjIBam/NM/Q="));
}

#[cfg(unix)]
#[test]
fn links_and_other_things() {
    use std::os::unix::fs::symlink;

    let dir = TempDir::new().unwrap();
    let elsewhere = TempDir::new().unwrap();
    write(elsewhere.path(), "blob", b"hello world");
    write(dir.path(), "plain", b"");
    symlink(elsewhere.path().join("blob"), dir.path().join("linked.py")).unwrap();
    symlink(elsewhere.path(), dir.path().join("linked-dir")).unwrap();
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let expected = [
        ("linked.py".to_owned(), "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=".to_owned()),
        ("plain".to_owned(), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".to_owned()),
    ];
    assert_eq!(digest(dir.path()).files, BTreeMap::from(expected));

    symlink("loop", dir.path().join("loop")).unwrap();
    let error = Digest::of_directory(dir.path(), DigestAlgorithm::Sha256).unwrap_err();
    assert!(matches!(&error, DigestError::Io { path, .. } if path.ends_with("loop")), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join(OsStr::from_bytes(b"a\xff")), b"").unwrap();
    let error = Digest::of_directory(dir.path(), DigestAlgorithm::Sha256).unwrap_err();
    assert!(error.to_string().ends_with("is not UTF-8"), "{error}");
}

#[test]
fn a_directory_that_is_not_there() {
    let dir = TempDir::new().unwrap();
    let error = Digest::of_directory(&dir.path().join("no"), DigestAlgorithm::Sha256).unwrap_err();
    assert!(error.to_string().starts_with("could not read `"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn every_violation_in_order() {
    let dir = TempDir::new().unwrap();
    for path in ["a", "b", "c"] {
        write(dir.path(), path, path.as_bytes());
    }
    let expected = digest(dir.path());
    assert_eq!(expected.validate(dir.path()).unwrap(), []);

    fs::remove_file(dir.path().join("a")).unwrap();
    write(dir.path(), "b", b"other");
    write(dir.path(), "0", b"");
    write(dir.path(), "d/e", b"");
    let violations = expected.validate(dir.path()).unwrap();
    assert_eq!(
        violations,
        [
            DigestViolation::Missing("a".into()),
            DigestViolation::Mismatch("b".into()),
            DigestViolation::Unknown("0".into()),
            DigestViolation::Unknown("d/e".into()),
        ]
    );
    let actual = Digest::of_directory(dir.path(), DigestAlgorithm::Sha512).unwrap();
    let said: Vec<String> = expected.compare(&actual).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    the digest was made with sha512, not with sha256
    `a` is missing
    `b` has another content than its digest says
    `c` has another content than its digest says
    `0` is not in the digest
    `d/e` is not in the digest
    ");
}

#[test]
fn the_algorithm_of_the_expected_digest_is_used() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), "a", b"hello world");
    let expected = Digest::of_directory(dir.path(), DigestAlgorithm::Sha512).unwrap();
    assert_eq!(expected.validate(dir.path()).unwrap(), []);
}

/// The digest depends on names and content alone, and any single change is found and nothing else.
#[test]
fn exactly_the_changes() {
    let file = prop::collection::vec(any::<u8>(), 0..40);
    let files = prop::collection::btree_map("[a-c]{1,2}(/[a-c]{1,2}\\.py){1}", file, 1..8);
    // Without the macro, which takes the number of cases from the environment: every case writes files.
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) });
    let check = |(files, pick, bit): (BTreeMap<String, Vec<u8>>, prop::sample::Index, usize)| {
        let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for (path, content) in &files {
            write(one.path(), path, content);
        }
        for (path, content) in files.iter().rev() {
            write(other.path(), path, content);
        }
        let expected = digest(one.path());
        prop_assert_eq!(&expected, &digest(other.path()));
        prop_assert_eq!(paths(&expected), files.keys().map(String::as_str).collect::<Vec<_>>());

        let (path, content) = files.iter().nth(pick.index(files.len())).unwrap();
        let mut changed = content.clone();
        match changed.first_mut() {
            Some(byte) => *byte ^= 1 << bit,
            None => changed.push(0),
        }
        write(one.path(), path, &changed);
        prop_assert_eq!(expected.validate(one.path()).unwrap(), [DigestViolation::Mismatch(path.clone())]);
        fs::remove_file(one.path().join(path)).unwrap();
        prop_assert_eq!(expected.validate(one.path()).unwrap(), [DigestViolation::Missing(path.clone())]);
        Ok(())
    };
    runner.run(&(files, any::<prop::sample::Index>(), 0usize..8), check).unwrap();
}
