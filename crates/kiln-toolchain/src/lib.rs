//! Where compilers, headers and link stubs come from.

mod catalog;
mod default_index;
pub mod discover;
mod error;
mod event;
mod file_state;
pub mod floor;
#[doc(hidden)]
pub mod fuzzing;
pub mod headers;
pub mod host;
mod http;
mod index;
mod launcher;
pub mod make_catalog;
mod names;
mod network;
mod part;
pub mod process;
mod processor;
mod provision;
mod store;
pub mod stubs;
pub mod system;
mod toolchain;
mod version_py;
mod wheel;
mod whole_file;
pub mod zip;

pub use catalog::{Catalog, CudaMembers, CudaToolkit, CudaUse, TorchRelease, TvmFfiRelease};
pub use default_index::{
    BuiltInIndex, DefaultIndex, IndexOrigin, IndexSettings, PipFile, TorchIndexSettings, ask_pip, certificate_files, default_index,
    pip_files, proxies, torch_index,
};
pub use error::Error;
pub use event::{FetchEvent, FetchSink};
pub use http::{
    AgentOptions, Headers, HttpError, HttpFault, IndexUrl, Netrc, Pieces, Proxies, Request, Response, RetryPolicy, Slowest, Transport,
    Trust, UreqTransport,
};
pub use launcher::{Launcher, LauncherError};
pub use names::{
    CodedSet, LibraryExports, NameSet, NamesError, PythonVersion, added_to_stable_abi, decode as decode_names, is_of_python, is_of_runtime,
};
pub use network::{FoundWheel, Network, WantedWheel};
pub use part::{Members, Part, Terms, WheelPin};
pub use processor::Processor;
pub use provision::{
    Availability, Collected, DamagedEntry, OfferedTorch, PinnedTorch, ProvisionOptions, Provisioner, StoreEntry, StoredTree,
};
pub use store::{Removal, StoreTree};
pub use toolchain::{CxxLevel, Provider, TorchToolchain, TvmFfiToolchain};
pub use whole_file::write_whole;
