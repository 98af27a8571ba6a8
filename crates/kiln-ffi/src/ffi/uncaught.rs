//! Running what may throw where nobody catches.
//!
//! An exception of C++ that no C++ code catches goes on through frames of Rust until it meets the one below `main`, or below a thread of
//! the standard library, which ends the process for it: what the exception says is lost. On a thread that the system starts there is no
//! such frame. The C++ library finds that nobody catches before it leaves any frame, and ends the process with the exception's own words.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::FfiError;

// Of POSIX, in the form that Linux and macOS have on 64 bits: a thread is a number or a pointer.
unsafe extern "C" {
    fn pthread_create(
        thread: *mut usize,
        attributes: *const c_void,
        start: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn pthread_join(thread: usize, result: *mut *mut c_void) -> c_int;
}

/// Work, and what came of it.
struct Job<F, T> {
    work: Option<F>,
    result: Option<T>,
}

/// Does `work` on a thread on which nobody catches, and waits for it. What it calls may throw; that, like a panic, ends the process.
///
/// Where the thread cannot be waited for, since `work` has taken that away, the process ends.
///
/// # Errors
/// When no thread can be started, or `work` has ended it.
pub fn uncaught<T: Send, F: FnOnce() -> T + Send>(work: F) -> Result<T, FfiError> {
    extern "C-unwind" fn start<T, F: FnOnce() -> T>(job: *mut c_void) -> *mut c_void {
        // SAFETY: `uncaught` hands over its job, of these types, and does not touch it before this thread has ended.
        let job = unsafe { &mut *job.cast::<Job<F, T>>() };
        job.result = job.work.take().map(|work| work());
        ptr::null_mut()
    }
    let mut job = Job { work: Some(work), result: None };
    let mut thread = 0;
    // SAFETY: the job outlives the thread: below it is joined, or the process ends. What goes to it and comes back may cross threads.
    let code = unsafe { pthread_create(&raw mut thread, ptr::null(), start::<T, F>, (&raw mut job).cast()) };
    if code != 0 {
        return Err(FfiError::Thread { code });
    }
    // SAFETY: the thread was just started, and is joined once.
    let code = unsafe { pthread_join(thread, ptr::null_mut()) };
    if code != 0 {
        // The thread may still work on the job: one that was detached cannot be joined.
        std::process::abort();
    }
    job.result.ok_or(FfiError::Thread { code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_comes_back_from_another_thread() {
        let here = std::thread::current().id();
        let mut seen = Vec::new();
        let there = uncaught(|| {
            seen.push(7);
            std::thread::current().id()
        });
        assert!(there.unwrap() != here && seen == [7]);
    }
}
