//! The backend trait and the lowering of frameworks, for every vendor.
//!
//! Two axes that stay apart. A [`Backend`] knows who compiles device code: which architectures, which extra steps. A
//! [`Framework`] knows which ABI the extension speaks: defines, include directories, the C++ level, generated files and
//! the link. A backend asks the framework for a [`CompileProfile`]; what a framework must know of a backend is the data
//! of [`FrameworkPart`]. No vendor is named here: each has a crate, whose [`Toolkits`] give the backend of each toolkit.
//!
//! [`build_script`] is the other way in: the builder with which a `build.rs` compiles sources through a backend.

mod backend;
pub mod build_script;
mod compile;
mod error;
mod flags;
mod framework;
mod generated;
mod host;
mod link;
mod source;
mod toolkits;
mod torch;
mod tvm_ffi;

pub use backend::{
    Architectures, Backend, Component, ForeignHeaders, FrameworkPart, LinkPart, Lowering, TorchPart, UnitPart, WrongCode, depfile_args,
    program, with_stand_ins,
};
pub use compile::{CompileProfile, HeaderFiles, HostUnits, MadeHeaders, ObjectFile, UnitSource, shows_arguments, unit_compiler};
pub use error::BackendError;
pub use flags::{FlagFault, FlagList, FlagRemark, audit_flags, user_cxx_level};
pub use framework::Framework;
pub use generated::generate;
pub use host::FittingHost;
pub use kiln_format::build::KernelOptions;
pub use kiln_format::variant::{Compute, normalize};
pub use kiln_format::{BackendName, Build, CudaCapability, CudaSuffix, Dependency, MajorMinor, Span, Spanned, Version};
pub use kiln_graph::{
    Action, Arg, Args, Builtin, BuiltinContext, BuiltinError, Call, Graph, Input, Interrupt, OutputRef, PathRef, Piece, Program,
    ResourceClass, RootBinding, RootKind, RootName, Scope, Step, StepId, Weight, write_file,
};
pub use kiln_object::elf::Machine;
pub use kiln_object::{Error as ObjectError, archive, elf, fatbin, macho, offload, sycl};
pub use kiln_toolchain::discover;
pub use kiln_toolchain::host::{Family, HostCompiler, HostError, HostRuntime, RuntimeFile};
pub use kiln_toolchain::process::said;
#[cfg(feature = "wheels")]
pub use kiln_toolchain::{
    Availability, Catalog, CudaToolkit as CatalogToolkit, CudaUse, Error as FetchError, Members, Network, Part, ProvisionOptions,
    Provisioner, RetryPolicy,
};
pub use kiln_toolchain::{Launcher, LibraryExports, NameSet, Processor, keep, kept};
pub use source::{Language, SourceKind, classify_source};
pub use toolkits::{
    Ask, Asked, CSRC, CompilerAt, FoundIn, FoundToolkit, PROJECT, ProvideError, SettingKey, Sources, ToolkitRecord, Toolkits, TorchWanted,
    Wanted, also,
};
pub use torch::TorchFramework;
pub use tvm_ffi::TvmFfiFramework;
