//! A project directory: its `build.toml`, its optional `kiln.toml`, and the files that decide what it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_format::lock::{self, Lock};
use kiln_format::{Build, Diagnostic, DiagnosticReport, Level, SourceFile, render};
use thiserror::Error;

use crate::config_check::files_read_by_flags;
use crate::globs;
use crate::matrix::{Matrix, MatrixError};
use crate::ops_id::SourceSet;
use crate::settings_file::{self, Settings};
use crate::shipped::{ShippedError, shipped_files};

/// Name of the project file.
pub const BUILD_TOML: &str = "build.toml";
/// Names in a project that are Kiln's own outputs: never read as sources, never counted as changes.
pub const OWN: [&str; 3] = ["build", WORK, lock::FILE_NAME];
/// Name of the directory that work is done in.
pub const WORK: &str = ".kiln";
/// A directory that every compiler looks for headers in when the project has it, whether listed or not.
pub use kiln_backend::CSRC;

/// Extensions of files that C-family compilers read, translation units and what they include.
const SOURCE_EXTENSIONS: [&str; 24] = [
    "c", "c++", "cc", "cpp", "cu", "cuh", "cxx", "def", "h", "h++", "hh", "hip", "hpp", "hxx", "inc", "inl", "ipp", "ixx", "m", "metal",
    "mm", "tcc", "tpp", "txx",
];

/// A project could not be opened.
#[derive(Debug, Error)]
pub enum ProjectError {
    /// There is nothing at the path.
    #[error("there is no directory `{}`", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The path is no directory.
    #[error("`{}` is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory has no `build.toml`.
    #[error("`{}` has no build.toml", path.display())]
    NoBuildToml {
        /// The directory.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error("failed to read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is not UTF-8, which TOML must be.
    #[error("`{}` is not UTF-8: the byte 0x{byte:02x} in line {line}, column {column} is no text", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first bad byte.
        byte: u8,
        /// Its line, from 1.
        line: usize,
        /// Its column in characters, from 1.
        column: usize,
    },
    /// A directory stands where a file should be.
    #[error("`{}` is a directory, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A link whose target is not there stands where a file should be.
    #[error("`{}` is a link that leads nowhere", path.display())]
    Dangling {
        /// The path.
        path: PathBuf,
    },
    /// A pipe, a socket or a device stands where a file should be: reading it might never end.
    #[error("`{}` is neither a file nor a directory", path.display())]
    Special {
        /// The path.
        path: PathBuf,
    },
}

impl ProjectError {
    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotADirectory { path } if path.file_name().is_some_and(|name| name == BUILD_TOML) => {
                let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                Some(format!("give the directory that holds it: `{}`", parent.display()))
            }
            Self::NotADirectory { .. } => Some("give the directory that holds build.toml".to_owned()),
            Self::NotUtf8 { .. } => Some("save the file as UTF-8".to_owned()),
            Self::NoBuildToml { .. } => Some("run Kiln in the directory that holds build.toml, or give that directory".to_owned()),
            _ => None,
        }
    }
}

