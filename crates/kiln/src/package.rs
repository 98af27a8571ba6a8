//! Assembles a variant directory and puts it in place whole.
//!
//! A directory holds the shipped files of the Python package, the generated `_ops.py`, the shared object of a compiled variant, and
//! `metadata.json` with the digest of all others. Equal contents give equal bytes, names and modes; a directory that already has
//! them is not touched at all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kiln_format::build::Framework;
use kiln_format::metadata::{Builder, Commit, LoaderVersion, MetadataBackend, Provenance};
use kiln_format::variant::Os;
use kiln_format::{BackendName, Build, Digest, DigestAlgorithm, Metadata, OpsId};
use thiserror::Error;

use crate::git::Scm;
use crate::matrix::Kind;
use crate::ops_py;
use crate::replace::{ReplaceError, Staging};
use crate::shipped::{ShippedError, shipped_files};

/// Name of the metadata file.
pub const METADATA: &str = "metadata.json";

/// A variant directory could not be assembled or put in place.
#[derive(Debug, Error)]
pub enum PackageError {
    /// A file of the package cannot be shipped.
    #[error(transparent)]
    Shipped(#[from] ShippedError),
    /// A file could not be read or written.
    #[error("failed to {what} `{}`", path.display())]
    Io {
        /// The act that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file had another content when it was copied than when it was hashed.
    #[error("`{}` changed while it was packaged", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The project has no licence, which metadata need.
    #[error("`general.license` is missing: published metadata need it")]
    NoLicense,
    /// Two files want one name.
    #[error("`{name}` of the package has the name of a generated file")]
    Clash {
        /// The name.
        name: String,
    },
    /// The directory could not be made or put in place.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
}

/// Where a file's bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    source: Source,
    executable: bool,
}

impl Entry {
    fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// The files of a variant directory but for its metadata: relative path to content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    files: BTreeMap<String, Entry>,
}

/// The file name of a compiled torch variant's shared object on `os`.
pub fn library_name(id: &OpsId, os: Os) -> String {
    match os {
        Os::Linux | Os::Darwin => format!("{id}.abi3.so"),
        Os::Windows => format!("{id}.pyd"),
    }
}

impl Contents {
    /// The files of a variant: those of the package of the project in `root` that are shipped, and `_ops.py`; for a compiled variant
    /// also the shared object in the file `library`, under the name that `os` wants.
    ///
    /// # Errors
    /// When a file of the package cannot be shipped, or has the name of the shared object.
    pub fn collect(root: &Path, build: &Build, id: &OpsId, library: Option<(&Path, Os)>) -> Result<Self, PackageError> {
        let package = format!("{}/{}", build.ext_dir(), build.python_name());
        let shipped = shipped_files(root, &package, &build.shipped_extensions())?;
        let mut files: BTreeMap<String, Entry> =
            shipped.into_iter().map(|(name, path)| (name, Entry { source: Source::File(path), executable: false })).collect();
        let ops = match library {
            Some(_) => ops_py::torch(id.as_str()),
            None => ops_py::torch_noarch(id.as_str()),
        };
        files.insert(ops_py::FILE_NAME.to_owned(), Entry { source: Source::Bytes(ops.into_bytes()), executable: false });
        if let Some((path, os)) = library {
            let name = library_name(id, os);
            // Python would find a module or package of the same stem in place of the shared object, or beside it.
            if let Some(clash) = files.keys().find(|file| file.split(['.', '/']).next() == Some(id.as_str())) {
                return Err(PackageError::Clash { name: clash.clone() });
            }
            files.insert(name, Entry { source: Source::File(path.to_owned()), executable: true });
        }
        Ok(Self { files })
    }

