//! Extensions that speak torch's C++ ABI or its stable ABI.
//!
//! Both are one piece of code: the stable ABI is the same extension with one more define, which hides torch's unstable
//! headers and fixes the oldest torch that will load it.

use std::path::Path;

use kiln_format::{MajorMinor, Version};
use kiln_graph::{OutputRef, RootBinding, RootName, Weight};
use kiln_toolchain::{LibraryExports, PythonVersion, TorchToolchain};

use crate::backend::{Component, ForeignHeaders, FrameworkPart, Lowering, with_stand_ins};
use crate::compile::{CompileProfile, HeaderFiles, HostUnits, ObjectFile, UnitSource};
use crate::error::BackendError;
use crate::flags::user_cxx_level;
use crate::framework::Framework;
use crate::generated;
use crate::link::{ExtensionLink, link_extension};
use crate::source::{Language, SourceKind, classify_source};

/// Exports of an extension: its entry point and nothing else.
const EXPORTS: &str = "{ global: PyInit_*; local: *; };\n";
/// C++ level of units that include no torch header: one for every torch, so that they are one action.
const PLAIN_CXX_STD: &str = "gnu++20";
/// The first torch whose C++ headers refuse anything below C++20, as its `ATen/ATen.h` says.
const CXX20_ONLY: MajorMinor = MajorMinor::new(2, 14);
/// Expected cost of a unit that includes torch's C++ headers.
const TORCH_UNIT: Weight = Weight { cpu_ms: 10_000, memory_mib: 1_200 };
/// Expected cost of a unit that includes the stable-ABI headers only.
const STABLE_UNIT: Weight = Weight { cpu_ms: 1_500, memory_mib: 400 };

/// Torch's ABI, bound to one variant.
#[derive(Clone, Debug)]
pub struct TorchFramework {
    /// The torch to build against.
    pub toolchain: TorchToolchain,
    /// The stable ABI version to stay within; none for torch's C++ ABI.
    pub stable_abi: Option<Version>,
    /// The ops id: module name and ops namespace in one.
    pub ops_id: String,
    /// File name of the extension in its variant directory.
    pub file_name: String,
}

impl TorchFramework {
    /// The value of `TORCH_TARGET_VERSION` for a stable ABI version: the major in the top byte, the minor in the next.
    pub fn target_version(version: &Version) -> String {
        format!("0x{:016x}", (version.major() << 56) | ((version.minor() & 0xff) << 48))
    }
}

impl Framework for TorchFramework {
    fn root(&self) -> (RootName, RootBinding) {
        (self.toolchain.root.clone(), self.toolchain.binding.clone())
    }

    fn roots(&self) -> Vec<(RootName, RootBinding)> {
        let addition = self.toolchain.addition.iter().map(|addition| (addition.root.clone(), addition.binding.clone()));
        std::iter::once(self.root()).chain(addition).collect()
    }

    fn exports(&self) -> &[LibraryExports] {
        &self.toolchain.exports
    }

    fn profile(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, component: &Component) -> Result<CompileProfile, BackendError> {
        if let Some(reason) = part.torch.no_stable_abi.filter(|_| self.stable_abi.is_some()) {
            return Err(BackendError::NoStableAbi { reason });
        }
        let generated_headers = Some(generated::headers(lowering.graph, part.torch.has_streams)?);
        let mut defines = vec![part.define.to_owned()];
        defines.extend(part.torch.defines.iter().cloned());
        if !component.uses_framework {
            let ops_id = self.ops_id.clone();
            return Ok(CompileProfile { cxx_std: PLAIN_CXX_STD, defines, generated_headers, ops_id, ..CompileProfile::default() });
        }
        self.check_cxx_level(component)?;
        defines.extend(part.torch.package_defines.iter().cloned());
        defines.push("Py_LIMITED_API=3".to_owned());
        if let Some(version) = &self.stable_abi {
            defines.push(format!("TORCH_TARGET_VERSION={}", Self::target_version(version)));
        }
        Ok(CompileProfile {
            device_flags: part.torch.package_device_flags.clone(),
            cxx_std: self.toolchain.cxx_level.as_str(),
            defines,
            scoped_defines: vec![format!("TORCH_EXTENSION_NAME={}", self.ops_id), format!("{}_EXPORTS", self.ops_id)],
            generated_headers,
            backend_headers: None,
            ops_id: self.ops_id.clone(),
            include_dirs: Vec::new(),
            foreign_headers: part
                .torch
                .foreign_headers
                .filter(|_| self.stable_abi.is_none())
                .and_then(|foreign| self.foreign_headers(foreign)),
            made_headers: Vec::new(),
            system_include_dirs: self.toolchain.include_dirs.clone(),
            mapped_roots: self.mapped_roots(),
            env: Default::default(),
            weight: Some(if self.stable_abi.is_some() { STABLE_UNIT } else { TORCH_UNIT }),
        })
    }

