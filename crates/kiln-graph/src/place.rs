//! Where a file is, said so that it is still true when the checkout and its work directory move together.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::graph::Graph;
use crate::step::{OutputRef, PathRef, RootKind, RootName, StepId};
use crate::workdir::LockedWorkDir;

/// A file, without the directories that may move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Below a root.
    Root { root: RootName, path: Vec<u8> },
    /// An output of a step.
    Output(OutputRef),
    /// Anywhere else.
    Absolute(Vec<u8>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root { root, path } => write!(f, "{root}:{}", String::from_utf8_lossy(path)),
            Self::Output(output) => write!(f, "{}/{}", output.step, output.name),
            Self::Absolute(path) => f.write_str(&String::from_utf8_lossy(path)),
        }
    }
}

impl From<&PathRef> for Place {
    fn from(path: &PathRef) -> Self {
        Self::Root { root: path.root.clone(), path: path.path.clone().into_bytes() }
    }
}

/// What a path that a program says it read is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file that is judged by its content.
    File(Place),
    /// A file below this immutable root.
    Immutable { root: RootName, path: Vec<u8> },
    /// A file in the output directory of a step, which may or may not be one of its outputs.
    Output { step: StepId, name: String },
    /// A file that some step is just making.
    Temporary,
}

#[derive(Clone, Debug)]
enum Tree {
    Root { name: RootName, immutable: bool },
    Outputs,
    Temporary,
}

/// The directories that places are relative to.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    graph: &'a Graph,
    work_dir: &'a LockedWorkDir,
    /// Directories as bound and as the file system calls them, deepest first.
    trees: Vec<(PathBuf, Tree)>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(graph: &'a Graph, work_dir: &'a LockedWorkDir) -> Self {
        let roots = graph.roots().map(|(name, binding)| {
            (binding.dir.clone(), Tree::Root { name: name.clone(), immutable: matches!(binding.kind, RootKind::Immutable { .. }) })
        });
        let mut trees = Vec::new();
        // A program may resolve links in what it is given, so every directory is known by both names.
        for (dir, tree) in roots.chain([(work_dir.out_dir(), Tree::Outputs), (work_dir.tmp_dir(), Tree::Temporary)]) {
            if let Ok(real) = fs::canonicalize(&dir)
                && real != dir
            {
                trees.push((real, tree.clone()));
            }
            trees.push((normal(&dir), tree));
        }
        trees.sort_by_key(|(dir, _)| std::cmp::Reverse(dir.components().count()));
        Self { graph, work_dir, trees }
    }

    /// The directory or file that `path` names; its root is bound in every graph that names it.
    pub(crate) fn resolve(&self, path: &PathRef) -> PathBuf {
        let dir = self.graph.root(&path.root).map(|binding| binding.dir.clone()).unwrap_or_default();
        if path.path.is_empty() { dir } else { dir.join(&path.path) }
    }

    /// Where `place` is; nowhere if its root is not bound.
    pub(crate) fn path(&self, place: &Place) -> Option<PathBuf> {
        match place {
            Place::Root { root, path } => {
                let dir = &self.graph.root(root)?.dir;
                Some(if path.is_empty() { dir.clone() } else { dir.join(OsStr::from_bytes(path)) })
            }
            Place::Output(output) => Some(self.work_dir.output_path(output)),
            Place::Absolute(path) => Some(PathBuf::from(OsStr::from_bytes(path))),
        }
    }

    /// What `path` is, as a program that ran in `cwd` wrote it.
    pub(crate) fn find(&self, cwd: &Path, path: &[u8]) -> Found {
        let path = plain(&cwd.join(OsStr::from_bytes(path)));
        let hit = self.trees.iter().find_map(|(dir, tree)| Some((tree, path.strip_prefix(dir).ok()?)));
        let Some((tree, rest)) = hit else { return Found::File(Place::Absolute(path.into_os_string().as_bytes().to_vec())) };
        match tree {
            Tree::Root { name, immutable } => {
                let (root, path) = (name.clone(), rest.as_os_str().as_bytes().to_vec());
                if *immutable { Found::Immutable { root, path } } else { Found::File(Place::Root { root, path }) }
            }
            Tree::Outputs => {
                let rest = rest.to_string_lossy();
                let (step, name) = rest.split_once('/').unwrap_or((&rest, ""));
                Found::Output { step: StepId(step.into()), name: name.to_owned() }
            }
            Tree::Temporary => Found::Temporary,
        }
    }
}

/// `path` without `.` and `..`, by its letters alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                // The parent of `/` is `/`.
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// `path` without `.` and `..`: by its letters if that leads to the same file (`bin` of `bin/../include` may be a link),
/// else as the file system says.
fn plain(path: &Path) -> PathBuf {
    let short = normal(path);
    if !path.components().any(|component| component == Component::ParentDir) {
        return short;
    }
    let file = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    match (file(&short), file(path)) {
        (short_file, Some(real)) if short_file != Some(real) => fs::canonicalize(path).unwrap_or(short),
        _ => short,
    }
}