/// A file of the project and what there is to say about it.
#[derive(Clone, Debug)]
pub struct Remarks {
    /// The file, which the places point into.
    pub source: Arc<SourceFile>,
    /// What there is to say, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// What became of a project directory. Faults in its files are no errors here: [`Project::build`] tells whether it can be used.
#[derive(Clone, Debug)]
pub struct Project {
    /// The directory, absolute, links resolved.
    pub root: PathBuf,
    /// The model of `build.toml`, when it has no error, with the files that patterns in `src` match.
    pub build: Option<Build>,
    /// What `kiln.toml` says; the default where there is none.
    pub settings: Settings,
    /// Remarks on `build.toml`.
    pub build_toml: Remarks,
    /// Remarks on `kiln.toml`, when there is one.
    pub kiln_toml: Option<Remarks>,
    /// Remarks on the matrix file that `kiln.toml` names, when it cannot be used.
    pub matrix_toml: Option<Remarks>,
    /// What `kiln.lock` pins; nothing where there is none, or when it cannot be used.
    pub lock: Lock,
    /// Remarks on `kiln.lock`, when it cannot be used.
    pub lock_toml: Option<Remarks>,
}

impl Project {
    /// Reads the project in `dir`.
    ///
    /// # Errors
    /// When `dir` is no directory, has no `build.toml`, or one of the two files cannot be read as text.
    pub fn open(dir: &Path) -> Result<Self, ProjectError> {
        let root = match fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => dir.canonicalize().map_err(|source| ProjectError::Io { path: dir.to_owned(), source })?,
            Ok(_) => return Err(ProjectError::NotADirectory { path: dir.to_owned() }),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(ProjectError::Missing { path: dir.to_owned() });
            }
            Err(source) => return Err(ProjectError::Io { path: dir.to_owned(), source }),
        };
        // Messages show the path as the user would write it.
        let shown = |name: &str| if dir == Path::new(".") { name.to_owned() } else { dir.join(name).display().to_string() };
        let text =
            read_text(&dir.join(BUILD_TOML), &shown(BUILD_TOML))?.ok_or_else(|| ProjectError::NoBuildToml { path: dir.to_owned() })?;
        let parsed = kiln_format::build::parse(&shown(BUILD_TOML), &text);
        let (mut settings, mut kiln_toml) = (Settings::default(), None);
        if let Some(text) = read_text(&dir.join(settings_file::FILE_NAME), &shown(settings_file::FILE_NAME))? {
            let (read, diagnostics) = settings_file::parse(&text);
            settings = read;
            let source = SourceFile::new(shown(settings_file::FILE_NAME), settings_file::without_tokens(&text));
            kiln_toml = Some(Remarks { source: Arc::new(source), diagnostics });
        }
        let mut build_toml = Remarks { source: parsed.source, diagnostics: parsed.diagnostics };
        let mut build = parsed.build;
        if let Some(build) = &mut build {
            build_toml.diagnostics.extend(globs::expand(&root, build));
        }
        let (mut lock, mut lock_toml) = (Lock::default(), None);
        if let Some(text) = read_text(&dir.join(lock::FILE_NAME), &shown(lock::FILE_NAME))? {
            let (read, diagnostics) = Lock::parse(&text).map_or_else(|fault| (Lock::default(), vec![fault]), |read| (read, Vec::new()));
            lock = read;
            lock_toml = Some(Remarks { source: Arc::new(SourceFile::new(shown(lock::FILE_NAME), text)), diagnostics });
        }
        Ok(Self { root, build, settings, build_toml, kiln_toml, matrix_toml: None, lock, lock_toml })
    }

    /// Every remark as text for people, `build.toml` first.
    pub fn render(&self) -> String {
        let texts = self.remarks().map(|remarks| render(&remarks.source, &remarks.diagnostics));
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// How many remarks of `level` there are.
    pub fn count(&self, level: Level) -> usize {
        self.remarks().flat_map(|remarks| &remarks.diagnostics).filter(|diagnostic| diagnostic.level == level).count()
    }

    /// Every remark as data, `build.toml` first.
    pub fn reports(&self) -> Vec<DiagnosticReport<'_>> {
        self.remarks().flat_map(|remarks| remarks.diagnostics.iter().map(|diagnostic| remarks.source.report(diagnostic))).collect()
    }

    /// Drops the remarks that `[checks]` in `kiln.toml` silences. Errors stay.
    pub fn silence(&mut self) {
        let silenced = std::mem::take(&mut self.settings.silenced);
        let mut used: BTreeSet<&'static str> = BTreeSet::new();
        for remarks in self.remarks_mut() {
            remarks.diagnostics.retain(|diagnostic| {
                let is_silenced = diagnostic.level != Level::Error && silenced.contains_key(diagnostic.code);
                if is_silenced {
                    used.insert(diagnostic.code);
                }
                !is_silenced
            });
        }
        if let Some(kiln_toml) = &mut self.kiln_toml {
            for (code, reason) in silenced.iter().filter(|(code, _)| !used.contains(code.as_str())) {
                let message = format!("`checks.{code}` silences nothing");
                kiln_toml.diagnostics.push(Diagnostic::note("unused-silence", reason.span, message).with_hint("remove it".to_owned()));
            }
        }
        self.settings.silenced = silenced;
    }

    /// Makes the remarks with this code errors.
    pub fn deny(&mut self, code: &str) {
        for diagnostic in self.remarks_mut().flat_map(|remarks| &mut remarks.diagnostics).filter(|diagnostic| diagnostic.code == code) {
            diagnostic.level = Level::Error;
        }
    }

    fn remarks_mut(&mut self) -> impl Iterator<Item = &mut Remarks> {
        std::iter::once(&mut self.build_toml).chain(&mut self.kiln_toml).chain(&mut self.matrix_toml).chain(&mut self.lock_toml)
    }

    /// Drops the remarks that `keep` denies.
    pub fn retain(&mut self, keep: impl Fn(&Diagnostic) -> bool) {
        for remarks in self.remarks_mut() {
            remarks.diagnostics.retain(&keep);
        }
    }

    fn remarks(&self) -> impl Iterator<Item = &Remarks> {
        std::iter::once(&self.build_toml).chain(&self.kiln_toml).chain(&self.matrix_toml).chain(&self.lock_toml)
    }

    /// The path of `matrix.file` in `kiln.toml`, when it is set.
    pub fn matrix_file(&self) -> Option<PathBuf> {
        self.settings.matrix_file.as_ref().map(|file| self.root.join(&file.value))
    }

    /// The matrix that `kiln.toml` names; none if it names none, and also if that cannot be used: then there is a remark.
    pub(crate) fn read_matrix(&mut self) -> Option<Matrix> {
        let path = self.matrix_file()?;
        let (named, kiln_toml) = (self.settings.matrix_file.as_ref()?, self.kiln_toml.as_mut()?);
        // Beside `kiln.toml`, as the user would write it.
        let shown = Path::new(kiln_toml.source.name()).with_file_name(&named.value).display().to_string();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) => {
                let message = format!("the matrix file `{shown}` cannot be read: {cause}");
                kiln_toml.diagnostics.push(Diagnostic::error("matrix", named.span, message));
                return None;
            }
        };
        match Matrix::parse(&shown, &text) {
            Ok(matrix) => Some(matrix),
            Err(MatrixError { source_file, diagnostic }) => {
                self.matrix_toml = Some(Remarks { source: source_file, diagnostics: vec![*diagnostic] });
                None
            }
        }
    }
}

