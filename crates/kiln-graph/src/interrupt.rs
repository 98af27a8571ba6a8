//! The token by which a signal handler, or anybody else, stops a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Asks a run, or a wait for a work directory, to end. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Value of [`Interrupt::flag`] that asks to start nothing more and to terminate what runs, gently first.
    pub const STOP: usize = 1;

    /// A token that asks for nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop: see [`Interrupt::STOP`].
    pub fn stop(&self) {
        self.0.fetch_max(Self::STOP, Ordering::SeqCst);
    }

    /// Whether anything was asked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= Self::STOP
    }

    /// The shared cell, for a signal handler that stores [`Interrupt::STOP`] in it.
    pub fn flag(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0)
    }
}
