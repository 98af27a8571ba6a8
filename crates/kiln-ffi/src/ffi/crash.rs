//! What becomes of a crash.

use std::ffi::c_int;
use std::ptr;

/// An access to memory that is not there, on Linux and macOS.
const SIGSEGV: c_int = 11;

/// What POSIX calls `sigaction`: on Linux and macOS, with each C library, the handler comes first, and what follows is shorter than
/// this. All zeros mean the default.
#[repr(C)]
struct Action {
    handler: usize,
    rest: [u64; 31],
}

impl Action {
    const DEFAULT: Self = Self { handler: 0, rest: [0; 31] };
}

// Of POSIX.
unsafe extern "C" {
    fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
}

/// Who is called after a crash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct CrashHandler(usize);

impl CrashHandler {
    /// The handler of now; none if the system does not tell.
    pub(super) fn current() -> Option<Self> {
        let mut action = Action::DEFAULT;
        // SAFETY: changes nothing, and writes to memory that is larger than what the system writes.
        let code = unsafe { sigaction(SIGSEGV, ptr::null(), &raw mut action) };
        (code == 0).then_some(Self(action.handler))
    }

    /// Lets a crash end the process, if this is still the handler.
    pub(super) fn remove(self) {
        if Self::current() == Some(self) {
            let default = Action::DEFAULT;
            // SAFETY: an action of zeros is the default with no flags, and nothing of it is kept.
            let _refused = unsafe { sigaction(SIGSEGV, &raw const default, ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a process of tests nobody else changes the handler.
    #[test]
    fn only_who_is_there_is_removed() {
        let handler = CrashHandler::current().unwrap();
        assert!(handler != CrashHandler(0), "the standard library has one");
        CrashHandler(handler.0 + 1).remove();
        assert!(CrashHandler::current() == Some(handler));
        handler.remove();
        assert!(CrashHandler::current() == Some(CrashHandler(0)));
    }
}