/// The text of a file, which messages call `shown`; none if there is no such file.
pub(crate) fn read_text(path: &Path, shown: &str) -> Result<Option<String>, ProjectError> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return Err(ProjectError::Special { path: shown.into() });
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() => {
            return Err(ProjectError::Dangling { path: shown.into() });
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => return Err(ProjectError::NotAFile { path: shown.into() }),
        Err(source) => return Err(ProjectError::Io { path: shown.into(), source }),
    };
    // A zero byte is good UTF-8, but no TOML: it is what other encodings of letters are full of.
    let valid = match std::str::from_utf8(&bytes) {
        Ok(text) => text.find('\0'),
        Err(cause) => Some(cause.valid_up_to()),
    };
    if let Some(valid) = valid {
        let (good, bad) = bytes.split_at_checked(valid).unwrap_or_default();
        let good = String::from_utf8_lossy(good);
        let line_head = good.rsplit('\n').next().unwrap_or_default();
        return Err(ProjectError::NotUtf8 {
            path: shown.into(),
            byte: bad.first().copied().unwrap_or_default(),
            line: good.matches('\n').count() + 1,
            column: line_head.chars().count() + 1,
        });
    }
    Ok(String::from_utf8(bytes).ok())
}

/// Whether a file is a C-family source or header by its extension, or by having none (as headers of the C++ library have).
pub(crate) fn is_source_name(name: &str) -> bool {
    match name.rsplit_once('.') {
        Some((stem, extension)) => !stem.is_empty() && SOURCE_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()),
        None => false,
    }
}

