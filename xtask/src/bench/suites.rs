//! Kiln beside CMake and ninja, on the same sources with the same compiler.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::Context as _;

use super::generated::Generated;
use super::memory;
use super::timing::{Measured, Side, measure};
use crate::kiln::Kiln;
use crate::process;
use crate::setup;
use crate::workspace::Workspace;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Suite {
    /// Nothing changed: eight variants, beside a `ninja` for each compiled one
    Noop,
    /// One line of one of 50 units
    Edit,
    /// A header that 5 of 50 units include
    Header,
    /// Five torch releases of 20 units that use no torch, from nothing
    Share,
    /// 20 units from nothing; Kiln with the cache of an earlier build in another directory
    Warm,
    /// 20 units, what was built removed; Kiln's cache beside sccache's, both warm
    Rebuilt,
    /// Compilers of 250 MiB, with memory for nine and for one: Kiln beside itself
    Memory,
}

impl Suite {
    /// Every suite, in the order of the report.
    pub(super) const ALL: [Self; 7] = [Self::Noop, Self::Edit, Self::Header, Self::Share, Self::Warm, Self::Rebuilt, Self::Memory];

    /// What it shows, in a few words.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Noop => "nothing changed, 8 variants of 21 units",
            Self::Edit => "one line of one of 50 units",
            Self::Header => "a header of 5 of 50 units",
            Self::Share => "from nothing, 5 torch releases, 20 units without torch",
            Self::Warm => "a fresh clone, 20 units; Kiln's cache is warm",
            Self::Rebuilt => "what was built removed, 20 units; both caches are warm, the other is sccache's",
            Self::Memory => "compilers of 250 MiB: memory for nine, beside memory for one",
        }
    }

    /// Runs it, `runs` pairs.
    pub(super) fn run(self, bench: &Bench, runs: u32) -> anyhow::Result<Measured> {
        match self {
            Self::Noop => bench.noop(runs),
            Self::Edit => bench.edited(runs, |project, value| project.edit(7, value)),
            Self::Header => bench.edited(runs, Generated::edit_header),
            Self::Share => bench.share(runs),
            Self::Warm => bench.warm(runs),
            Self::Rebuilt => bench.rebuilt(runs),
            Self::Memory => memory::run(bench, runs),
        }
    }
}

/// The programs, and where they work.
pub(super) struct Bench {
    kiln: Kiln,
    tools: PathBuf,
    sccache: PathBuf,
    scratch: tempfile::TempDir,
}

impl Bench {
    /// Builds Kiln as it is installed, and sets up the others.
    pub(super) fn new(workspace: &Workspace) -> anyhow::Result<Self> {
        Ok(Self {
            kiln: Kiln::build_optimized(workspace)?,
            tools: setup::cmake(workspace)?,
            sccache: setup::sccache(workspace)?,
            scratch: tempfile::tempdir()?,
        })
    }

    /// A project below the scratch directory, new.
    pub(super) fn project(&self, name: &str, units: usize, noarch: bool) -> anyhow::Result<Generated> {
        let dir = self.scratch.path().join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        Generated::write(&dir, units, noarch)
    }

    /// A build of a project.
    pub(super) fn build(&self, project: &Path, args: &[&str]) -> Command {
        let mut command = self.kiln.command();
        command.arg("build").arg(project).args(args);
        command
    }

