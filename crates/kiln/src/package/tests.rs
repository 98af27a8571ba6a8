//! Directories as they come out, and what happens to those that are there already.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use kiln_format::metadata::Builder;
use kiln_format::{BackendName, Build, Metadata, OpsId};

use super::contents::{Entry, Source};
use super::place::write;
use super::*;
use crate::git::{GitState, Scm};
use crate::matrix::Kind;

const GENERAL: &str =
    "[general]\nname = \"my-relu\"\nversion = 3\nedition = 5\nlicense = \"Apache-2.0\"\nupstream = \"https://example.com/r.git\"\n";

struct Fixture {
    tmp: tempfile::TempDir,
    build: Build,
    id: OpsId,
}

impl Fixture {
    fn new(rest: &str) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("torch-ext/my_relu/__init__.py", "from ._ops import ops\n"),
            ("torch-ext/my_relu/_ops.py", "stale\n"),
            ("torch-ext/my_relu/layers/__init__.py", ""),
            ("torch-ext/my_relu/notes.txt", "not shipped"),
            ("lib.so", "\x7fELF"),
        ] {
            let path = tmp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let parsed = kiln_format::build::parse("build.toml", &format!("{GENERAL}{rest}"));
        let build = parsed.build.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let id = OpsId::new(&build.general.name, BackendName::Cpu, "1").unwrap();
        Self { tmp, build, id }
    }

    fn torch() -> Self {
        Self::new("backends = [\"cpu\", \"cuda\"]\n[torch]\n")
    }

    fn out(&self) -> PathBuf {
        self.tmp.path().join("build")
    }

    fn contents(&self) -> Contents {
        let library = self.tmp.path().join("lib.so");
        Contents::collect(self.tmp.path(), &self.build, &self.id, Some((&library, "_my_relu_cpu_1.abi3.so"))).unwrap()
    }

    fn metadata(&self, backend: BackendName, kind: Kind, archs: &[String]) -> Metadata {
        let builder = Builder { version: "kiln 0.1.0".into(), commit: None };
        metadata(&self.build, backend, kind, &self.id, archs, provenance(builder, &Scm::None, false)).unwrap()
    }

    fn place(&self) -> Placed {
        place(
            &self.out(),
            "v",
            &self.contents(),
            self.contents().digest().unwrap(),
            &self.metadata(BackendName::Cpu, Kind::Torch, &[]),
            &|_| true,
        )
        .unwrap()
    }
}

