//! Locks between processes.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use kiln_graph::Interrupt;

use super::create_dirs;
use crate::error::Error;

/// How often a lock that another process holds is tried.
const RETRY: Duration = Duration::from_millis(50);

/// A lock that is held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks `path`, which is created if need be and never removed. `waiting` is told, once, who holds it.
    /// The wait ends with an error when `interrupt` is set.
    pub(crate) fn acquire(path: &Path, interrupt: &Interrupt, waiting: impl FnOnce(Option<u32>)) -> Result<Self, Error> {
        if let Some(dir) = path.parent() {
            create_dirs(dir)?;
        }
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(Error::store("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The holder's word on itself is for people only.
                let _ = file.read_to_string(&mut text);
                waiting(text.trim().parse().ok());
                while let Err(failure) = file.try_lock() {
                    match failure {
                        TryLockError::WouldBlock if interrupt.is_set() => return Err(Error::Interrupted),
                        TryLockError::WouldBlock => std::thread::sleep(RETRY),
                        TryLockError::Error(cause) => return Err(Error::store("lock", path)(cause)),
                    }
                }
            }
            Err(TryLockError::Error(cause)) => return Err(Error::store("lock", path)(cause)),
        }
        // A full disk must not keep anyone from what is already there.
        let _ = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}
