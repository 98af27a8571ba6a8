//! What happens while something is fetched. Nothing else reports progress.

use std::time::Duration;

/// One fact about a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchEvent {
    /// A fetch begins.
    Started {
        /// What is fetched, such as `torch 2.13.0 (linux-x86_64)`.
        what: String,
    },
    /// More bytes came over the wire.
    Bytes {
        /// What is fetched.
        what: String,
        /// Bytes received since [`FetchEvent::Started`].
        received: u64,
        /// Bytes still known to come; grows as more is known about the wheel.
        expected: u64,
    },
    /// The server does not answer range requests: the whole file is taken instead.
    WholeFile {
        /// Name of the wheel.
        file: String,
        /// Its size in bytes.
        size: u64,
    },
    /// A request failed in a way that may pass, and is made again.
    Retry {
        /// The address, without credentials and query.
        url: String,
        /// The try that failed, from 1.
        attempt: u32,
        /// How many tries there are.
        attempts: u32,
        /// How long is waited before the next one.
        after: Duration,
        /// What went wrong.
        reason: String,
    },
    /// Another process is fetching the same thing.
    WaitingForLock {
        /// What is fetched.
        what: String,
        /// The process that holds the lock, where it has said so.
        pid: Option<u32>,
    },
    /// A fetch ended well.
    Finished {
        /// What was fetched.
        what: String,
        /// Bytes of all response bodies.
        bytes: u64,
        /// Number of requests.
        requests: u32,
    },
}

/// Takes events from any thread.
pub type FetchSink<'a> = dyn Fn(FetchEvent) + Sync + 'a;