    /// The relative paths, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The hash of every file.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn digest(&self) -> Result<Digest, PackageError> {
        let algorithm = DigestAlgorithm::Sha256;
        let hash = |entry: &Entry| match &entry.source {
            Source::Bytes(bytes) => algorithm.hash(bytes.as_slice()).map_err(|source| io_error("hash", Path::new(METADATA), source)),
            Source::File(path) => File::open(path).and_then(|file| algorithm.hash(file)).map_err(|source| io_error("read", path, source)),
        };
        let files = self.files.iter().map(|(name, entry)| Ok((name.clone(), hash(entry)?))).collect::<Result<_, PackageError>>()?;
        Ok(Digest { algorithm, files })
    }
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> PackageError {
    PackageError::Io { what, path: path.to_owned(), source }
}

/// Who builds, and from which state of the project.
pub fn provenance(builder: Builder, scm: &Scm, dirty: bool) -> Provenance {
    let kernel = match scm {
        Scm::Git(state) => state.commit.parse().ok().map(|id| Commit { id, dirty }),
        Scm::None | Scm::Unusable(_) => None,
    };
    Provenance { builder, kernel }
}

/// The metadata of a variant, without the digest. `archs` are the architectures that were compiled, in order; empty where the backend
/// has none. A noarch variant's are what `build.toml` restricts it to.
///
/// # Errors
/// When the project has no licence.
pub fn metadata(
    build: &Build,
    backend: BackendName,
    kind: Kind,
    id: &OpsId,
    archs: &[String],
    provenance: Provenance,
) -> Result<Metadata, PackageError> {
    let general = &build.general;
    let license = general.license.as_ref().ok_or(PackageError::NoLicense)?;
    let kernel_depends: Vec<_> = build.kernel_depends_for(backend).into_iter().cloned().collect();
    let archs = match kind {
        Kind::Noarch => noarch_archs(build, backend),
        _ if archs.is_empty() => None,
        _ => Some(archs.to_vec()),
    };
    Ok(Metadata {
        name: general.name.value.clone(),
        id: id.as_str().to_owned(),
        version: general.version.value,
        kernels_minver: Some(LoaderVersion::needed_for(&kernel_depends)),
        license: license.value.clone(),
        upstream: general.upstream.as_ref().map(|url| url.value.clone()),
        source: general.source.as_ref().map(|url| url.value.clone()),
        python_depends: build.python_depends_for(backend).into_iter().map(|depends| depends.name().to_owned()).collect(),
        kernel_depends,
        backend: MetadataBackend { kind: backend, archs },
        digest: None,
        provenance: Some(provenance),
    })
}

fn noarch_archs(build: &Build, backend: BackendName) -> Option<Vec<String>> {
    let Framework::TorchNoarch(noarch) = &build.framework else { return None };
    match backend {
        BackendName::Cuda => noarch.cuda_capabilities.as_ref().map(|archs| archs.iter().map(ToString::to_string).collect()),
        BackendName::Rocm => noarch.rocm_archs.as_ref().map(|archs| archs.iter().map(ToString::to_string).collect()),
        _ => None,
    }
}

/// What [`place`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The directory had the same contents and was not touched.
    Unchanged,
    /// There was none before.
    New,
    /// The old one was replaced.
    Replaced,
}

/// Puts the directory `out/variant` in place, whole or not at all. The digest of `contents` is added to `metadata`.
///
/// # Errors
/// When a file cannot be read or written; what was in place is then still there.
pub fn place(out: &Path, variant: &str, contents: &Contents, metadata: &Metadata) -> Result<Placed, PackageError> {
    let digest = contents.digest()?;
    let text = Metadata { digest: Some(digest.clone()), ..metadata.clone() }.to_json();
    let mut all = contents.clone();
    all.files.insert(METADATA.to_owned(), Entry { source: Source::Bytes(text.into_bytes()), executable: false });

    let dir = out.join(variant);
    if is_equal(&dir, &all, &digest) {
        return Ok(Placed::Unchanged);
    }
    let existed = fs::symlink_metadata(&dir).is_ok();
    let staging = Staging::new(out, variant)?;
    for (name, entry) in &all.files {
        write(staging.path(), name, entry, digest.files.get(name))?;
    }
    staging.commit()?;
    Ok(if existed { Placed::Replaced } else { Placed::New })
}

fn write(dir: &Path, name: &str, entry: &Entry, hash: Option<&String>) -> Result<(), PackageError> {
    let path = dir.join(name);
    let error = |source| io_error("write", &path, source);
    make_parents(dir, name).map_err(error)?;
    let mut file = File::create_new(&path).map_err(error)?;
    match &entry.source {
        Source::Bytes(bytes) => file.write_all(bytes).map_err(error)?,
        Source::File(from) => {
            let input = File::open(from).map_err(|source| io_error("read", from, source))?;
            // Hashed again on the way: the digest must be that of the bytes that were written.
            let mut copy = Copy { input, output: &mut file };
            let written = DigestAlgorithm::Sha256.hash(&mut copy).map_err(error)?;
            if hash != Some(&written) {
                return Err(PackageError::Changed { path: from.clone() });
            }
        }
    }
    file.set_permissions(fs::Permissions::from_mode(entry.mode())).map_err(error)
}

