//! What git says about a project: HEAD's commit and tree, and which files differ from it.
//!
//! At most two processes: `git rev-parse` for the ids and `git status` for the differences; none where no ancestor has a `.git`.
//! The caller gives the program and its whole environment, so that `GIT_DIR` and the like of a surrounding hook decide nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kiln_graph::Interrupt;
use kiln_toolchain::process::{self, NoAnswer};

/// How to run git.
#[derive(Clone, Debug)]
pub struct GitTool {
    /// The program, absolute or to be found on the `PATH` of `env`.
    pub program: PathBuf,
    /// The environment to run it in, beside what this module adds. Sensible entries: `PATH`, `HOME`, `XDG_CONFIG_HOME` (git's
    /// own settings, `safe.directory` among them, are found through the last two).
    pub env: BTreeMap<OsString, OsString>,
    /// How long it may take for one answer; usually [`LIMIT`].
    pub limit: Duration,
    /// Ends it.
    pub interrupt: Interrupt,
}

/// How long git may take for one answer. It reads the state of a whole work tree, which may be large and far away.
pub const LIMIT: Duration = Duration::from_secs(600);
/// Bytes of an answer of git that are read.
const LONGEST: usize = 256 << 20;

/// What git says about a project directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scm {
    /// The project is in no git work tree, or in one without a commit.
    None,
    /// There is a repository, but git cannot read it; the reason, for a warning.
    Unusable(String),
    /// The project is in a git work tree.
    Git(GitState),
}

/// The state of a git work tree, as far as a project inside it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitState {
    /// HEAD's commit id: 40 or 64 lower-case hexadecimal digits.
    pub commit: String,
    /// Id of HEAD's tree, in the same form.
    pub tree: String,
    /// Whether a tracked file of the project differs from HEAD, or is gone, in the index or on disk.
    pub tracked_changed: bool,
    /// Untracked and ignored files and directories of the project (all below a directory counts), relative to it; sorted. The
    /// project itself is the empty path.
    pub untracked: Vec<PathBuf>,
}

impl GitState {
    /// Whether the project, of which the build reads `inputs` (relative paths), differs from HEAD: a tracked file changed, or an
    /// input is not tracked. Submodules are what HEAD says they are.
    pub fn is_dirty<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> bool {
        self.tracked_changed || inputs.into_iter().any(|input| self.untracked.iter().any(|entry| input.starts_with(entry)))
    }
}

/// Asks git about the project in `dir`. Paths in `own` (relative to `dir`, such as `build` and `.kiln`) are Kiln's own and never
/// count as changed.
pub fn inspect(dir: &Path, tool: &GitTool, own: &[&Path]) -> Scm {
    // Looked up through links, because git sees the resolved directory too.
    let Ok(dir) = dir.canonicalize() else { return Scm::None };
    if !dir.ancestors().any(|d| d.join(".git").symlink_metadata().is_ok()) {
        return Scm::None;
    }
    match ask(&dir, tool, own) {
        Ok(scm) => scm,
        Err(reason) => Scm::Unusable(reason),
    }
}

/// The release of git: `2.39.5`.
///
/// # Errors
/// Why it does not say, in a few words.
pub fn version(tool: &GitTool) -> Result<String, String> {
    let said = git(Path::new("/"), tool, &["version"])?;
    let text = String::from_utf8_lossy(&said);
    let version = text.trim().strip_prefix("git version ").unwrap_or(text.trim());
    Ok(version.split_whitespace().next().unwrap_or_default().to_owned())
}

fn ask(dir: &Path, tool: &GitTool, own: &[&Path]) -> Result<Scm, String> {
    let ids = match git(dir, tool, &["rev-parse", "--show-prefix", "HEAD", "HEAD^{tree}"]) {
        Ok(answer) => answer,
        // A repository without a commit: nothing to name a state by.
        Err(reason) if reason.contains("unknown revision") => return Ok(Scm::None),
        Err(reason) => return Err(reason),
    };
    let (prefix, commit, tree) = split_ids(&ids).ok_or_else(|| "`git rev-parse` gave an answer of unknown form".to_owned())?;
    let status = git(dir, tool, &STATUS)?;
    let (tracked_changed, untracked) = read_status(&status, prefix, own);
    Ok(Scm::Git(GitState { commit, tree, tracked_changed, untracked }))
}

