//! The temporary directory that a step runs in, and how its outputs come out of it whole.
//!
//! ```text
//! tmp/<unique>/o/    the outputs and the depfile
//! tmp/<unique>/t/    TMPDIR of the program
//! tmp/<unique>/log   what the program writes to stdout and stderr, in the order of arrival
//! ```
//!
//! Dropping the room removes it, whatever it holds.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::content::Stamp;
use crate::step::StepId;
use crate::workdir::LockedWorkDir;

/// How long [`Room::wait_for_tick`] waits at most. On a file system whose clock is slower, files that are as young as a run
/// count as changed while it ran.
const LONGEST_TICK: Duration = Duration::from_millis(40);

/// A temporary directory of one step.
#[derive(Debug)]
pub(crate) struct Room {
    dir: TempDir,
    log: File,
}

impl Room {
    /// A room for a step that makes `files`.
    pub(crate) fn new<'a>(work_dir: &LockedWorkDir, step: &StepId, files: impl IntoIterator<Item = &'a str>) -> io::Result<Self> {
        let short: String = step.as_str().chars().take(8).collect();
        let dir = tempfile::Builder::new().prefix(&format!("{short}-")).rand_bytes(10).tempdir_in(work_dir.tmp_dir())?;
        fs::create_dir(dir.path().join("o"))?;
        fs::create_dir(dir.path().join("t"))?;
        let log = File::options().create_new(true).append(true).open(dir.path().join("log"))?;
        let room = Self { dir, log };
        for file in files {
            if let Some(parent) = room.out_dir().join(file).parent() {
                fs::create_dir_all(parent)?;
            }
        }
        Ok(room)
    }

    /// Where the outputs are made.
    pub(crate) fn out_dir(&self) -> PathBuf {
        self.dir.path().join("o")
    }

    /// Where the program's temporary files go.
    pub(crate) fn tmp_dir(&self) -> PathBuf {
        self.dir.path().join("t")
    }

    /// A handle to write to the log, for a program.
    pub(crate) fn log(&self) -> io::Result<File> {
        self.log.try_clone()
    }

    /// What was written to the log.
    pub(crate) fn read_log(&self) -> io::Result<Vec<u8>> {
        fs::read(self.dir.path().join("log"))
    }

    /// The file system's present time, as ns since 1970: the ctime that a file changed now would have.
    pub(crate) fn time(&self) -> io::Result<i64> {
        let path = self.dir.path().join("clock");
        File::create(&path)?.write_all(b".")?;
        Ok(Stamp::of(&fs::metadata(&path)?).ctime)
    }

    /// Waits until the file system's clock moves, so that whatever was written before is older than what is written after.
    pub(crate) fn wait_for_tick(&self) -> io::Result<()> {
        let start = Instant::now();
        let first = self.time()?;
        while self.time()? == first && start.elapsed() < LONGEST_TICK {
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    /// Removes everything from the output directory but the files called `names`.
    pub(crate) fn keep_only(&self, names: &[String]) -> io::Result<()> {
        tidy(&self.out_dir(), "", names)
    }

    /// Puts the output directory in the place of `step`'s last one.
    pub(crate) fn publish(&self, work_dir: &LockedWorkDir, step: &StepId) -> io::Result<()> {
        let (new, place) = (self.out_dir(), work_dir.step_dir(step));
        if fs::symlink_metadata(&place).is_err() {
            return fs::rename(new, place);
        }
        match exchange(&new, &place) {
            Ok(()) => Ok(()),
            Err(_) => self.move_aside(&new, &place),
        }
    }

    /// What does for an exchange where there is none. Whoever dies between the two renames leaves a step that runs again.
    fn move_aside(&self, new: &Path, place: &Path) -> io::Result<()> {
        fs::rename(place, self.dir.path().join("old"))?;
        fs::rename(new, place)
    }
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn tidy(dir: &Path, prefix: &str, names: &[String]) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().map(|name| format!("{prefix}{name}"));
        if name.as_ref().is_some_and(|name| names.contains(name)) {
            continue;
        }
        let below = name.map(|name| name + "/").filter(|below| names.iter().any(|name| name.starts_with(below)));
        match below {
            Some(below) if entry.file_type()?.is_dir() => tidy(&entry.path(), &below, names)?,
            _ if entry.file_type()?.is_dir() => fs::remove_dir_all(entry.path())?,
            _ => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::workdir::WorkDir;

    fn work_dir(dir: &Path) -> LockedWorkDir {
        WorkDir::open(dir).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap()
    }

    #[test]
    fn only_declared_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = work_dir(dir.path());
        let step = StepId("s".into());
        let room = Room::new(&work_dir, &step, ["a/b/c", "d"]).unwrap();
        let out = room.out_dir();
        for file in ["a/b/c", "a/b/x", "a/y", "d", "z"] {
            fs::write(out.join(file), file).unwrap();
        }
        fs::create_dir_all(out.join("more/and/more")).unwrap();
        std::os::unix::fs::symlink("d", out.join("link")).unwrap();
        room.keep_only(&["a/b/c".to_owned(), "d".to_owned()]).unwrap();
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
        assert_eq!(fs::read_dir(out.join("a")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(out.join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn what_was_there_is_replaced_whole_and_the_room_goes() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = work_dir(dir.path());
        let step = StepId("s".into());
        for (file, gone) in [("one", "none"), ("two", "one")] {
            let room = Room::new(&work_dir, &step, [file]).unwrap();
            fs::write(room.out_dir().join(file), file).unwrap();
            room.publish(&work_dir, &step).unwrap();
            assert!(work_dir.step_dir(&step).join(file).exists());
            assert!(!work_dir.step_dir(&step).join(gone).exists());
        }
        assert_eq!(fs::read_dir(work_dir.tmp_dir()).unwrap().count(), 0);
        // A file in the way is moved aside, too.
        fs::remove_dir_all(work_dir.step_dir(&step)).unwrap();
        fs::write(work_dir.step_dir(&step), "").unwrap();
        let room = Room::new(&work_dir, &step, ["three"]).unwrap();
        room.publish(&work_dir, &step).unwrap();
        assert!(work_dir.step_dir(&step).is_dir());
    }

    #[test]
    fn without_an_exchange_the_old_outputs_move_aside() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = work_dir(dir.path());
        let step = StepId("s".into());
        let place = work_dir.step_dir(&step);
        fs::create_dir(&place).unwrap();
        fs::write(place.join("old"), "").unwrap();
        let room = Room::new(&work_dir, &step, ["new"]).unwrap();
        fs::write(room.out_dir().join("new"), "").unwrap();
        room.move_aside(&room.out_dir(), &place).unwrap();
        assert!(place.join("new").exists() && !place.join("old").exists());
        drop(room);
        assert_eq!(fs::read_dir(work_dir.tmp_dir()).unwrap().count(), 0);
        assert!(exchange(&place, &dir.path().join("nothing")).is_err());
    }

    #[test]
    fn time_moves_on() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = work_dir(dir.path());
        let room = Room::new(&work_dir, &StepId("s".into()), []).unwrap();
        let before = room.time().unwrap();
        room.wait_for_tick().unwrap();
        assert!(room.time().unwrap() > before);
    }
}
