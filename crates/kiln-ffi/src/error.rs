//! Why a library cannot be used, or what it says went wrong.

use thiserror::Error;

/// An error that a function raised, as the runtime keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Raised {
    /// Its kind, such as `TypeError`.
    pub kind: String,
    /// Its message, as the kernel wrote it.
    pub message: String,
    /// Where it was raised, in the runtime's form; empty if nothing is known.
    pub backtrace: String,
}

/// Why something of a loaded library did not work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FfiError {
    /// A library cannot be loaded.
    #[error("cannot load `{library}`: {reason}")]
    Load {
        /// Its path or name.
        library: String,
        /// What the loader says.
        reason: String,
    },
    /// A library lacks a function that its interface has.
    #[error("`{library}` has no function `{name}`")]
    Symbol {
        /// Its path or name.
        library: String,
        /// The function.
        name: String,
    },
    /// A function raised an error.
    #[error("{}: {}", .0.kind, .0.message)]
    Raised(Raised),
    /// A driver's function failed.
    #[error("`{call}` failed: {reason}")]
    Driver {
        /// The function.
        call: &'static str,
        /// The driver's name of the error, or its number.
        reason: String,
    },
    /// A text cannot be handed to C.
    #[error("`{text}` has a zero byte")]
    ZeroByte {
        /// The text.
        text: String,
    },
    /// Memory cannot be had.
    #[error("there is no memory for a tensor of {bytes} bytes")]
    Memory {
        /// How much.
        bytes: usize,
    },
    /// No thread can be started or waited for.
    #[error("the thread for calls fails with error {code}")]
    Thread {
        /// What the system says.
        code: i32,
    },
    /// A tensor that this process can neither read nor write.
    #[error("memory of device type {device_type} cannot be copied")]
    Place {
        /// DLPack's number.
        device_type: i32,
    },
}