fn tree(dir: &Path) -> Vec<(String, u32, u64, i64, i64)> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(at) = pending.pop() {
        let meta = fs::symlink_metadata(&at).unwrap();
        found.push((
            at.strip_prefix(dir).unwrap().display().to_string(),
            meta.mode() & 0o7777,
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
        ));
        if meta.is_dir() {
            pending.extend(fs::read_dir(&at).unwrap().map(|e| e.unwrap().path()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_compiled_variant() {
    let fixture = Fixture::torch();
    assert_eq!(fixture.place(), Placed::New);
    let dir = fixture.out().join("v");
    let modes: Vec<String> = tree(&dir).iter().map(|(name, mode, ..)| format!("{mode:o} {name}")).collect();
    assert_eq!(
        modes,
        [
            "755 ",
            "644 __init__.py",
            "755 _my_relu_cpu_1.abi3.so",
            "644 _ops.py",
            "755 layers",
            "644 layers/__init__.py",
            "644 metadata.json"
        ]
    );
    assert!(fs::read_to_string(dir.join("_ops.py")).unwrap().contains("from . import _my_relu_cpu_1"));
    let metadata = Metadata::read(&fs::read_to_string(dir.join(METADATA)).unwrap()).unwrap();
    let digest = metadata.digest.unwrap();
    assert_eq!(digest.files.len(), 4);
    assert_eq!(digest.validate(&dir).unwrap(), []);
    assert_eq!(fs::read_dir(fixture.out()).unwrap().count(), 1);
}

#[test]
fn an_equal_directory_is_not_touched() {
    let fixture = Fixture::torch();
    fixture.place();
    let before = tree(&fixture.out());
    // A new mtime of a source changes nothing.
    fs::write(fixture.tmp.path().join("lib.so"), "\x7fELF").unwrap();
    assert_eq!(fixture.place(), Placed::Unchanged);
    assert_eq!(tree(&fixture.out()), before);
}

#[test]
fn whatever_differs_is_replaced_whole() {
    let fixture = Fixture::torch();
    fixture.place();
    let dir = fixture.out().join("v");
    let clean: Vec<_> = tree(&dir).into_iter().map(|(name, mode, ..)| (name, mode)).collect();
    let changes: [(&str, &dyn Fn()); 9] = [
        ("edited", &|| fs::write(dir.join("__init__.py"), "x").unwrap()),
        ("library", &|| fs::write(dir.join("_my_relu_cpu_1.abi3.so"), "other").unwrap()),
        ("metadata", &|| fs::write(dir.join(METADATA), "{}").unwrap()),
        ("extra file", &|| fs::write(dir.join("extra.py"), "").unwrap()),
        ("bytecode", &|| fs::create_dir_all(dir.join("__pycache__")).unwrap()),
        ("missing", &|| fs::remove_file(dir.join("layers/__init__.py")).unwrap()),
        ("mode", &|| fs::set_permissions(dir.join("__init__.py"), fs::Permissions::from_mode(0o600)).unwrap()),
        ("directory mode", &|| fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap()),
        ("link", &|| {
            fs::rename(dir.join("_ops.py"), fixture.tmp.path().join("moved")).unwrap();
            symlink(fixture.tmp.path().join("moved"), dir.join("_ops.py")).unwrap();
        }),
    ];
    for (what, change) in changes {
        change();
        assert_eq!(fixture.place(), Placed::Replaced, "{what}");
        assert_eq!(tree(&dir).into_iter().map(|(name, mode, ..)| (name, mode)).collect::<Vec<_>>(), clean, "{what}");
        assert_eq!(fixture.place(), Placed::Unchanged, "{what}");
    }
}

#[test]
fn metadata_of_a_compiled_variant() {
    let fixture = Fixture::new(
        "backends = [\"cuda\"]\npython-depends = [\"einops\"]\nkernel-depends = [{ repo-id = \"a/b\", version = 1 }]\n\
         [general.cuda]\npython-depends = [\"nvidia-cutlass-dsl\", \"einops\"]\n[torch]\n",
    );
    let text = fixture.metadata(BackendName::Cuda, Kind::Torch, &["9.0".into(), "10.0+PTX".into()]).to_json();
    insta::assert_snapshot!(text, @r#"
    {
      "name": "my-relu",
      "id": "_my_relu_cpu_1",
      "version": 3,
      "kernels-minver": "0.17.0",
      "license": "Apache-2.0",
      "upstream": "https://example.com/r.git",
      "python-depends": [
        "einops",
        "nvidia-cutlass-dsl"
      ],
      "kernel-depends": [
        {
          "repo-id": "a/b",
          "version": 1
        }
      ],
      "backend": {
        "type": "cuda",
        "archs": [
          "9.0",
          "10.0+PTX"
        ]
      },
      "provenance": {
        "kernel-builder": {
          "version": "kiln 0.1.0"
        }
      }
    }
    "#);
}

#[test]
fn metadata_of_noarch_variants_restrict_as_written() {
    let fixture = Fixture::new(
        "backends = [\"cuda\", \"rocm\", \"cpu\"]\n[torch-noarch]\ncuda-capabilities = [\"9.0\", \"8.0+PTX\"]\nrocm-archs = [\"gfx942\"]\n",
    );
    let archs = |backend| fixture.metadata(backend, Kind::Noarch, &[]).backend.archs;
    assert_eq!(archs(BackendName::Cuda), Some(vec!["9.0".into(), "8.0+PTX".into()]));
    assert_eq!(archs(BackendName::Rocm), Some(vec!["gfx942".into()]));
    assert_eq!(archs(BackendName::Cpu), None);
    let contents = Contents::collect(fixture.tmp.path(), &fixture.build, &fixture.id, None).unwrap();
    assert_eq!(contents.names().collect::<Vec<_>>(), ["__init__.py", "_ops.py", "layers/__init__.py"]);
}

#[test]
fn provenance_names_the_commit() {
    let builder = Builder { version: "kiln 0.1.0".into(), commit: None };
    let state = GitState { commit: "a".repeat(40), tree: "b".repeat(40), tracked_changed: true, untracked: Vec::new() };
    let kernel = provenance(builder.clone(), &Scm::Git(state), true).kernel.unwrap();
    assert_eq!((kernel.id.as_str().len(), kernel.dirty), (40, true));
    assert_eq!(provenance(builder, &Scm::Unusable("x".into()), true).kernel, None);
}

#[test]
fn modules_that_would_hide_the_shared_object_are_refused() {
    let fixture = Fixture::torch();
    for name in ["_my_relu_cpu_1.py", "_my_relu_cpu_1/__init__.py"] {
        let path = fixture.tmp.path().join("torch-ext/my_relu").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let library = fixture.tmp.path().join("lib.so");
        let error =
            Contents::collect(fixture.tmp.path(), &fixture.build, &fixture.id, Some((&library, "_my_relu_cpu_1.abi3.so"))).unwrap_err();
        assert_eq!(error.to_string(), format!("`{name}` of the package has the name of a generated file"));
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_failing_package_leaves_the_old_directory() {
    let fixture = Fixture::torch();
    fixture.place();
    let before = tree(&fixture.out().join("v"));
    let mut contents = fixture.contents();
    let mut digest = contents.digest().unwrap();
    contents.files.insert("gone.py".into(), Entry { source: Source::File("/nowhere/gone.py".into()), executable: false });
    assert_eq!(contents.digest().unwrap_err().to_string(), "failed to read `/nowhere/gone.py`");
    // Gone after it was hashed.
    digest.files.insert("gone.py".into(), "00".into());
    let metadata = fixture.metadata(BackendName::Cpu, Kind::Torch, &[]);
    let error = place(&fixture.out(), "v", &contents, digest, &metadata, &|_| true).unwrap_err();
    assert_eq!(error.to_string(), "failed to read `/nowhere/gone.py`");
    assert_eq!(tree(&fixture.out().join("v")), before);
    assert_eq!(fs::read_dir(fixture.out()).unwrap().count(), 1);
}

#[test]
fn a_file_that_changes_meanwhile_is_noticed() {
    let fixture = Fixture::torch();
    let dir = tempfile::tempdir().unwrap();
    let entry = Entry { source: Source::File(fixture.tmp.path().join("lib.so")), executable: true };
    let error = write(dir.path(), "lib.so", &entry, Some(&"another hash".to_owned())).unwrap_err();
    assert!(error.to_string().ends_with("lib.so` changed while it was packaged"), "{error}");
}

/// What the checks refuse is not put in place, and what is there stays.
#[test]
fn a_refused_directory_is_not_placed() {
    let fixture = Fixture::torch();
    let place = |answer: bool| {
        let looked = std::cell::RefCell::new(Vec::new());
        let inspect = |dir: &Path| {
            looked.borrow_mut().push((dir.join("_ops.py").is_file(), dir.join(METADATA).is_file()));
            answer
        };
        let metadata = fixture.metadata(BackendName::Cpu, Kind::Torch, &[]);
        let result = place(&fixture.out(), "v", &fixture.contents(), fixture.contents().digest().unwrap(), &metadata, &inspect);
        assert_eq!(looked.into_inner(), [(true, true)], "a whole directory is looked at, once");
        result
    };
    assert!(matches!(place(false), Err(PackageError::Refused)));
    assert_eq!(fs::read_dir(fixture.out()).unwrap().count(), 0);
    assert_eq!(place(true).unwrap(), Placed::New);
    let before = tree(&fixture.out());
    assert!(matches!(place(false), Err(PackageError::Refused)));
    assert_eq!(tree(&fixture.out()), before);
}
