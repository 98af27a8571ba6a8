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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::interrupt::Interrupt;
    use crate::step::RootBinding;
    use crate::workdir::WorkDir;

    fn root(name: &str, path: &str) -> Place {
        Place::Root { root: RootName::new(name), path: path.as_bytes().to_vec() }
    }

    /// A project whose directory has a link to it, with a work directory and an immutable tree inside.
    fn with_places(test: impl FnOnce(&Path, &Places<'_>)) {
        let temp = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(temp.path()).unwrap().join("real");
        fs::create_dir_all(real.join("src/deep")).unwrap();
        fs::create_dir_all(real.join("store/torch")).unwrap();
        let link = real.with_file_name("link");
        symlink("real", &link).unwrap();
        let work_dir = WorkDir::open(link.join(".kiln")).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap();
        let mut graph = Graph::new();
        graph.bind_root(RootName::new("project"), RootBinding { dir: link.clone(), kind: RootKind::Mutable }).unwrap();
        let kind = RootKind::Immutable { digest: "1".to_owned() };
        graph.bind_root(RootName::new("torch"), RootBinding { dir: link.join("store/torch"), kind }).unwrap();
        test(real.parent().unwrap(), &Places::new(&graph, &work_dir));
    }

    #[test]
    fn a_path_belongs_to_the_deepest_tree_by_either_of_its_names() {
        with_places(|temp, places| {
            for dir in ["link", "real"] {
                let find = |path: &str| places.find(Path::new("/"), temp.join(dir).join(path).as_os_str().as_bytes());
                assert_eq!(find("src/a.c"), Found::File(root("project", "src/a.c")));
                assert_eq!(find("./src/../a.c"), Found::File(root("project", "a.c")));
                assert_eq!(find("store/x.h"), Found::File(root("project", "store/x.h")));
                assert_eq!(find("store/torch/a/t.h"), Found::Immutable { root: RootName::new("torch"), path: b"a/t.h".to_vec() });
                assert_eq!(find(".kiln/out/id/a/b.h"), Found::Output { step: StepId("id".into()), name: "a/b.h".to_owned() });
                assert_eq!(find(".kiln/out/id"), Found::Output { step: StepId("id".into()), name: String::new() });
                assert_eq!(find(".kiln/tmp/unique/o/a.o"), Found::Temporary);
                assert_eq!(find(".kiln/generated.h"), Found::File(root("project", ".kiln/generated.h")));
            }
            let outside = temp.join("linked");
            let found = places.find(Path::new("/"), outside.as_os_str().as_bytes());
            assert_eq!(found, Found::File(Place::Absolute(outside.as_os_str().as_bytes().to_vec())), "a name is not a prefix");
        });
    }

    #[test]
    fn relative_paths_are_relative_to_the_working_directory() {
        with_places(|temp, places| {
            let cwd = temp.join("link/src");
            assert_eq!(places.find(&cwd, b"a.c"), Found::File(root("project", "src/a.c")));
            assert_eq!(places.find(&cwd, b"../include/a.h"), Found::File(root("project", "include/a.h")));
            assert_eq!(places.find(&cwd, b"../../../../../../../../../../x.h"), Found::File(Place::Absolute(b"/x.h".to_vec())));
        });
    }

    #[test]
    fn a_parent_of_a_link_is_where_the_link_leads() {
        with_places(|temp, places| {
            let project = temp.join("real");
            fs::write(project.join("src/h.h"), "right").unwrap();
            symlink("src/deep", project.join("away")).unwrap();
            assert_eq!(places.find(&project, b"away/../h.h"), Found::File(root("project", "src/h.h")));
            fs::write(project.join("h.h"), "wrong").unwrap();
            assert_eq!(places.find(&project, b"away/../h.h"), Found::File(root("project", "src/h.h")));
            assert_eq!(places.find(&project, b"src/../h.h"), Found::File(root("project", "h.h")));
        });
    }

    #[test]
    fn places_lead_back_to_paths_and_read_well() {
        with_places(|temp, places| {
            let project = temp.join("link");
            assert_eq!(places.path(&root("project", "a b")), Some(project.join("a b")));
            assert_eq!(places.path(&root("project", "")), Some(project.clone()));
            assert_eq!(places.path(&root("unknown", "a")), None);
            assert_eq!(places.path(&Place::Absolute(b"/usr/x.h".to_vec())), Some(PathBuf::from("/usr/x.h")));
            assert_eq!(places.resolve(&PathRef { root: RootName::new("project"), path: String::new() }), project);
            assert_eq!(Place::Absolute(b"/usr/x.h".to_vec()).to_string(), "/usr/x.h");
            assert_eq!(root("project", "a/b").to_string(), "project:a/b");
        });
    }
}
