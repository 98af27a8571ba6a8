//! `metadata.json`: the layout that is written, and what is read and refused.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;

use kiln_format::metadata::{Builder, Commit, LoaderVersion, MetadataBackend, Provenance, with_digest};
use kiln_format::{BackendName, Digest, DigestAlgorithm, GitUrl, KernelDependency, KernelDependencyVersion, KernelName, Metadata, OpsId};
use proptest::prelude::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const EMPTY: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

fn digest() -> Digest {
    let files = ["b.py", "_ops.py", "a/ü.py"].map(|path| (path.to_owned(), EMPTY.to_owned()));
    Digest { algorithm: DigestAlgorithm::Sha256, files: BTreeMap::from(files) }
}

fn whole() -> Metadata {
    let name = KernelName::new("my-relu").unwrap();
    let depends = vec![
        KernelDependency { repo_id: "team/a".into(), version: KernelDependencyVersion::Version(2) },
        KernelDependency { repo_id: "team/b".into(), version: KernelDependencyVersion::Revision("main".into()) },
    ];
    let commit = |dirty| Commit { id: COMMIT.parse().unwrap(), dirty };
    Metadata {
        id: OpsId::new(&name, BackendName::Cuda, "1a2b3c4").unwrap().to_string(),
        name,
        version: 3,
        kernels_minver: Some(LoaderVersion::needed_for(&depends)),
        license: "Apache-2.0".into(),
        upstream: Some(GitUrl::new("git@example.org:team/repo.git").unwrap()),
        source: Some(GitUrl::new("https://example.org/team/repo").unwrap()),
        python_depends: vec!["einops".into(), "nvidia-cutlass-dsl".into()],
        kernel_depends: depends,
        backend: MetadataBackend { kind: BackendName::Cuda, archs: Some(vec!["9.0a".into(), "10.0".into()]) },
        digest: Some(digest()),
        provenance: Some(Provenance {
            builder: Builder { version: "kiln 0.1.0".into(), commit: Some(commit(false)) },
            kernel: Some(commit(true)),
        }),
    }
}

fn least() -> Metadata {
    Metadata {
        name: KernelName::new("relu").unwrap(),
        id: "_relu_cpu_x".into(),
        version: 0,
        kernels_minver: Some(LoaderVersion::needed_for(&[])),
        license: "MIT".into(),
        upstream: None,
        source: None,
        python_depends: Vec::new(),
        kernel_depends: Vec::new(),
        backend: MetadataBackend { kind: BackendName::Cpu, archs: None },
        digest: None,
        provenance: None,
    }
}

