//! Where compilers, headers and link stubs come from.
//!
//! The feature `wheels` is what fetches: the catalog, the store, and all code for the network. Without it there is what the machine
//! has: host compilers, vendors' toolkits, and the stubs and files that links use.

#[cfg(feature = "wheels")]
mod catalog;
#[cfg(feature = "wheels")]
mod default_index;
pub mod discover;
#[cfg(feature = "wheels")]
mod error;
#[cfg(feature = "wheels")]
mod event;
mod file_state;
pub mod floor;
#[cfg(feature = "wheels")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "wheels")]
pub mod headers;
pub mod host;
#[cfg(feature = "wheels")]
mod http;
#[cfg(feature = "wheels")]
mod index;
mod launcher;
#[cfg(feature = "wheels")]
pub mod make_catalog;
mod names;
#[cfg(feature = "wheels")]
mod network;
#[cfg(feature = "wheels")]
mod part;
pub mod process;
mod processor;
#[cfg(feature = "wheels")]
mod provision;
mod stand_in;
#[cfg(feature = "wheels")]
mod store;
pub mod stubs;
pub mod system;
mod terms;
mod toolchain;
mod version_py;
#[cfg(feature = "wheels")]
mod wheel;
mod whole_file;
#[cfg(feature = "wheels")]
pub mod zip;

#[cfg(feature = "wheels")]
pub use catalog::{
    Catalog, CudaMembers, CudaToolkit, CudaUse, HeaderLibrary, TorchBuild, TorchRelease, TvmFfiRelease, cutlass_version, metal_cpp_version,
    torch_build_serves, torch_compute_of, torch_local_for,
};
#[cfg(feature = "wheels")]
pub use default_index::{
    BuiltInIndex, DefaultIndex, IndexOrigin, IndexSettings, PipFile, TorchIndexSettings, ask_pip, certificate_files, default_index,
    pip_files, proxies, torch_index,
};
#[cfg(feature = "wheels")]
pub use error::Error;
#[cfg(feature = "wheels")]
pub use event::{FetchEvent, FetchSink};
#[cfg(feature = "wheels")]
pub use http::{
    AgentOptions, Headers, HttpError, HttpFault, IndexUrl, Netrc, Pieces, Proxies, ProxyTrouble, Request, Response, RetryPolicy, Slowest,
    Transport, Trust, UreqTransport,
};
pub use launcher::{Launcher, LauncherError};
pub use names::{
    CodedSet, LibraryExports, NameSet, NamesError, PythonVersion, added_to_stable_abi, decode as decode_names, is_of_python, is_of_runtime,
};
#[cfg(feature = "wheels")]
pub use network::{FoundWheel, Network, WantedWheel};
#[cfg(feature = "wheels")]
pub use part::{Members, Part, WheelPin};
pub use processor::Processor;
#[cfg(feature = "wheels")]
pub use provision::{
    Availability, Collected, DamagedEntry, OfferedTorch, PinnedTorch, ProvisionOptions, Provisioner, StoreEntry, StoredTree,
};
pub use stand_in::{ComparedHeaders, StandIn};
#[cfg(feature = "wheels")]
pub use store::{Removal, StoreTree};
pub use terms::Terms;
pub use toolchain::{CxxLevel, Provider, TorchToolchain, TvmFfiToolchain};
pub use whole_file::{keep, kept, write_whole};
