//! Looking up the names files of the catalog.

use super::files::FILES;

/// The content of a names file.
pub(super) fn find(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, content)| *content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_catalog_go_together() {
        let catalog = crate::Catalog::embedded().unwrap();
        let torch = catalog.releases().iter().map(|release| release.names.as_str());
        let cuda = catalog.cuda_toolkits().iter().filter_map(|toolkit| toolkit.names.as_deref());
        let mut wanted: Vec<&str> =
            torch.chain(cuda).chain(catalog.tvm_ffi_releases().iter().map(|release| release.names.as_str())).collect();
        wanted.sort_unstable();
        assert_eq!(wanted, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
    /// Each file must be whole, within the 0.3 MB that a release may cost, and know what every torch exports.
    #[test]
    fn every_file_has_the_libraries_of_a_release() {
        for (name, content) in FILES.iter().filter(|(name, _)| name.starts_with("torch-")) {
            assert!(content.len() < 300_000, "{name}: {}", content.len());
            let libraries = super::super::decode(content).unwrap();
            let sonames: Vec<&str> = libraries.iter().map(|library| library.soname.as_str()).collect();
            assert_eq!(sonames, crate::make_catalog::libraries("linux-x86_64"), "{name}");
            let offered = |wanted: &str| -> Vec<&str> {
                libraries.iter().filter(|library| library.offers(wanted)).map(|library| library.soname.as_str()).collect()
            };
            assert_eq!(
                offered("_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
                ["libc10.so"],
                "{name}"
            );
            assert_eq!(offered("_ZN2at4_ops4relu4callERKNS_6TensorE"), ["libtorch_cpu.so"], "{name}");
            assert_eq!(offered("aoti_torch_call_dispatcher"), ["libtorch_cpu.so"], "{name}");
            assert_eq!(offered("_ZN3c104cuda20getCurrentCUDAStreamEa"), ["libc10_cuda.so"], "{name}");
            assert_eq!(offered("_ZN3c104goneEi"), <[&str; 0]>::default(), "{name}");
            assert_eq!(offered("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev"), <[&str; 0]>::default(), "{name}");
        }
    }
}
