//! Extensions that speak the ABI of tvm-ffi.
//!
//! One library for torch, JAX, NumPy and C++: it needs neither torch nor Python. Every unit may include the headers, as no name in
//! `depends` stands for them.

use kiln_graph::{OutputRef, RootBinding, RootName, Weight};
use kiln_toolchain::{LibraryExports, TvmFfiToolchain};

use crate::backend::{Component, FrameworkPart, Lowering};
use crate::compile::{CompileProfile, ObjectFile};
use crate::error::BackendError;
use crate::flags::user_cxx_level;
use crate::framework::Framework;
use crate::link::{ExtensionLink, link_extension};

/// The C++ level where the author asks for none: the least that the headers take.
const CXX_STD: &str = "gnu++17";
/// The same as a year.
const LEAST_CXX: u32 = 17;
/// Exports of an extension: what the export macros of the headers make.
const EXPORTS: &str = "{ global: __tvm_ffi_*; local: *; };\n";
/// Expected cost of a unit that includes the headers (measured: 0.1.9, g++ 12).
const UNIT: Weight = Weight { cpu_ms: 2_000, memory_mib: 300 };

/// The ABI of tvm-ffi, bound to one variant.
#[derive(Clone, Debug)]
pub struct TvmFfiFramework {
    /// The tvm-ffi to build against.
    pub toolchain: TvmFfiToolchain,
    /// The ops id: file stem and name of the extension in one.
    pub ops_id: String,
    /// File name of the extension in its variant directory.
    pub file_name: String,
}

impl TvmFfiFramework {
    fn name(&self) -> String {
        format!("tvm-ffi {}", self.toolchain.version)
    }
}

impl Framework for TvmFfiFramework {
    fn root(&self) -> (RootName, RootBinding) {
        (self.toolchain.root.clone(), self.toolchain.binding.clone())
    }

    fn exports(&self) -> &[LibraryExports] {
        &self.toolchain.exports
    }

    fn profile(&self, _: &mut Lowering<'_>, part: &FrameworkPart, component: &Component) -> Result<CompileProfile, BackendError> {
        if let Some(level) = user_cxx_level(&component.cxx_flags).filter(|level| *level < LEAST_CXX) {
            return Err(BackendError::CxxLevel { level, least: LEAST_CXX, framework: self.name(), hint: "leave the flag out" });
        }
        Ok(CompileProfile {
            cxx_std: CXX_STD,
            defines: vec![part.define.to_owned()],
            scoped_defines: vec![format!("TVM_FFI_EXTENSION_NAME={}", self.ops_id), format!("{}_EXPORTS", self.ops_id)],
            system_include_dirs: self.toolchain.include_dirs.clone(),
            mapped_roots: vec![(self.toolchain.root.clone(), "tvm_ffi".to_owned())],
            weight: Some(UNIT),
            ops_id: self.ops_id.clone(),
            ..CompileProfile::default()
        })
    }

    fn link(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, objects: &[ObjectFile]) -> Result<OutputRef, BackendError> {
        let link = ExtensionLink {
            file_name: &self.file_name,
            soname: true,
            provider: self.name(),
            linked: self.toolchain.exports.iter().chain(&part.runtime).cloned().collect(),
            unlinked: Vec::new(),
            python: None,
            exports: EXPORTS,
            backend: &part.link,
        };
        link_extension(lowering, &link, objects.iter())
    }
}
