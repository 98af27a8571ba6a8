//! Where compilers, headers and link stubs come from.

mod catalog;
mod error;
mod event;
mod http;
mod names;
mod provision;
mod toolchain;
mod zip;

pub use catalog::{Catalog, TorchRelease};
pub use error::Error;
pub use event::{FetchEvent, FetchSink};
pub use http::{AgentOptions, Headers, HttpError, HttpFault, IndexUrl, Request, Response, RetryPolicy, Traffic, Transport, Trust, UreqTransport};
pub use names::{LibraryExports, NameSet};
pub use provision::{IndexSource, ProvisionOptions, Provisioner, StoreEntry};
pub use toolchain::{CxxLevel, Provider, TorchToolchain};
