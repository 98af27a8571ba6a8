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
    /// A build reads of these files what it needs, and takes it for whole.
    #[test]
    fn what_is_read_when_it_is_needed_is_what_is_there() {
        for (name, content) in FILES {
            let (whole, lazy) = (super::super::decode(content).unwrap(), super::super::file::decode_embedded(content).unwrap());
            assert_eq!(whole, lazy, "{name}");
            for (whole, lazy) in whole.iter().zip(&lazy) {
                assert_eq!((whole.names.digest(), whole.names.len()), (lazy.names.digest(), lazy.names.len()), "{name}");
                assert_eq!(encoded(whole), encoded(lazy), "{name} {}", whole.soname);
            }
        }
    }

    /// The set of a library, read and written again.
    fn encoded(library: &super::super::LibraryExports) -> Vec<u8> {
        match &library.names.0 {
            super::super::Repr::Coded(set) => set.encode(),
            super::super::Repr::Exact(_) | super::super::Repr::Rule(_) => panic!("the catalog has coded sets only"),
        }
    }

    /// Each file must be whole, within the 0.3 MB that a release may cost, and know what every torch exports.
    #[test]
    fn every_file_has_the_libraries_of_a_release() {
        for (name, content) in FILES.iter().filter(|(name, _)| name.starts_with("torch-")) {
            assert!(content.len() < 300_000, "{name}: {}", content.len());
            let libraries = super::super::decode(content).unwrap();
            let [platform] = ["linux-x86_64", "linux-aarch64", "darwin-aarch64", "windows-x86_64"]
                .map(|platform| name.ends_with(&format!("-{platform}.names")).then_some(platform))
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()[..]
            else {
                panic!("{name}")
            };
            let called: Vec<&str> = libraries.iter().map(|library| library.soname.as_str()).collect();
            let files: Vec<&str> = called.iter().map(|name| name.trim_start_matches("@rpath/")).collect();
            let all = crate::toolchain::torch_libraries(platform);
            // Those of CUDA are in the wheels for Linux only, and not in all of them.
            assert!(files == all || files == all[..3], "{name}: {called:?}");
            let offered = |wanted: &str| -> Vec<&str> {
                libraries.iter().filter(|library| library.offers(wanted)).map(|library| library.soname.as_str()).collect()
            };
            let cpu = called[2..3].to_vec();
            assert_eq!(offered("aoti_torch_call_dispatcher"), cpu, "{name}");
            if platform.starts_with("windows") {
                assert_eq!(offered("?call@relu@_ops@at@@SA?AVTensor@3@AEBV43@@Z"), cpu, "{name}");
                assert_eq!(offered("_ZN2at4_ops4relu4callERKNS_6TensorE"), <[&str; 0]>::default(), "{name}");
                continue;
            }
            assert_eq!(offered(string(platform)), called[..1], "{name}");
            assert_eq!(offered("_ZN2at4_ops4relu4callERKNS_6TensorE"), cpu, "{name}");
            let cuda = if called.len() > 3 { &["libc10_cuda.so"][..] } else { &[] };
            assert_eq!(offered("_ZN3c104cuda20getCurrentCUDAStreamEa"), cuda, "{name}");
            assert_eq!(offered("_ZN3c104goneEi"), <[&str; 0]>::default(), "{name}");
            assert_eq!(offered("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev"), <[&str; 0]>::default(), "{name}");
        }
    }

    /// A constructor of `c10::Error`, which takes the string of the platform's C++ library.
    fn string(platform: &str) -> &'static str {
        if platform.starts_with("darwin") {
            "_ZN3c105ErrorC1ENS_14SourceLocationENSt3__112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE"
        } else {
            "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
        }
    }
}