/// The files that decide what the project in `root` is: both project files, every listed source with the sources and headers beside
/// it, those that flags name, those below the include directories and `csrc`, and the shipped Python. What is not there is left out; the configuration checks report it.
///
/// # Errors
/// When a file of the package cannot be shipped.
pub fn source_set(root: &Path, build: &Build) -> Result<SourceSet, ShippedError> {
    let mut files = BTreeMap::new();
    let mut add = |name: &str| {
        let path = root.join(name);
        if path.is_file() {
            files.insert(name.to_owned(), path);
        }
    };
    for name in [BUILD_TOML, settings_file::FILE_NAME] {
        add(name);
    }
    let kernels = || build.kernels.iter();
    let mut dirs = BTreeSet::new();
    for source in build.framework.src().iter().chain(kernels().flat_map(|kernel| &kernel.src)) {
        add(source.as_str());
        dirs.insert(source.as_str().rsplit_once('/').map_or("", |(dir, _)| dir));
    }
    for file in files_read_by_flags(build) {
        add(&file);
    }
    for dir in dirs {
        walk(root, dir, false, &mut add);
    }
    let includes = build.framework.include().iter().chain(kernels().flat_map(|kernel| &kernel.include));
    for dir in includes.map(|include| include.as_str()).chain([CSRC]) {
        walk(root, dir, true, &mut add);
    }
    let package = format!("{}/{}", build.ext_dir(), build.python_name());
    for (name, path) in shipped_files(root, &package, &build.shipped_extensions())? {
        files.insert(format!("{package}/{name}"), path);
    }
    Ok(SourceSet { files })
}