    fn link(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, objects: &[ObjectFile]) -> Result<OutputRef, BackendError> {
        let init = self.module_init(lowering)?;
        let (linked, unlinked) = self.libraries(part);
        let link = ExtensionLink {
            file_name: &self.file_name,
            soname: false,
            provider: format!("torch {}", self.toolchain.version),
            linked,
            unlinked,
            python: Some(PythonVersion::FLOOR),
            exports: EXPORTS,
            backend: &part.link,
        };
        link_extension(lowering, &link, objects.iter().chain([&init]))
    }
}

impl TorchFramework {
    /// Refuses a `-std` below what torch's headers compile with. The stable ABI's headers compile from C++17 on with every torch.
    fn check_cxx_level(&self, component: &Component) -> Result<(), BackendError> {
        let least = if self.stable_abi.is_none() && self.toolchain.version.major_minor() >= CXX20_ONLY { 20 } else { 17 };
        match user_cxx_level(&component.cxx_flags) {
            Some(level) if level < least => {
                let hint = "leave the flag out to take the level that torch itself uses, or stay below that torch with `torch.maxver`";
                Err(BackendError::CxxLevel { level, least, framework: format!("torch {}", self.toolchain.version), hint })
            }
            _ => Ok(()),
        }
    }

    /// The headers of this torch that others are to be made of; none where they are made already, or are not here to be read.
    fn foreign_headers(&self, foreign: ForeignHeaders) -> Option<HeaderFiles> {
        let dir = self.toolchain.include_dirs.first()?.clone();
        let include = self.toolchain.binding.dir.join(&dir.path);
        if include.join(foreign.made).exists() {
            return None;
        }
        let mut names = Vec::new();
        foreign.dirs.iter().for_each(|below| headers_below(&include, below, &mut names));
        names.sort_unstable();
        (!names.is_empty()).then_some(HeaderFiles { dir, names })
    }

    /// The trees of its headers, with what stands for each in messages and objects.
    fn mapped_roots(&self) -> Vec<(RootName, String)> {
        let addition = self.toolchain.addition.iter().map(|addition| (addition.root.clone(), addition.name.clone()));
        std::iter::once((self.toolchain.root.clone(), "torch".to_owned())).chain(addition).collect()
    }

    /// Torch's libraries: those that the backend links with, in the backend's order, and the others.
    fn libraries(&self, part: &FrameworkPart) -> (Vec<LibraryExports>, Vec<LibraryExports>) {
        let all = with_stand_ins(&self.toolchain.exports, part.torch.stand_ins);
        let named = |soname: &String| all.iter().chain(&part.torch.known).find(|library| library.soname == *soname);
        let of_torch = part.torch.libraries.iter().filter_map(named);
        let linked = of_torch.chain(&part.runtime).cloned().collect();
        let unlinked = all.iter().filter(|library| !part.torch.libraries.contains(&library.soname)).cloned().collect();
        (linked, unlinked)
    }

    /// The object behind `REGISTER_EXTENSION`. It depends on nothing of the variant, so all extensions share it.
    fn module_init(&self, lowering: &mut Lowering<'_>) -> Result<ObjectFile, BackendError> {
        let source = UnitSource::Generated(OutputRef { step: generated::module_init(lowering.graph)?, name: "module_init.c".to_owned() });
        let component = Component::generated("module initialisation");
        HostUnits::new(&component, &CompileProfile::default()).compile(lowering, &source, Language::C)
    }
}

/// Adds the headers in a directory below `include`, by how they are included.
fn headers_below(include: &Path, below: &str, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(include.join(below)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (name, path) = (format!("{below}/{name}"), entry.path());
        if path.is_dir() {
            headers_below(include, &name, names);
        } else if classify_source(&name) == SourceKind::Header {
            names.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TorchFramework;
    use kiln_format::Version;

    #[test]
    fn the_target_version_has_major_and_minor_in_the_top_bytes() {
        let hex = |text: &str| TorchFramework::target_version(&text.parse::<Version>().unwrap());
        assert_eq!(hex("2.9"), "0x0209000000000000");
        assert_eq!(hex("2.11"), "0x020b000000000000");
        assert_eq!(hex("3"), "0x0300000000000000");
    }
}