#[test]
fn layout() {
    insta::assert_snapshot!(whole().to_json(), @r#"
    {
      "name": "my-relu",
      "id": "_my_relu_cuda_1a2b3c4",
      "version": 3,
      "kernels-minver": "0.17.0",
      "license": "Apache-2.0",
      "upstream": "git@example.org:team/repo.git",
      "source": "https://example.org/team/repo",
      "python-depends": [
        "einops",
        "nvidia-cutlass-dsl"
      ],
      "kernel-depends": [
        {
          "repo-id": "team/a",
          "version": 2
        },
        {
          "repo-id": "team/b",
          "revision": "main"
        }
      ],
      "backend": {
        "type": "cuda",
        "archs": [
          "9.0a",
          "10.0"
        ]
      },
      "digest": {
        "algorithm": "sha256",
        "files": {
          "_ops.py": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
          "a/ü.py": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
          "b.py": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        }
      },
      "provenance": {
        "kernel-builder": {
          "version": "kiln 0.1.0",
          "commit": "0123456789abcdef0123456789abcdef01234567",
          "dirty": false
        },
        "kernel": {
          "commit": "0123456789abcdef0123456789abcdef01234567",
          "dirty": true
        }
      }
    }
    "#);
    insta::assert_snapshot!(least().to_json(), @r#"
    {
      "name": "relu",
      "id": "_relu_cpu_x",
      "version": 0,
      "kernels-minver": "0.14.0",
      "license": "MIT",
      "python-depends": [],
      "kernel-depends": [],
      "backend": {
        "type": "cpu"
      }
    }
    "#);
    assert!(least().to_json().ends_with("}\n"));
}

#[test]
fn what_is_written_is_read() {
    for metadata in [whole(), least()] {
        assert_eq!(Metadata::read(&metadata.to_json()).unwrap(), metadata);
    }
}

/// The least that a loader reads, with one more member.
fn with(member: &str) -> String {
    let comma = if member.is_empty() { "" } else { ", " };
    format!(
        r#"{{"name": "relu", "id": "anything", "version": 1, "license": "MIT", "python-depends": [], "backend": {{"type": "cpu"}}{comma}{member}}}"#
    )
}

#[test]
fn unknown_keys_and_missing_ones() {
    let read = Metadata::read(&with(r#""new": {"x": 1}, "kernels-minver": null"#)).unwrap();
    assert_eq!(read.id, "anything");
    assert_eq!((read.kernels_minver, read.kernel_depends.len(), read.digest, read.provenance), (None, 0, None, None));
    assert!(Metadata::read(&with(r#""provenance": {"kernel-builder": {"version": "x", "new": 1}, "new": 1}"#)).is_ok());
    for key in ["name", "id", "version", "license", "python-depends", "backend"] {
        let text = with("").replace(&format!("\"{key}\""), "\"other\"");
        let error = Metadata::read(&text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("missing field `{key}`")), "{error}");
    }
}

#[test]
fn the_old_name_of_commit() {
    let text = with(&format!(
        r#""provenance": {{"kernel-builder": {{"version": "x", "sha": "{COMMIT}", "dirty": false}}, "kernel": {{"sha": "{COMMIT}", "dirty": true}}}}"#
    ));
    let read = Metadata::read(&text).unwrap();
    let kernel = read.provenance.as_ref().unwrap().kernel.as_ref().unwrap();
    assert_eq!((kernel.id.as_str(), kernel.id.to_string().as_str(), kernel.dirty), (COMMIT, COMMIT, true));
    assert!(!read.to_json().contains("sha\""));
}

/// As the loader of 0.17.2 reads them, asked one by one.
#[test]
fn what_loaders_accept() {
    let upper = COMMIT.to_uppercase();
    for member in [
        r#""kernels-minver": null, "upstream": null, "source": null, "digest": null, "provenance": null"#.to_owned(),
        r#""kernels-minver": " 00.017.0 ""#.to_owned(),
        r#""provenance": {"kernel-builder": {"version": "x"}, "kernel": null}"#.to_owned(),
        format!(r#""provenance": {{"kernel-builder": {{"version": "x", "commit": "{upper}", "dirty": false}}}}"#),
        r#""digest": {"algorithm": "sha512", "files": {"a": "AAAA"}}"#.to_owned(),
        r#""kernel-depends": [{"repo-id": "justname", "version": null, "revision": "x"}]"#.to_owned(),
        r#""upstream": "./a:b", "source": "ssh:///srv/x""#.to_owned(),
    ] {
        let read = Metadata::read(&with(&member)).unwrap();
        assert!(!read.to_json().contains(&upper));
    }
}

#[test]
fn malformed_values_are_errors() {
    let long = "0".repeat(41);
    let said: Vec<String> = [
        r#""kernels-minver": "0.14""#.to_owned(),
        r#""kernels-minver": "0.14.0.1""#.to_owned(),
        r#""kernels-minver": "0.14.x""#.to_owned(),
        r#""kernels-minver": 14"#.to_owned(),
        r#""upstream": "ftp://example.org""#.to_owned(),
        r#""source": ["https://example.org"]"#.to_owned(),
        r#""kernel-depends": [{"repo-id": "a/b"}]"#.to_owned(),
        r#""kernel-depends": [{"repo-id": "a/b", "version": 1, "revision": "x"}]"#.to_owned(),
        r#""digest": {"algorithm": "md5", "files": {}}"#.to_owned(),
        r#""digest": {"algorithm": "sha256"}"#.to_owned(),
        r#""provenance": {}"#.to_owned(),
        format!(r#""provenance": {{"kernel-builder": {{"version": "x", "commit": "{COMMIT}"}}}}"#),
        r#""provenance": {"kernel-builder": {"version": "x", "commit": "abc", "dirty": false}}"#.to_owned(),
        r#""kernel-depends": null"#.to_owned(),
        r#""provenance": {"kernel-builder": {"version": "x", "commit": null, "dirty": null}}"#.to_owned(),
        r#""provenance": {"kernel-builder": {"version": "x"}, "kernel": {}}"#.to_owned(),
        format!(r#""provenance": {{"kernel-builder": {{"version": "x"}}, "kernel": {{"commit": "{long}", "dirty": false}}}}"#),
    ]
    .iter()
    .map(|member| Metadata::read(&with(member)).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(said.join("\n"), @"
    `kernels-minver`: `0.14` is not a version of exactly three numbers
    `kernels-minver`: `0.14.0.1` is not a version of exactly three numbers
    `kernels-minver`: `0.14.x` is not a version of exactly three numbers
    invalid type: integer `14`, expected a string at line 1 column 137
    scheme `ftp` is not one that git repositories are read from at line 1 column 149
    invalid type: sequence, expected a string at line 1 column 127
    `kernel-depends`: an entry has exactly one of `version` and `revision`
    `kernel-depends`: an entry has exactly one of `version` and `revision`
    `digest.algorithm`: `md5` is neither `sha256` nor `sha512`
    missing field `files` at line 1 column 150
    missing field `kernel-builder` at line 1 column 133
    `provenance.kernel-builder`: `commit` and `dirty` come together
    `provenance.kernel-builder.commit`: `abc` is not a commit id of 40 or 64 lower-case hexadecimal digits
    invalid type: null, expected a sequence at line 1 column 139
    invalid type: null, expected a string at line 1 column 181
    missing field `commit` at line 1 column 180
    `provenance.kernel.commit`: `00000000000000000000000000000000000000000` is not a commit id of 40 or 64 lower-case hexadecimal digits
    ");
}

#[test]
fn malformed_required_values() {
    for (from, to) in [
        (r#""relu""#, r#""Relu""#),
        (r#""type": "cpu""#, r#""type": "npu""#),
        (r#""version": 1"#, r#""version": -1"#),
        (r#""version": 1"#, r#""version": 1.5"#),
        (r#"[]"#, r#"null"#),
        (r#""license": "MIT""#, r#""license": null"#),
    ] {
        assert!(Metadata::read(&with("").replace(from, to)).is_err(), "{to}");
    }
    for text in ["", "[]", "1", "{", "{} {}"] {
        assert!(Metadata::read(text).is_err(), "{text}");
    }
}

#[test]
fn replacing_the_digest_keeps_the_rest() {
    let text =
        r#"{"z": {"b": 1, "a": [1.50, 12345678901234567890]}, "digest": {"algorithm": "sha256", "files": {}, "new": 1}, "name": "é"}"#;
    insta::assert_snapshot!(with_digest(text, &digest()).unwrap(), @r#"
    {
      "z": {
        "b": 1,
        "a": [
          1.5,
          12345678901234567890
        ]
      },
      "digest": {
        "algorithm": "sha256",
        "files": {
          "_ops.py": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
          "a/ü.py": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
          "b.py": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        }
      },
      "name": "é"
    }
    "#);
    let without = Metadata { digest: None, ..whole() };
    assert_eq!(with_digest(&without.to_json(), &digest()).unwrap(), whole().to_json());
    assert_eq!(Metadata::read(&with_digest(&least().to_json(), &digest()).unwrap()).unwrap().digest, Some(digest()));
    assert_eq!(with_digest("[]", &digest()).unwrap_err().to_string(), "metadata must be a JSON object");
    assert!(with_digest("{", &digest()).is_err());
}

proptest! {
    #[test]
    fn any_texts_survive(license in "\\PC{0,8}", id in "\\PC{0,8}", depends in prop::collection::vec("[a-z\"\\\\\u{1}]{0,4}", 0..3), version: u64) {
        let metadata = Metadata { license, id, python_depends: depends, version, ..whole() };
        prop_assert_eq!(Metadata::read(&metadata.to_json()).unwrap(), metadata);
    }

    #[test]
    fn loader_versions(a in 0u64..100, b in 0u64..100, c in 0u64..100) {
        let version = LoaderVersion(a, b, c);
        prop_assert_eq!(version.to_string().parse::<LoaderVersion>(), Ok(version));
    }
}
