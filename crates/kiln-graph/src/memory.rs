//! How much memory steps may take together, and who waits.
//!
//! A step that is about to run asks for as much as its last run took at its peak (the kernel's count for its largest process), or, when
//! that is not known, as much as its description expects. It gets it at once if the budget has that much left, or if nothing else runs: a
//! step that is larger than the budget runs alone instead of never. Of those that wait, the first that fits goes next; one that was
//! overtaken too often is overtaken no more, so that a large step does not wait for all small ones.
//!
//! A step that was killed for want of memory in spite of this is run once more, with nothing beside it: [`Gate::alone`].
//!
//! Known limits: a process that is larger than its last run was is let grow; what other programs take while a build runs is not seen.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::interrupt::Interrupt;

/// How often a waiting step may be overtaken.
const PATIENCE: u32 = 8;

/// How often one that waits looks at the interrupt.
const POLL: Duration = Duration::from_millis(50);

/// Lets steps run while their expected memory fits into a budget.
#[derive(Debug)]
pub(crate) struct Gate {
    /// In MiB.
    budget: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What the steps that run are expected to take, in MiB.
    used: u64,
    running: usize,
    waiting: VecDeque<Waiting>,
    tickets: u64,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    need: u64,
    overtaken: u32,
}

/// Leave to run. Dropping it gives the memory back.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    gate: &'a Gate,
    need: u64,
}

impl Gate {
    /// A gate for `budget` MiB; none for as much as there is.
    pub(crate) fn new(budget: Option<u64>) -> Self {
        Self { budget: budget.unwrap_or(u64::MAX), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until `need` MiB are left; nothing if the run is interrupted meanwhile.
    pub(crate) fn enter(&self, need: u64, interrupt: &Interrupt) -> Option<Permit<'_>> {
        // What is larger than the budget runs alone.
        let need = need.clamp(1, self.budget.max(1));
        let mut state = self.lock();
        let ticket = state.tickets;
        state.tickets += 1;
        state.waiting.push_back(Waiting { ticket, need, overtaken: 0 });
        loop {
            if interrupt.is_set() {
                state.waiting.retain(|waiting| waiting.ticket != ticket);
                self.changed.notify_all();
                return None;
            }
            if state.next(self.budget) == Some(ticket) {
                state.start(ticket, need);
                // Another one may fit beside this one.
                self.changed.notify_all();
                return Some(Permit { gate: self, need });
            }
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until nothing else runs, and lets nothing else run.
    pub(crate) fn alone(&self, interrupt: &Interrupt) -> Option<Permit<'_>> {
        self.enter(u64::MAX, interrupt)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The ticket of the step that may run next, if one may.
    fn next(&self, budget: u64) -> Option<u64> {
        let left = budget.saturating_sub(self.used);
        for waiting in &self.waiting {
            if self.running == 0 || waiting.need <= left {
                return Some(waiting.ticket);
            }
            if waiting.overtaken >= PATIENCE {
                return None;
            }
        }
        None
    }

    fn start(&mut self, ticket: u64, need: u64) {
        for waiting in self.waiting.iter_mut().take_while(|waiting| waiting.ticket != ticket) {
            waiting.overtaken += 1;
        }
        self.waiting.retain(|waiting| waiting.ticket != ticket);
        self.used = self.used.saturating_add(need);
        self.running += 1;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.used = state.used.saturating_sub(self.need);
        state.running -= 1;
        drop(state);
        self.gate.changed.notify_all();
    }
}

/// Whether a program that failed was killed for want of memory, as far as it can be told: by its own end, or by what compiler drivers say
/// of the end of their parts.
pub(crate) fn was_killed(signal: Option<i32>, code: Option<i32>, log: &[u8]) -> bool {
    const SIGKILL: i32 = 9;
    const SAID: [&str; 4] = [
        // gcc
        "Killed signal terminated program",
        // clang
        "unable to execute command: Killed",
        // nvcc
        "died due to signal 9",
        // The linker's or assembler's end, as collect2 tells it.
        "terminated with signal 9 [Killed]",
    ];
    signal == Some(SIGKILL)
        || code == Some(128 + SIGKILL)
        || (code.is_some() && SAID.iter().any(|said| memchr::memmem::find(log, said.as_bytes()).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_runs_and_what_is_too_large_runs_alone() {
        let (gate, interrupt) = (Gate::new(Some(1000)), Interrupt::new());
        let one = gate.enter(600, &interrupt).unwrap();
        let two = gate.enter(400, &interrupt).unwrap();
        std::thread::scope(|scope| {
            let large = scope.spawn(|| {
                let permit = gate.enter(5000, &interrupt).unwrap();
                let state = gate.lock();
                assert_eq!((state.running, state.used), (1, 1000));
                drop(state);
                drop(permit);
            });
            while gate.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            drop(one);
            assert_eq!(gate.lock().next(gate.budget), None, "the other one still runs");
            drop(two);
            large.join().unwrap();
        });
        assert_eq!(gate.lock().used, 0);
    }

    #[test]
    fn small_ones_overtake_a_large_one_but_not_for_ever() {
        let mut state = State { used: 800, running: 1, ..State::default() };
        state.waiting.push_back(Waiting { ticket: 0, need: 500, overtaken: 0 });
        for ticket in 1..=u64::from(PATIENCE) {
            state.waiting.push_back(Waiting { ticket, need: 100, overtaken: 0 });
            assert_eq!(state.next(1000), Some(ticket));
            state.start(ticket, 100);
            state.used -= 100;
            state.running -= 1;
        }
        state.waiting.push_back(Waiting { ticket: 99, need: 100, overtaken: 0 });
        assert_eq!(state.next(1000), None, "the large one is next");
        state.used = 0;
        assert_eq!(state.next(1000), Some(0));
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let (gate, interrupt) = (Gate::new(Some(10)), Interrupt::new());
        let _one = gate.enter(10, &interrupt).unwrap();
        interrupt.stop();
        assert!(gate.enter(10, &interrupt).is_none());
        assert!(gate.lock().waiting.is_empty());
    }

    #[test]
    fn ends_for_want_of_memory() {
        assert!(was_killed(Some(9), None, b"") && was_killed(None, Some(137), b""));
        assert!(was_killed(None, Some(1), b"g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n"));
        assert!(!was_killed(Some(15), None, b"") && !was_killed(None, Some(1), b"error: Killed\n"));
    }
}
