//! Paths as a build script writes them, below roots.

use std::path::{Component, Path, PathBuf};

use kiln_graph::{Graph, GraphError, PathRef, RootBinding, RootKind, RootName};

use super::cargo::Cargo;
use super::error::BuildError;

/// The root of the package.
const PACKAGE: &str = "package";
/// The root of `OUT_DIR`, for what the build script has generated.
const OUT: &str = "out";

/// The roots of one library.
#[derive(Debug)]
pub(super) struct Places {
    /// Deepest first: `OUT_DIR` may lie in the package.
    roots: Vec<(RootName, PathBuf)>,
}

impl Places {
    pub(super) fn new(cargo: &Cargo) -> Self {
        let mut places = Self { roots: Vec::new() };
        places.add(RootName::new(OUT), cargo.out_dir());
        places.add(Self::package(), cargo.package());
        places
    }

    fn add(&mut self, root: RootName, dir: &Path) {
        self.roots.push((root, dir.to_owned()));
        self.roots.sort_by_key(|(_, dir)| std::cmp::Reverse(dir.components().count()));
    }

    /// The root of the package.
    pub(super) fn package() -> RootName {
        RootName::new(PACKAGE)
    }

    /// The roots beside the package, each with the text that stands for it in what compilers embed.
    pub(super) fn others(&self) -> Vec<(RootName, String)> {
        self.roots.iter().filter(|(root, _)| root.as_str() != PACKAGE).map(|(root, _)| (root.clone(), root.to_string())).collect()
    }

    /// The place of a source.
    pub(super) fn file(&mut self, path: &Path) -> Result<PathRef, BuildError> {
        let path = self.absolute(path)?;
        let missing = |reason: String| BuildError::Missing { what: "the source", path: path.clone(), reason };
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Err(missing("is no file".to_owned())),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Err(missing("does not exist".to_owned())),
            Err(cause) => return Err(missing(format!("cannot be read: {cause}"))),
        }
        let dir = path.parent().unwrap_or(&path).to_owned();
        self.below(&path, &dir)
    }

    /// The place of a directory with headers.
    pub(super) fn directory(&mut self, path: &Path) -> Result<PathRef, BuildError> {
        let path = self.absolute(path)?;
        if !path.is_dir() {
            let reason = if path.exists() { "is no directory" } else { "does not exist" };
            return Err(BuildError::Missing { what: "the include directory", path, reason: reason.to_owned() });
        }
        self.below(&path, &path)
    }

    /// Where a place is.
    pub(super) fn path(&self, place: &PathRef) -> PathBuf {
        let dir = self.roots.iter().find(|(root, _)| *root == place.root).map(|(_, dir)| dir.clone()).unwrap_or_default();
        if place.path.is_empty() { dir } else { dir.join(&place.path) }
    }

    /// Binds all roots.
    pub(super) fn bind(&self, graph: &mut Graph) -> Result<(), GraphError> {
        self.roots
            .iter()
            .try_for_each(|(root, dir)| graph.bind_root(root.clone(), RootBinding { dir: dir.clone(), kind: RootKind::Mutable }))
    }

    /// `path` below the root that it is in; `dir` becomes one where it is in none.
    fn below(&mut self, path: &Path, dir: &Path) -> Result<PathRef, BuildError> {
        if !self.roots.iter().any(|(_, root)| path.starts_with(root)) {
            let digest = blake3::hash(dir.as_os_str().as_encoded_bytes()).to_hex();
            self.add(RootName::new(format!("directory-{}", digest.get(..16).unwrap_or_default())), dir);
        }
        let found = self.roots.iter().find_map(|(root, dir)| Some((root, path.strip_prefix(dir).ok()?.to_str()?)));
        let (root, path) = found.ok_or_else(|| BuildError::Path { path: path.to_owned(), reason: "it is no text".to_owned() })?;
        Ok(PathRef { root: root.clone(), path: path.to_owned() })
    }

    /// `path` from the package, without `.` and `..`.
    fn absolute(&self, path: &Path) -> Result<PathBuf, BuildError> {
        let whole = self.path(&PathRef { root: Self::package(), path: String::new() }).join(path);
        let refused = |reason: &str| Err(BuildError::Path { path: whole.clone(), reason: reason.to_owned() });
        // Cargo reads lines, and a line cannot have one of these.
        match whole.to_str() {
            None => return refused("it is no text"),
            Some(text) if text.contains(['\n', '\r', '\0']) => return refused("it has a line end in it"),
            Some(_) => {}
        }
        if !whole.components().any(|component| component == Component::ParentDir) {
            return Ok(whole.components().collect());
        }
        // What is above a link is known to the file system alone.
        Ok(whole.canonicalize().unwrap_or(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_below_a_root() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for file in ["p/src/a b.cpp", "p/target/out/made.cpp", "shared/s.cpp"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let variable = |name: &str, value: String| (name.into(), value.into());
        let target = "x86_64-unknown-linux-gnu".to_owned();
        let cargo = Cargo::new([
            variable("CARGO_MANIFEST_DIR", root.join("p").display().to_string()),
            variable("OUT_DIR", root.join("p/target/out").display().to_string()),
            variable("TARGET", target.clone()),
            variable("HOST", target),
        ]);
        let mut places = Places::new(&cargo.unwrap());
        let mut of = |path: &Path| places.file(path).map(|place| format!("{}:{}", place.root, place.path));
        assert_eq!(of(Path::new("./src//a b.cpp")).unwrap(), "package:src/a b.cpp");
        assert_eq!(of(Path::new("src/../src/a b.cpp")).unwrap(), "package:src/a b.cpp");
        assert_eq!(of(&root.join("p/target/out/made.cpp")).unwrap(), "out:made.cpp");
        let outside = of(Path::new("../shared/s.cpp")).unwrap();
        assert!(outside.starts_with("directory-") && outside.ends_with(":s.cpp"), "{outside}");
        let missing = of(Path::new("src/none.cpp")).unwrap_err().to_string();
        assert_eq!(missing, format!("the source `{}` does not exist", root.join("p/src/none.cpp").display()));
        assert!(of(Path::new("src")).unwrap_err().to_string().ends_with("is no file"));
        assert!(of(Path::new("a\nb")).unwrap_err().to_string().ends_with("it has a line end in it"));
        assert_eq!(places.directory(Path::new("src")).unwrap().path, "src");
        assert!(places.directory(Path::new("none")).unwrap_err().to_string().ends_with("does not exist"));
        assert_eq!(places.directory(&root.join("shared")).unwrap().path, "");
    }
}
