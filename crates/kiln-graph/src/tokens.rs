//! Job tokens of a GNU make that Kiln runs under: never more steps at once than make has jobs for, whoever else it has started.
//!
//! make hands its tokens, one byte each, through a pipe or a named pipe that it names in `MAKEFLAGS`. A process that it starts holds
//! one token from the beginning, its own, which is in no pipe; each step beside the first one takes a byte out and puts the same one back when
//! it ends. So a build always gets on, be it with one step at a time.
//!
//! What waits for memory holds no token, and what is no work for a processor ([`crate::ResourceClass::Light`]) needs none.
//!
//! The descriptors are opened once more by their names in `/dev/fd`. Where that makes a new open file, as on Linux, reading
//! does not block for us and everybody else keeps reading as they like.
//!
//! Known limits: a build that is ended by SIGKILL takes the tokens that it holds with it; make says so at its end. A compiler that would
//! be a client itself (`-flto=jobserver`) is not told of the server.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::interrupt::Interrupt;

/// How long one waits for a token before it looks at the interrupt, and at whether its own token is free.
const POLL: Duration = Duration::from_millis(20);

/// The jobs of a GNU make that this process takes part in. Clones share what it holds.
#[derive(Clone)]
pub struct JobServer(Arc<Server>);

struct Server {
    read: File,
    write: File,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a step holds the token that needs no byte.
    own_taken: bool,
    /// The bytes that steps hold.
    held: Vec<u8>,
    /// Whether somebody waits at the pipe. The others wait for him.
    is_read: bool,
}

/// Why there is a server that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobServerError {
    /// make keeps the pipe to itself.
    #[error("the job server of make is closed to this command")]
    Closed,
    /// What make names is not there, or no pipe.
    #[error("the job server of make cannot be used: `{}`: {source}", path.display())]
    Unusable {
        /// What was to be opened.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// How make names its server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Auth {
    /// The path of a named pipe.
    Fifo(PathBuf),
    /// Two descriptors, to read from and to write to.
    Descriptors(u32, u32),
    /// Descriptors that are not open in this process.
    None,
}

impl JobServer {
    /// The server that `makeflags`, the value of `MAKEFLAGS`, names; nothing if it names none.
    ///
    /// # Errors
    /// When it names one that cannot be used.
    pub fn of_make(makeflags: &str) -> Result<Option<Self>, JobServerError> {
        let Some(auth) = auth(makeflags) else { return Ok(None) };
        let (read, write) = match auth {
            Auth::None => return Err(JobServerError::Closed),
            Auth::Fifo(path) => (path.clone(), path),
            Auth::Descriptors(read, write) => {
                let [read, write] = [read, write].map(|number| PathBuf::from(format!("/dev/fd/{number}")));
                // make gives them to commands only that it takes for another make.
                if !is_pipe(&read) || !is_pipe(&write) {
                    return Err(JobServerError::Closed);
                }
                (read, write)
            }
        };
        let open = |path: &Path, options: &mut OpenOptions| {
            let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
            let opened = options.custom_flags(nonblocking).open(path).and_then(|file| match file.metadata()?.file_type().is_fifo() {
                true => Ok(file),
                false => Err(io::Error::other("it is no pipe")),
            });
            opened.map_err(|source| JobServerError::Unusable { path: path.to_owned(), source })
        };
        // A named pipe that nobody has open for reading cannot be opened for writing: this one is, by us.
        let read = open(&read, OpenOptions::new().read(true))?;
        let write = open(&write, OpenOptions::new().write(true))?;
        Ok(Some(Self(Arc::new(Server { read, write, state: Mutex::default(), changed: Condvar::new() }))))
    }

    /// Waits for a token; nothing if the run is interrupted meanwhile.
    pub(crate) fn acquire(&self, interrupt: &Interrupt) -> Option<Token<'_>> {
        let mut state = self.0.lock();
        loop {
            if interrupt.is_set() {
                return None;
            }
            if !state.own_taken {
                state.own_taken = true;
                return Some(Token { server: &self.0, byte: None });
            }
            if state.is_read {
                state = self.0.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.is_read = true;
            drop(state);
            let byte = self.0.wait_for_byte();
            state = self.0.lock();
            state.is_read = false;
            state.held.extend(byte);
            self.0.changed.notify_all();
            if byte.is_some() {
                return Some(Token { server: &self.0, byte });
            }
        }
    }

    /// Puts back what steps hold, for a process that ends without waiting for them.
    pub fn give_back(&self) {
        for byte in std::mem::take(&mut self.0.lock().held) {
            self.0.put(byte);
        }
    }
}

impl fmt::Debug for JobServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobServer").field(&*self.0.lock()).finish()
    }
}

impl Server {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A byte from the pipe, if one comes within a moment.
    fn wait_for_byte(&self) -> Option<u8> {
        let pause = Timespec { tv_sec: 0, tv_nsec: POLL.subsec_nanos().into() };
        let mut fds = [PollFd::new(&self.read, PollFlags::IN)];
        match poll(&mut fds, Some(&pause)) {
            Ok(1..) => {}
            Ok(0) | Err(rustix::io::Errno::INTR) => return None,
            // Not to be expected; and no reason to ask again and again.
            Err(_) => std::thread::sleep(POLL),
        }
        let mut byte = [0];
        match (&self.read).read(&mut byte) {
            Ok(1) => Some(byte[0]),
            // Somebody else was quicker.
            _ => None,
        }
    }