    /// A program that the programs of the other way find, too.
    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.tools.join(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.tools.clone()).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(dirs) {
            command.env("PATH", path);
        }
        command
    }

    fn configure(&self, project: &Path, dir: &str) -> Command {
        let mut command = self.tool("cmake");
        command.args(["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-S"]).arg(project).arg("-B").arg(project.join(dir));
        command
    }

    fn ninja(&self, project: &Path, dir: &str) -> Command {
        let mut command = self.tool("ninja");
        command.arg("-C").arg(project.join(dir));
        command
    }

    /// A side that is one command.
    fn side(name: &str, command: impl Fn() -> Command + 'static) -> Side {
        Side { name: name.to_owned(), prepare: None, command: Box::new(command) }
    }

    /// A side that is one command, without the directories `made` that the last one has left below `project`.
    fn anew(name: &str, project: &Path, made: &[&str], command: Command) -> Side {
        let made = made.iter().map(|dir| (*dir).to_owned()).collect();
        Side { prepare: Some(wipe(project, made)), ..Self::side(name, again(command)) }
    }

    /// Commands, one after the other, as one.
    fn sequence(commands: &[Command]) -> Command {
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"));
        let line =
            |command: &Command| std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect::<Vec<_>>().join(" ");
        let mut shell = Command::new("sh");
        shell.args(["-c", &commands.iter().map(line).collect::<Vec<_>>().join(" && ")]);
        for (name, value) in commands.iter().flat_map(Command::get_envs) {
            value.map(|value| shell.env(name, value));
        }
        shell
    }

    fn noop(&self, runs: u32) -> anyhow::Result<Measured> {
        let project = self.project("noop", 20, true)?;
        process::output(&mut self.build(&project.dir, &["--all"]))?;
        let built =
            fs::read_dir(project.dir.join("build"))?.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count();
        anyhow::ensure!(built == 8, "{built} variants were built");
        let dirs: Vec<String> = (0..5).map(|number| format!("ninja{number}")).collect();
        for dir in &dirs {
            process::output(&mut self.configure(&project.dir, dir))?;
            process::output(&mut self.ninja(&project.dir, dir))?;
        }
        let ours = self.build(&project.dir, &["--all"]);
        let others = Self::sequence(&dirs.iter().map(|dir| self.ninja(&project.dir, dir)).collect::<Vec<_>>());
        measure(&Self::side("kiln build --all", again(ours)), &Self::side("5 times ninja", again(others)), runs)
    }

    /// One variant, which both have built, after an edit that both see.
    fn edited(&self, runs: u32, edit: impl Fn(&Generated, u32) -> anyhow::Result<()> + Clone + 'static) -> anyhow::Result<Measured> {
        let project = self.project("edit", 50, false)?;
        let args = ["--torch", "2.13", "--no-cache"];
        process::output(&mut self.build(&project.dir, &args))?;
        process::output(&mut self.configure(&project.dir, "ninja"))?;
        process::output(&mut self.ninja(&project.dir, "ninja"))?;
        // Each edit is new to both.
        let value = Rc::new(Cell::new(0));
        let side = |name: &str, command: Command| {
            let (project, value, edit) = (project.clone(), Rc::clone(&value), edit.clone());
            let prepare: Box<dyn Fn() -> anyhow::Result<()>> = Box::new(move || {
                value.set(value.get() + 1);
                edit(&project, value.get())
            });
            Side { prepare: Some(prepare), ..Self::side(name, again(command)) }
        };
        let (ours, others) = (self.build(&project.dir, &args), self.ninja(&project.dir, "ninja"));
        measure(&side("kiln build", ours), &side("ninja", others), runs)
    }

    fn share(&self, runs: u32) -> anyhow::Result<Measured> {
        let project = self.project("share", 20, false)?;
        let args = ["--all", "--no-cache"];
        // What is fetched, and the floor, are there before anything is timed.
        process::output(&mut self.build(&project.dir, &args))?;
        let dirs: Vec<String> = (0..5).map(|number| format!("ninja{number}")).collect();
        let commands: Vec<Command> =
            dirs.iter().flat_map(|dir| [self.configure(&project.dir, dir), self.ninja(&project.dir, dir)]).collect();
        let ours = Self::anew("kiln build --all", &project.dir, &[".kiln", "build"], self.build(&project.dir, &args));
        let dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
        let others = Self::anew("5 times cmake, ninja", &project.dir, &dirs, Self::sequence(&commands));
        measure(&ours, &others, runs)
    }

    fn warm(&self, runs: u32) -> anyhow::Result<Measured> {
        let first = self.project("warm", 20, false)?;
        let args = ["--torch", "2.13"];
        process::output(&mut self.build(&first.dir, &args))?;
        let clone = self.project("the clone", first.units() - 1, false)?;
        let commands = [self.configure(&clone.dir, "ninja"), self.ninja(&clone.dir, "ninja")];
        let ours = Self::anew("kiln build", &clone.dir, &[".kiln", "build"], self.build(&clone.dir, &args));
        let others = Self::anew("cmake, ninja", &clone.dir, &["ninja"], Self::sequence(&commands));
        measure(&ours, &others, runs)
    }

    fn rebuilt(&self, runs: u32) -> anyhow::Result<Measured> {
        let project = self.project("rebuilt", 20, false)?;
        let dir = self.scratch.path().join("sccache");
        fs::create_dir_all(&dir)?;
        let server = SccacheServer { program: self.sccache.clone(), dir };
        let mut configure = self.configure(&project.dir, "ninja");
        configure.arg(format!("-DCMAKE_CXX_COMPILER_LAUNCHER={}", self.sccache.display()));
        let mut commands = [configure, self.ninja(&project.dir, "ninja")];
        commands.iter_mut().for_each(|command| server.lead(command));
        let args = ["--torch", "2.13"];
        // Both caches know all units before anything is timed.
        process::output(&mut self.build(&project.dir, &args))?;
        process::output(&mut Self::sequence(&commands))?;
        let ours = Self::anew("kiln build", &project.dir, &[".kiln", "build"], self.build(&project.dir, &args));
        let others = Self::anew("cmake, ninja, sccache", &project.dir, &["ninja"], Self::sequence(&commands));
        measure(&ours, &others, runs)
    }
}

/// The server of sccache that works in a directory of its own, stopped in the end.
struct SccacheServer {
    program: PathBuf,
    dir: PathBuf,
}

impl SccacheServer {
    /// Leads a command's programs to this server.
    fn lead(&self, command: &mut Command) {
        command.env("SCCACHE_DIR", self.dir.join("objects")).env("SCCACHE_SERVER_UDS", self.dir.join("server"));
    }
}

impl Drop for SccacheServer {
    fn drop(&mut self) {
        let mut stop = Command::new(&self.program);
        self.lead(stop.arg("--stop-server"));
        // One that never started has nothing to stop.
        drop(stop.output());
    }
}

/// The same command as often as wanted.
pub(super) fn again(command: Command) -> impl Fn() -> Command {
    move || {
        let mut copy = Command::new(command.get_program());
        copy.args(command.get_args());
        for (name, value) in command.get_envs() {
            value.map(|value| copy.env(name, value));
        }
        copy
    }
}

/// Removes directories below `project`.
fn wipe(project: &Path, names: Vec<String>) -> Box<dyn Fn() -> anyhow::Result<()>> {
    let project = project.to_owned();
    Box::new(move || {
        for dir in names.iter().map(|name| project.join(name)).filter(|dir| dir.exists()) {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot remove `{}`", dir.display()))?;
        }
        Ok(())
    })
}