/// Gives the sources and headers in `dir` to `add`, with `deep` those of its sub-directories too. Hidden directories, linked ones and
/// Kiln's own outputs are left out.
fn walk(root: &Path, dir: &str, deep: bool, add: &mut impl FnMut(&str)) {
    let Ok(entries) = fs::read_dir(root.join(dir)) else { return };
    for entry in entries.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && deep && !name.starts_with('.') && !OWN.contains(&path.as_str()) => walk(root, &path, deep, add),
            Ok(kind) if kind.is_dir() => {}
            Ok(_) if is_source_name(&name) => add(&path),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = "[general]\nname = \"my-relu\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"cpu\"]\n\
        [torch]\nsrc = [\"torch-ext/b.cpp\"]\ninclude = [\"third\"]\npyext = [\"py\", \"json\"]\n\
        [kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"cpu/k.cpp\"]\n";

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let tmp = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = tmp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        tmp
    }

    fn error(dir: &Path) -> (String, Option<String>) {
        let error = Project::open(dir).unwrap_err();
        (
            error.to_string().replace(&dir.parent().unwrap().display().to_string(), "DIR"),
            error.hint().map(|h| h.replace(&dir.parent().unwrap().display().to_string(), "DIR")),
        )
    }

    #[test]
    fn a_project_with_both_files() {
        let tmp = project(&[(BUILD_TOML, &format!("\u{feff}{TOML}")), ("kiln.toml", "[matrix]\nfile = \"m.toml\"\n")]);
        let project = Project::open(tmp.path()).unwrap();
        assert_eq!(project.build.as_ref().unwrap().python_name(), "my_relu");
        assert_eq!((project.count(Level::Error), project.render().as_str()), (0, ""));
        assert_eq!(project.matrix_file(), Some(tmp.path().canonicalize().unwrap().join("m.toml")));
    }

    #[test]
    fn faults_of_both_files_are_told_together() {
        let tmp = project(&[(BUILD_TOML, &TOML.replace("pyext", "pyexts")), ("kiln.toml", "[indexes]\n")]);
        let project = Project::open(tmp.path()).unwrap();
        assert!(project.build.is_none());
        assert_eq!(project.count(Level::Error), 2);
        let dir = tmp.path().display().to_string();
        let text = project.render();
        assert!(text.contains(&format!("--> {dir}/build.toml:10:1")) && text.contains(&format!("--> {dir}/kiln.toml:1:2")), "{text}");
    }

    #[test]
    fn paths_that_are_no_project() {
        let tmp = project(&[("empty/x", ""), ("p/build.toml", TOML), ("latin/build.toml", "")]);
        let dir = |name: &str| tmp.path().join(name);
        fs::write(dir("latin/build.toml"), b"# caf\xe9\n").unwrap();
        assert_eq!(error(&dir("gone")).0, "there is no directory `DIR/gone`");
        assert_eq!(
            error(&dir("empty")),
            (
                "`DIR/empty` has no build.toml".into(),
                Some("run Kiln in the directory that holds build.toml, or give that directory".into())
            )
        );
        assert_eq!(
            error(&dir("p/build.toml")),
            ("`DIR/build.toml` is not a directory".into(), Some("give the directory that holds it: `DIR`".into()))
        );
        assert_eq!(error(&dir("p/build.toml/x")).0, "there is no directory `DIR/x`");
        assert_eq!(error(&dir("latin")).0, "`DIR/latin/build.toml` is not UTF-8: the byte 0xe9 in line 1, column 6 is no text");
    }

    #[test]
    fn what_a_project_is_made_of() {
        let files = [
            "torch-ext/b.cpp",
            "torch-ext/b.h",
            "torch-ext/my_relu/__init__.py",
            "torch-ext/my_relu/_ops.py",
            "torch-ext/my_relu/data.json",
            "torch-ext/my_relu/notes.md",
            "cpu/k.cpp",
            "cpu/k.hpp",
            "cpu/deeper/unused.h",
            "cpu/README.md",
            "csrc/deep/c.h",
            "third/a/b.cuh",
            "third/.git/config.h",
            "build/v/x.h",
            "tests/test.py",
        ];
        let mut all: Vec<(&str, &str)> = files.iter().map(|f| (*f, *f)).collect();
        all.push((BUILD_TOML, TOML));
        let tmp = project(&all);
        let build = Project::open(tmp.path()).unwrap().build.unwrap();
        let set = source_set(tmp.path(), &build).unwrap();
        let names: Vec<_> = set.files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "build.toml",
                "cpu/k.cpp",
                "cpu/k.hpp",
                "csrc/deep/c.h",
                "third/a/b.cuh",
                "torch-ext/b.cpp",
                "torch-ext/b.h",
                "torch-ext/my_relu/__init__.py",
                "torch-ext/my_relu/data.json"
            ]
        );
    }

    #[test]
    fn an_include_of_the_whole_project_leaves_outputs_out() {
        let toml = TOML.replace("\"third\"", "\".\"");
        let tmp = project(&[(BUILD_TOML, &toml), ("cpu/k.h", ""), ("build/v/x.h", ""), (".kiln/y.h", ""), ("cpu/build/z.h", "")]);
        let build = Project::open(tmp.path()).unwrap().build.unwrap();
        let set = source_set(tmp.path(), &build).unwrap();
        assert_eq!(set.files.keys().collect::<Vec<_>>(), ["build.toml", "cpu/build/z.h", "cpu/k.h"]);
    }

    #[test]
    fn names_of_sources() {
        for (name, is) in
            [("a.cpp", true), ("a.CPP", true), ("a.cuh", true), (".h", false), ("a.py", false), ("Makefile", false), ("a.c++", true)]
        {
            assert_eq!(is_source_name(name), is, "{name}");
        }
        assert!(SOURCE_EXTENSIONS.is_sorted());
    }
}
