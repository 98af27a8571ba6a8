//! The programs of a step: how they are started, and how they are shown.

use std::ffi::OsString;
use std::iter;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::event::Failure;
use crate::graph::Node;
use crate::room::Room;
use crate::run::{Run, io};
use crate::step::{Action, Arg, Input, Piece, Program};

/// What a program took beside time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// As in [`crate::record::Cost::peak_kib`].
    pub(crate) peak_kib: u64,
    /// Processor time of it and of all programs that it ran.
    pub(crate) cpu: Duration,
    /// Whether it was suspended meanwhile.
    pub(crate) suspended: bool,
}

impl Run<'_> {
    /// Runs the programs of a step, one after the other.
    pub(crate) fn run_program(&self, program: &Program, room: &Room, used: &mut Used) -> Result<(), Failure> {
        if self.interrupt.is_set() {
            return Err(Failure::Interrupted);
        }
        let out = room.out_dir();
        let started = |launcher: Option<&Path>, path: &Path, args: &mut dyn Iterator<Item = &Arg>| {
            let mut command = Command::new(launcher.unwrap_or(path));
            command.args(launcher.map(|_| path));
            command.args(args.map(|arg| self.arg(arg, &out)));
            command.env_clear().env("TMPDIR", room.tmp_dir());
            command.envs(program.ambient.iter());
            command.envs(program.env.iter().map(|(name, value)| (name, self.arg(value, &out))));
            command
        };
        let first = started(program.launcher.as_deref(), &program.path, &mut program.args.iter());
        self.run_one(first, &self.places.resolve(&program.cwd), room, used)?;
        for call in &program.then {
            let mut command = started(None, &call.path, &mut call.args.iter());
            command.envs(call.env.iter().map(|(name, value)| (name, self.arg(value, &out))));
            self.run_one(command, &out, room, used)?;
        }
        Ok(())
    }

    fn run_one(&self, mut command: Command, cwd: &Path, room: &Room, used: &mut Used) -> Result<(), Failure> {
        let log = io("write to the log in", &self.work_dir.tmp_dir());
        command.current_dir(cwd).process_group(0);
        command.stdin(Stdio::null()).stdout(room.log().map_err(&log)?).stderr(room.log().map_err(&log)?);
        // A step that is let end is let end whole.
        if self.interrupt.is_stop() {
            return Err(Failure::Interrupted);
        }
        let ended = self.interrupt.groups().run(&mut command).map_err(|error| {
            let program = Path::new(command.get_program()).display();
            let message = if cwd.is_dir() {
                format!("cannot run `{program}`: {error}")
            } else {
                format!("cannot run `{program}` in `{}`, which is not a directory", cwd.display())
            };
            Failure::Spawn { message }
        })?;
        *used =
            Used { peak_kib: used.peak_kib.max(ended.peak_kib), cpu: used.cpu + ended.cpu, suspended: used.suspended || ended.suspended };
        match (ended.status.code(), ended.status.signal()) {
            (Some(0), _) => Ok(()),
            _ if ended.interrupted => Err(Failure::Interrupted),
            (Some(code), _) => Err(Failure::Exit { code }),
            (None, signal) => Err(Failure::Signal { signal: signal.unwrap_or_default() }),
        }
    }

    /// The command for the user. Own files are named where they will be kept, and what follows on the first program stands behind `&&`.
    pub(crate) fn command_text(&self, node: &Node) -> Option<Vec<String>> {
        let Action::Run(program) = &node.step.action else { return None };
        let own = self.work_dir.step_dir(&node.id);
        let words = |path: &Path, args: &mut dyn Iterator<Item = &Arg>| {
            let args = args.map(|arg| self.arg(arg, &own).to_string_lossy().into_owned());
            iter::once(path.display().to_string()).chain(args).collect::<Vec<_>>()
        };
        let mut command: Vec<String> = program.launcher.iter().map(|path| path.display().to_string()).collect();
        command.extend(words(&program.path, &mut program.args.iter()));
        if !program.then.is_empty() {
            command.extend(["&&".to_owned(), "cd".to_owned(), own.display().to_string()]);
        }
        for call in &program.then {
            command.push("&&".to_owned());
            command.extend(words(&call.path, &mut call.args.iter()));
        }
        Some(command)
    }

    fn arg(&self, arg: &Arg, own: &Path) -> OsString {
        let mut text = OsString::new();
        for piece in &arg.0 {
            match piece {
                Piece::Text(piece) => text.push(piece),
                Piece::Path(path) => text.push(self.places.resolve(path)),
                Piece::Own(name) | Piece::Scratch(name) => text.push(own.join(name)),
                Piece::Output(output) => text.push(self.work_dir.output_path(output)),
                Piece::OutputDir(id) => text.push(self.work_dir.step_dir(id)),
                Piece::WorkDir => text.push(self.work_dir.path()),
                Piece::Scope(_) => {}
            }
        }
        text
    }

    pub(crate) fn input_path(&self, input: &Input) -> PathBuf {
        match input {
            Input::File(path) => self.places.resolve(path),
            Input::Output(output) => self.work_dir.output_path(output),
        }
    }
}
