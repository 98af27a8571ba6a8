//! The token by which a signal handler, or anybody else, ends or suspends a run.
//!
//! | asked | what starts | programs that run |
//! |---|---|---|
//! | [`Interrupt::finish`] | nothing more | are let end, and what they make is kept |
//! | [`Interrupt::stop`] | nothing more | their process groups get SIGTERM, and SIGKILL when the grace is over |
//! | [`Interrupt::kill`] | nothing more | their process groups have got SIGKILL when the call returns |
//! | [`Interrupt::suspend`] | whatever starts is stopped at once | their process groups are stopped until [`Interrupt::resume`] |
//!
//! Programs run in process groups of their own, so that a terminal's signals reach Kiln alone, and Kiln says what becomes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::Groups;

/// Asks a run, or a wait for a work directory, to end. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// [`FINISH`], [`STOP`], or neither.
    asked: AtomicUsize,
    groups: Groups,
}

const FINISH: usize = 1;
const STOP: usize = 2;

impl Interrupt {
    /// A token that asks for nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to start nothing more and to let what runs end.
    pub fn finish(&self) {
        self.0.asked.fetch_max(FINISH, Ordering::SeqCst);
    }

    /// Asks to start nothing more and to end what runs, gently first.
    pub fn stop(&self) {
        self.0.asked.fetch_max(STOP, Ordering::SeqCst);
    }

    /// The same at once, by SIGKILL, for a process that is about to end. What holds a lock or a token still has to give it back.
    pub fn kill(&self) {
        self.stop();
        self.0.groups.kill();
    }

    /// Stops all programs that run, until [`Interrupt::resume`].
    pub fn suspend(&self) {
        self.0.groups.suspend();
    }

    /// Lets go on what [`Interrupt::suspend`] stopped.
    pub fn resume(&self) {
        self.0.groups.resume();
    }

    /// Whether anything was asked that ends the run.
    pub fn is_set(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst) >= FINISH
    }

    /// Whether what runs is to end, too.
    pub(crate) fn is_stop(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst) >= STOP
    }

    /// The programs that run under this token.
    pub(crate) fn groups(&self) -> &Groups {
        &self.0.groups
    }
}