/// The directories of a file, with the mode that every directory has, whatever the umask.
fn make_parents(dir: &Path, name: &str) -> io::Result<()> {
    let mut at = dir.to_owned();
    let parents = name.rsplit_once('/').map_or("", |(parents, _)| parents);
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        at.push(part);
        match fs::create_dir(&at) {
            Ok(()) => fs::set_permissions(&at, fs::Permissions::from_mode(0o755))?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A reader that also writes what it reads.
struct Copy<'a> {
    input: File,
    output: &'a mut File,
}

impl Read for Copy<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.output.write_all(buffer.get(..length).unwrap_or_default())?;
        Ok(length)
    }
}

/// Whether `dir` holds exactly these files with these bytes and modes, and nothing else. Anything that cannot be read is a difference.
fn is_equal(dir: &Path, contents: &Contents, digest: &Digest) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()) && compare(dir, contents, digest).unwrap_or(false)
}

fn compare(dir: &Path, contents: &Contents, digest: &Digest) -> io::Result<bool> {
    let mut seen = 0;
    let mut pending = vec![(dir.to_owned(), String::new())];
    while let Some((at, prefix)) = pending.pop() {
        if fs::symlink_metadata(&at)?.permissions().mode() & 0o7777 != 0o755 {
            return Ok(false);
        }
        let mut entries = 0;
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            entries += 1;
            let Ok(name) = entry.file_name().into_string() else { return Ok(false) };
            let (name, meta) = (format!("{prefix}{name}"), fs::symlink_metadata(entry.path())?);
            if meta.is_dir() {
                pending.push((entry.path(), format!("{name}/")));
                continue;
            }
            let Some(wanted) = contents.files.get(&name) else { return Ok(false) };
            if !meta.is_file() || meta.permissions().mode() & 0o7777 != wanted.mode() {
                return Ok(false);
            }
            seen += 1;
            let equal = match (&wanted.source, digest.files.get(&name)) {
                (Source::Bytes(bytes), _) => meta.len() == bytes.len() as u64 && fs::read(entry.path())? == *bytes,
                (Source::File(_), Some(hash)) => digest.algorithm.hash(File::open(entry.path())?)? == *hash,
                (Source::File(_), None) => false,
            };
            if !equal {
                return Ok(false);
            }
        }
        if entries == 0 {
            return Ok(false);
        }
    }
    Ok(seen == contents.files.len())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::git::GitState;

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
            Contents::collect(self.tmp.path(), &self.build, &self.id, Some((&library, Os::Linux))).unwrap()
        }

        fn metadata(&self, backend: BackendName, kind: Kind, archs: &[String]) -> Metadata {
            let builder = Builder { version: "kiln 0.1.0".into(), commit: None };
            metadata(&self.build, backend, kind, &self.id, archs, provenance(builder, &Scm::None, false)).unwrap()
        }

        fn place(&self) -> Placed {
            place(&self.out(), "v", &self.contents(), &self.metadata(BackendName::Cpu, Kind::Torch, &[])).unwrap()
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
            let error = Contents::collect(fixture.tmp.path(), &fixture.build, &fixture.id, Some((&library, Os::Linux))).unwrap_err();
            assert_eq!(error.to_string(), format!("`{name}` of the package has the name of a generated file"));
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_failing_package_leaves_the_old_directory() {
        let fixture = Fixture::torch();
        fixture.place();
        let before = tree(&fixture.out());
        let mut contents = fixture.contents();
        contents.files.insert("gone.py".into(), Entry { source: Source::File("/nowhere/gone.py".into()), executable: false });
        let error = place(&fixture.out(), "v", &contents, &fixture.metadata(BackendName::Cpu, Kind::Torch, &[])).unwrap_err();
        assert_eq!(error.to_string(), "failed to read `/nowhere/gone.py`");
        assert_eq!(tree(&fixture.out()), before);
    }

    #[test]
    fn a_file_that_changes_meanwhile_is_noticed() {
        let fixture = Fixture::torch();
        let dir = tempfile::tempdir().unwrap();
        let entry = Entry { source: Source::File(fixture.tmp.path().join("lib.so")), executable: true };
        let error = write(dir.path(), "lib.so", &entry, Some(&"another hash".to_owned())).unwrap_err();
        assert!(error.to_string().ends_with("lib.so` changed while it was packaged"), "{error}");
    }

    #[test]
    fn names_of_libraries() {
        let id = Fixture::torch().id;
        assert_eq!(
            [Os::Linux, Os::Darwin, Os::Windows].map(|os| library_name(&id, os)),
            ["_my_relu_cpu_1.abi3.so", "_my_relu_cpu_1.abi3.so", "_my_relu_cpu_1.pyd"]
        );
    }
}
