//! Extensions that speak torch's C++ ABI or its stable ABI.
//!
//! Both are one piece of code: the stable ABI is the same extension with one more define, which hides torch's unstable
//! headers and fixes the oldest torch that will load it.

use std::collections::HashSet;
use std::sync::Arc;

use kiln_format::{MajorMinor, Version};
use kiln_graph::{Action, Arg, Input, OutputRef, Piece, ResourceClass, Step, Weight};
use kiln_toolchain::floor::FloorLink;
use kiln_toolchain::stubs::{LinkNames, link_stubs};
use kiln_toolchain::{LibraryExports, PythonVersion, TorchToolchain};

use crate::backend::{Component, FrameworkPart, Lowering};
use crate::compile::{CompileProfile, ObjectFile, UnitSource, compile_host_unit, host_program};
use crate::error::BackendError;
use crate::flags::user_cxx_level;
use crate::framework::Framework;
use crate::generated;
use crate::source::Language;

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
    /// The ops id: file stem, module name and ops namespace in one.
    pub ops_id: String,
}

impl TorchFramework {
    /// The value of `TORCH_TARGET_VERSION` for a stable ABI version: the major in the top byte, the minor in the next.
    pub fn target_version(version: &Version) -> String {
        format!("0x{:016x}", (version.major() << 56) | ((version.minor() & 0xff) << 48))
    }
}

impl Framework for TorchFramework {
    fn profile(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, component: &Component) -> Result<CompileProfile, BackendError> {
        let generated_headers = Some(generated::registration_header(lowering.graph)?);
        let mut defines = part.defines.clone();
        if !component.uses_framework {
            return Ok(CompileProfile { cxx_std: PLAIN_CXX_STD, defines, generated_headers, ..CompileProfile::default() });
        }
        self.check_cxx_level(component)?;
        defines.extend(part.package_defines.iter().cloned());
        defines.push("Py_LIMITED_API=3".to_owned());
        if let Some(version) = &self.stable_abi {
            defines.push(format!("TORCH_TARGET_VERSION={}", Self::target_version(version)));
        }
        Ok(CompileProfile {
            device_flags: part.package_device_flags.clone(),
            cxx_std: self.toolchain.cxx_level.as_str(),
            defines,
            scoped_defines: vec![format!("TORCH_EXTENSION_NAME={}", self.ops_id), format!("{}_EXPORTS", self.ops_id)],
            generated_headers,
            system_include_dirs: self.toolchain.include_dirs.clone(),
            mapped_roots: vec![(self.toolchain.root.clone(), "torch".to_owned())],
            weight: Some(if self.stable_abi.is_some() { STABLE_UNIT } else { TORCH_UNIT }),
        })
    }

    fn link(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, objects: &[ObjectFile]) -> Result<OutputRef, BackendError> {
        let init = self.module_init(lowering)?;
        // A source that two components compile alike is one step, and its object is linked once.
        let mut known = HashSet::new();
        let objects: Vec<&ObjectFile> = objects.iter().chain([&init]).filter(|object| known.insert(&object.output)).collect();
        let (linked, unlinked) = self.libraries(part);
        let names = Arc::new(LinkNames {
            provider: format!("torch {}", self.toolchain.version),
            linked,
            unlinked,
            runtime: Arc::clone(&lowering.runtime),
            python: Some(PythonVersion::FLOOR),
            machine: lowering.machine,
        });
        let file_name = self.extension_file_name();
        let stubs = lowering.graph.add(Step {
            verb: "Resolving",
            label: file_name.clone(),
            action: Action::Builtin(link_stubs(Arc::clone(&names), objects.iter().map(|object| object.source.clone()).collect())),
            inputs: objects.iter().map(|object| Input::Output(object.output.clone())).collect(),
            outputs: names.outputs(),
            weight: Weight { cpu_ms: 50, memory_mib: 50 },
            resource: ResourceClass::Light,
        })?;
        let exports = OutputRef { step: generated::torch_exports(lowering.graph)?, name: "exports.map".to_owned() };
        let mut args = vec![Arg::from("-shared"), Arg::from("-o"), Arg(vec![Piece::Own(file_name.clone())])];
        args.extend(objects.iter().map(|object| Arg::from(object.output.clone())));
        // The floor's directory comes before all others, and its C++ library before torch's libraries.
        let FloorLink { before, after } = lowering.floor.clone().unwrap_or_default();
        args.push(Arg::from("-Wl,--as-needed"));
        args.extend(before);
        args.extend(names.outputs().into_iter().map(|name| Arg::from(OutputRef { step: stubs.clone(), name })));
        args.extend(after);
        // Not `-Wl`, which splits at commas: the project's path may have some.
        args.extend([Arg::from("-Xlinker"), Arg::text("--version-script=").with(Piece::Output(exports))]);
        args.push(Arg::from("-Wl,-z,noexecstack"));
        if lowering.host.args.iter().any(|arg| arg == "-fuse-ld=gold") {
            // gold writes a name for the file beside its versions: without this one, the place where it was linked.
            args.push(Arg::text("-Wl,-soname=").and(file_name.as_str()));
        }
        let step = lowering.graph.add(Step {
            verb: "Linking",
            label: file_name.clone(),
            action: Action::Run(host_program(lowering, args, None)),
            inputs: Vec::new(),
            outputs: vec![file_name.clone()],
            weight: Weight { cpu_ms: 300, memory_mib: 200 },
            resource: ResourceClass::Link,
        })?;
        Ok(OutputRef { step, name: file_name })
    }

    fn extension_file_name(&self) -> String {
        format!("{}.abi3.so", self.ops_id)
    }
}

impl TorchFramework {
    /// Refuses a `-std` below what torch's headers compile with. The stable ABI's headers compile from C++17 on with every torch.
    fn check_cxx_level(&self, component: &Component) -> Result<(), BackendError> {
        let least = if self.stable_abi.is_none() && self.toolchain.version.major_minor() >= CXX20_ONLY { 20 } else { 17 };
        match user_cxx_level(&component.cxx_flags) {
            Some(level) if level < least => Err(BackendError::CxxLevel { level, least, torch: self.toolchain.version.to_string() }),
            _ => Ok(()),
        }
    }

    /// Torch's libraries: those that the backend links with, in the backend's order, and the others.
    fn libraries(&self, part: &FrameworkPart) -> (Vec<LibraryExports>, Vec<LibraryExports>) {
        let all = &self.toolchain.exports;
        let of_torch = part.libraries.iter().filter_map(|soname| all.iter().find(|library| library.soname == *soname));
        let linked = of_torch.chain(&part.runtime).cloned().collect();
        let unlinked = all.iter().filter(|library| !part.libraries.contains(&library.soname)).cloned().collect();
        (linked, unlinked)
    }

    /// The object behind `REGISTER_EXTENSION`. It depends on nothing of the variant, so all extensions share it.
    fn module_init(&self, lowering: &mut Lowering<'_>) -> Result<ObjectFile, BackendError> {
        let source = UnitSource::Generated(OutputRef { step: generated::module_init(lowering.graph)?, name: "module_init.c".to_owned() });
        let component = Component::generated("module initialisation");
        compile_host_unit(lowering, &component, &CompileProfile::default(), &source, Language::C)
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