/// Ignored files count when the build reads them, so they are listed too; in this form git does not look into ignored directories.
const STATUS: [&str; 8] =
    ["status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignored=matching", "--ignore-submodules=all", "--no-renames", "."];

/// Runs git in `dir` and gives its standard output, or why that failed.
fn git(dir: &Path, tool: &GitTool, args: &[&str]) -> Result<Vec<u8>, String> {
    let mut command = Command::new(&tool.program);
    // No writing of the index for speed's sake, no monitor daemon, no paths read as patterns, no prompt, no fetching.
    command.args(["--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false"]).args(args).current_dir(dir);
    command.env_clear().envs(&tool.env).env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
    let what = args.first().unwrap_or(&"");
    let output = process::ask_for(&mut command, LONGEST, tool.limit, &tool.interrupt).map_err(|failure| match failure {
        NoAnswer::Io(cause) if cause.kind() == io::ErrorKind::NotFound => format!("`{}` is not installed", tool.program.display()),
        NoAnswer::Io(cause) => format!("`{}` cannot be run: {cause}", tool.program.display()),
        failure => format!("`git {what}` was ended: {failure}"),
    })?;
    if output.stdout.len() >= LONGEST {
        return Err(format!("`git {what}` says more than is read"));
    }
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let reason = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim_start_matches("fatal: ");
    Err(format!("`git {what}` failed: {reason}"))
}

/// Splits the answer of `rev-parse`: a prefix (which may hold line ends), the commit and the tree, each closed by a line end.
fn split_ids(answer: &[u8]) -> Option<(&[u8], String, String)> {
    let answer = answer.strip_suffix(b"\n")?;
    let (rest, tree) = cut_last_line(answer)?;
    let (prefix, commit) = cut_last_line(rest)?;
    Some((prefix, oid(commit)?, oid(tree)?))
}

fn cut_last_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|b| *b == b'\n')?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

fn oid(text: &[u8]) -> Option<String> {
    let hex = matches!(text.len(), 40 | 64) && text.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    hex.then(|| String::from_utf8_lossy(text).into_owned())
}