    fn put(&self, byte: u8) {
        // The pipe has room for what came out of it; a make that is gone misses nothing.
        let _no_server = (&self.write).write_all(&[byte]);
    }
}

/// Leave to run one step. Dropping it gives the token back.
#[derive(Debug)]
pub(crate) struct Token<'a> {
    server: &'a Server,
    byte: Option<u8>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        let mut state = self.server.lock();
        match self.byte {
            None => state.own_taken = false,
            Some(byte) => {
                // Unless everything was given back at once.
                if let Some(at) = state.held.iter().position(|held| *held == byte) {
                    state.held.swap_remove(at);
                    self.server.put(byte);
                }
            }
        }
        drop(state);
        self.server.changed.notify_all();
    }
}

/// What `MAKEFLAGS` says of the server: its last word of that kind counts.
fn auth(makeflags: &str) -> Option<Auth> {
    let words = words(makeflags);
    let values = words.iter().take_while(|word| *word != "--").filter_map(|word| {
        // The second one is what make was before release 4.2.
        word.strip_prefix("--jobserver-auth=").or_else(|| word.strip_prefix("--jobserver-fds="))
    });
    let value = values.last()?;
    if let Some(path) = value.strip_prefix("fifo:") {
        return Some(Auth::Fifo(path.into()));
    }
    let descriptors = value.split_once(',').and_then(|(read, write)| Some((read.parse().ok()?, write.parse().ok()?)));
    Some(descriptors.map_or(Auth::None, |(read, write)| Auth::Descriptors(read, write)))
}

/// Words as make writes them: a backslash stands before each blank, dollar sign or backslash that is part of one.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut chars) = (Vec::new(), String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makeflags_say() {
        let fifo = |path: &str| Some(Auth::Fifo(path.into()));
        for (text, expected) in [
            ("", None),
            ("k -j --no-print-directory", None),
            (" -j4 --jobserver-auth=3,4 -- A=--jobserver-auth=5,6", Some(Auth::Descriptors(3, 4))),
            ("w -j2 --jobserver-fds=7,8 -j", Some(Auth::Descriptors(7, 8))),
            (" -j4 --jobserver-auth=fifo:/tmp/GMfifo12", fifo("/tmp/GMfifo12")),
            (r" -j4 --jobserver-auth=fifo:/tmp/a\ b\\c", fifo(r"/tmp/a b\c")),
            ("--jobserver-auth=3,4 --jobserver-auth=fifo:/x", fifo("/x")),
            ("--jobserver-auth=-2,-2", Some(Auth::None)),
            ("--jobserver-auth=something-new", Some(Auth::None)),
        ] {
            assert_eq!(auth(text), expected, "{text}");
        }
    }

    /// A named pipe with tokens in it, and a client of it.
    fn server(dir: &Path, tokens: &[u8]) -> (File, JobServer) {
        let path = dir.join("a pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let mut pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        pipe.write_all(tokens).unwrap();
        let flags = format!(" -j9 --jobserver-auth=fifo:{}", path.display().to_string().replace(' ', "\\ "));
        (pipe, JobServer::of_make(&flags).unwrap().unwrap())
    }

    /// What is in the pipe, sorted.
    fn left(server: &JobServer) -> Vec<u8> {
        let mut bytes: Vec<u8> = std::iter::from_fn(|| server.0.wait_for_byte()).collect();
        bytes.sort_unstable();
        bytes.iter().for_each(|byte| server.0.put(*byte));
        bytes
    }

    #[test]
    fn the_first_step_needs_no_byte_and_others_put_back_what_they_took() {
        let dir = tempfile::tempdir().unwrap();
        let (_pipe, server) = server(dir.path(), b"ab");
        let interrupt = Interrupt::new();
        let take = || server.acquire(&interrupt).unwrap();
        let own = take();
        assert_eq!(left(&server), b"ab");
        let (one, two) = (take(), take());
        assert_eq!(left(&server), b"");
        // Whoever waits gets the own token as soon as it is free, and bytes as soon as they are there.
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| [take().byte.is_none(), take().byte.is_some()]);
            drop(own);
            drop(one);
            waits.join().unwrap();
        });
        drop(two);
        assert_eq!(left(&server), b"ab");
        assert!(!server.0.lock().own_taken);
    }

    #[test]
    fn an_interrupt_ends_the_wait_and_everything_can_be_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let (_pipe, server) = server(dir.path(), b"+");
        let interrupt = Interrupt::new();
        let tokens = [server.acquire(&interrupt).unwrap(), server.acquire(&interrupt).unwrap()];
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| server.acquire(&interrupt).is_none());
            interrupt.finish();
            assert!(waits.join().unwrap());
        });
        server.give_back();
        assert_eq!(left(&server), b"+");
        drop(tokens);
        assert_eq!(left(&server), b"+", "nothing is given back twice");
    }

    #[test]
    fn servers_that_cannot_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let of = |auth: &str| JobServer::of_make(&format!("-j2 --jobserver-auth={auth}")).map(drop);
        assert!(matches!(of("-2,-2"), Err(JobServerError::Closed)));
        assert!(matches!(of("987,988"), Err(JobServerError::Closed)));
        let file = dir.path().join("file");
        std::fs::write(&file, "tokens").unwrap();
        for path in [file, dir.path().join("nothing")] {
            assert!(matches!(of(&format!("fifo:{}", path.display())), Err(JobServerError::Unusable { .. })));
        }
    }
}