/// Reads `status --porcelain=v1 -z`: entries `XY PATH`, paths relative to the top of the work tree, directories closed by `/`.
fn read_status(status: &[u8], prefix: &[u8], own: &[&Path]) -> (bool, Vec<PathBuf>) {
    let mut tracked_changed = false;
    let mut untracked = Vec::new();
    for entry in status.split(|b| *b == 0) {
        let Some((code, path)) = entry.split_at_checked(3) else { continue };
        let inside = match path.strip_prefix(prefix) {
            Some(inside) => OsStr::from_bytes(inside.strip_suffix(b"/").unwrap_or(inside)),
            // An untracked directory above the project: nothing of the project is tracked.
            None => OsStr::new(""),
        };
        if own.iter().any(|o| Path::new(inside).starts_with(o)) {
            continue;
        }
        match code {
            b"?? " | b"!! " => untracked.push(PathBuf::from(OsString::from_vec(inside.as_bytes().to_vec()))),
            _ => tracked_changed = true,
        }
    }
    untracked.sort();
    (tracked_changed, untracked)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tool() -> GitTool {
        let env = [
            ("PATH", std::env::var_os("PATH").unwrap()),
            // No settings of the machine that runs the tests.
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_AUTHOR_NAME", "a".into()),
            ("GIT_AUTHOR_EMAIL", "a@example.com".into()),
            ("GIT_COMMITTER_NAME", "a".into()),
            ("GIT_COMMITTER_EMAIL", "a@example.com".into()),
        ];
        GitTool {
            program: "git".into(),
            env: env.into_iter().map(|(k, v)| (k.into(), v)).collect(),
            limit: LIMIT,
            interrupt: Interrupt::new(),
        }
    }

    fn run(dir: &Path, args: &[&str]) {
        git(dir, &tool(), args).unwrap();
    }

    const OWN: [&str; 2] = ["build", ".kiln"];

    fn state(dir: &Path) -> GitState {
        match inspect(dir, &tool(), &OWN.map(Path::new)) {
            Scm::Git(state) => state,
            other => panic!("{other:?}"),
        }
    }

    fn dirty(dir: &Path, inputs: &[&str]) -> bool {
        state(dir).is_dirty(inputs.iter().map(Path::new))
    }

    /// A repository whose folder `sp ace/pröj` is the project, with one commit.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("sp ace").join("pröj");
        fs::create_dir_all(dir.join("cpu")).unwrap();
        fs::write(dir.join("cpu/a.cpp"), "a").unwrap();
        fs::write(dir.join(".gitignore"), "gen\n").unwrap();
        fs::write(tmp.path().join("other"), "o").unwrap();
        run(tmp.path(), &["init", "-q"]);
        run(tmp.path(), &["add", "."]);
        run(tmp.path(), &["commit", "-q", "-m", "one"]);
        (tmp, dir)
    }

    #[test]
    fn clean_and_dirty() {
        let (tmp, dir) = project();
        let clean = state(&dir);
        assert_eq!((clean.commit.len(), clean.tree.len(), clean.tracked_changed), (40, 40, false));
        assert!(!dirty(&dir, &["cpu/a.cpp"]));
        // Outside the project, or Kiln's own.
        fs::write(tmp.path().join("other"), "changed").unwrap();
        for own in OWN {
            fs::create_dir_all(dir.join(own)).unwrap();
            fs::write(dir.join(own).join("file"), "x").unwrap();
        }
        assert!(!dirty(&dir, &["cpu/a.cpp"]));
        // Untracked: only when read.
        fs::write(dir.join("cpu/b.cpp"), "b").unwrap();
        assert!(!dirty(&dir, &["cpu/a.cpp"]));
        assert!(dirty(&dir, &["cpu/a.cpp", "cpu/b.cpp"]));
        fs::remove_file(dir.join("cpu/b.cpp")).unwrap();
        fs::write(dir.join("cpu/a.cpp"), "changed").unwrap();
        assert!(dirty(&dir, &[]));
        assert_eq!(state(&dir).tree, clean.tree);
    }

    #[test]
    fn ignored_files_count_when_the_build_reads_them() {
        let (_tmp, dir) = project();
        fs::create_dir(dir.join("gen")).unwrap();
        fs::write(dir.join("gen/g.cpp"), "g").unwrap();
        assert!(dirty(&dir, &["gen/g.cpp"]));
        assert!(!dirty(&dir, &["generic.cpp"]));
    }

    #[test]
    fn tracked_outputs_of_kiln_do_not_count() {
        let (_tmp, dir) = project();
        fs::create_dir(dir.join("build")).unwrap();
        fs::write(dir.join("build/x"), "1").unwrap();
        run(&dir, &["add", "build"]);
        assert!(!dirty(&dir, &["cpu/a.cpp"]));
        // Staged only: differs from HEAD all the same.
        fs::write(dir.join("new"), "1").unwrap();
        run(&dir, &["add", "new"]);
        assert!(dirty(&dir, &[]));
    }

    #[test]
    fn an_untracked_project_is_dirty() {
        let (tmp, _) = project();
        let dir = tmp.path().join("sp ace/fresh/deep");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("build.toml"), "").unwrap();
        assert!(dirty(&dir, &["build.toml"]));
    }

    #[test]
    fn no_git_no_commit_no_program() {
        let tmp = tempfile::tempdir().unwrap();
        assert_eq!(inspect(tmp.path(), &tool(), &[]), Scm::None);
        run(tmp.path(), &["init", "-q"]);
        assert_eq!(inspect(tmp.path(), &tool(), &[]), Scm::None);
        let missing = GitTool { program: "/nowhere/git".into(), ..tool() };
        assert_eq!(inspect(tmp.path(), &missing, &[]), Scm::Unusable("`/nowhere/git` is not installed".into()));
        let broken = tempfile::tempdir().unwrap();
        fs::write(broken.path().join(".git"), "no pointer").unwrap();
        assert_eq!(
            inspect(broken.path(), &tool(), &[]),
            Scm::Unusable(format!(
                "`git rev-parse` failed: invalid gitfile format: {}/.git",
                broken.path().canonicalize().unwrap().display()
            ))
        );
    }

    #[test]
    fn a_git_that_never_ends_is_ended() {
        let (tmp, dir) = project();
        let program = tmp.path().join("hang");
        fs::write(&program, "#!/bin/sh\nexec sleep 300\n").unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let hangs = GitTool { program, limit: Duration::from_secs(1), ..tool() };
        let said = Scm::Unusable("`git rev-parse` was ended: it gave no answer in 1 s".into());
        assert_eq!(inspect(&dir, &hangs, &[]), said);
        let stopped = GitTool { limit: LIMIT, ..hangs };
        stopped.interrupt.finish();
        assert_eq!(inspect(&dir, &stopped, &[]), Scm::Unusable("`git rev-parse` was ended: it was interrupted".into()));
        assert!(version(&stopped).unwrap_err().contains("it was interrupted"));
    }

    #[test]
    fn a_long_answer_is_read_whole() {
        let (tmp, dir) = project();
        let program = tmp.path().join("long");
        let id = "a".repeat(40);
        let body = format!(
            "case \"$*\" in *rev-parse*) printf '\\n{id}\\n{id}\\n';; *) head -c 3000000 /dev/zero | tr '\\0' 'x' | sed 's/^/?? /'; printf '\\0 M y\\0';; esac"
        );
        fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let Scm::Git(state) = inspect(&dir, &GitTool { program, ..tool() }, &[]) else { panic!("no state") };
        assert!(state.tracked_changed, "what stands at the end of a long answer counts");
    }

    #[test]
    fn bare_repositories_are_no_work_tree() {
        let tmp = tempfile::tempdir().unwrap();
        run(tmp.path(), &["init", "-q", "--bare"]);
        assert_eq!(inspect(tmp.path(), &tool(), &[]), Scm::None);
    }

    #[test]
    fn linked_work_trees_and_submodules() {
        let (tmp, dir) = project();
        let other = tempfile::tempdir().unwrap();
        let linked = other.path().join("linked");
        run(tmp.path(), &["worktree", "add", "-q", linked.to_str().unwrap()]);
        assert_eq!(state(&linked.join("sp ace/pröj")).tree, state(&dir).tree);
        // A submodule with changes of its own.
        let (sub, _) = project();
        run(&dir, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.path().to_str().unwrap(), "third"]);
        run(&dir, &["commit", "-q", "-m", "two"]);
        assert!(!dirty(&dir, &["third/other"]));
        fs::write(dir.join("third/other"), "changed").unwrap();
        fs::write(dir.join("third/new"), "new").unwrap();
        assert!(!dirty(&dir, &["third/other", "third/new"]));
        // As a project of its own it is dirty.
        assert!(dirty(&dir.join("third"), &[]));
    }

    #[test]
    fn two_processes_and_none_outside_git() {
        let (_tmp, dir) = project();
        let log = tempfile::tempdir().unwrap();
        let program = log.path().join("git");
        let script = format!("#!/bin/sh\necho \"$*\" >>{}/calls\nexec git \"$@\"\n", log.path().display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let counting = GitTool { program, ..tool() };
        let outside = tempfile::tempdir().unwrap();
        assert_eq!(inspect(outside.path(), &counting, &[]), Scm::None);
        assert!(!log.path().join("calls").exists());
        assert_eq!(inspect(&dir, &counting, &[]), inspect(&dir, &tool(), &[]));
        assert_eq!(fs::read_to_string(log.path().join("calls")).unwrap().lines().count(), 2);
    }

    #[test]
    fn answers_are_taken_apart() {
        let (a, b) = ("a".repeat(40), "b".repeat(64));
        assert_eq!(split_ids(format!("li\nne/\n{a}\n{b}\n").as_bytes()), Some((&b"li\nne/"[..], a.clone(), b)));
        assert_eq!(split_ids(format!("\n{a}\nshort\n").as_bytes()), None);
        assert_eq!(split_ids(b""), None);
        let own = [Path::new("build")];
        assert_eq!(read_status(b" M p/build/x\0?? p/builder\0!! p/\xff\0", b"p/", &own).1.len(), 2);
    }
}
