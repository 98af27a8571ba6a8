use kiln_format::MajorMinor;

use super::*;

#[test]
fn the_embedded_catalog_has_the_releases_that_are_supported() {
    let catalog = Catalog::embedded().unwrap();
    let shown: Vec<String> = catalog
        .releases()
        .iter()
        .map(|release| {
            format!(
                "{} {} {} {}",
                release.version,
                release.platform,
                release.cuda.as_ref().map_or("none", Version::as_str),
                release.cxx_level
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    2.11.0 darwin-aarch64 none gnu++17
    2.11.0 linux-aarch64 13.0 gnu++17
    2.11.0 linux-x86_64 13.0 gnu++17
    2.11.0 windows-x86_64 none gnu++17
    2.12.1 darwin-aarch64 none gnu++20
    2.12.1 linux-aarch64 13.0 gnu++20
    2.12.1 linux-x86_64 13.0 gnu++20
    2.12.1 windows-x86_64 none gnu++20
    2.13.0 darwin-aarch64 none gnu++20
    2.13.0 linux-aarch64 13.0 gnu++20
    2.13.0 linux-x86_64 13.0 gnu++20
    2.13.0 windows-x86_64 none gnu++20
    2.14.1 darwin-aarch64 none gnu++20
    2.14.1 linux-aarch64 13.0 gnu++20
    2.14.1 linux-x86_64 13.0 gnu++20
    2.14.1 windows-x86_64 none gnu++20
    2.15.0 darwin-aarch64 none gnu++20
    2.15.0 linux-aarch64 13.2 gnu++20
    2.15.0 linux-x86_64 13.2 gnu++20
    2.15.0 windows-x86_64 none gnu++20
    ");
}

#[test]
fn an_unknown_release_is_answered_with_the_known_ones() {
    let error = Catalog::embedded().unwrap().torch(&Version::parse("2.12.0").unwrap(), "linux-x86_64").unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"torch 2.12.0 for linux-x86_64 is not in the catalog");
    insta::assert_snapshot!(error.hint().unwrap(), @"the catalog has 2.11.0, 2.12.1, 2.13.0, 2.14.1, 2.15.0; pin another release with `kiln toolchain add torch==2.12.0`");
}

#[test]
fn damaged_catalogs_are_refused() {
    let entry = EMBEDDED.find("[[torch]]").map(|start| &EMBEDDED[start..]).unwrap();
    let first = entry[9..].find("[[torch]]").map(|end| &entry[..end + 9]).unwrap();
    let message = |text: &str| Catalog::parse(text).unwrap_err().to_string();
    insta::assert_snapshot!(message(&format!("{first}{first}")), @"the catalog is damaged: torch 2.11.0 for darwin-aarch64 has two entries");
    // `depends` names a library without its version.
    let headers = EMBEDDED.find("[[headers]]").map(|start| &EMBEDDED[start..]).unwrap();
    let library = headers[11..].find("[[").map_or(headers, |end| &headers[..end + 11]);
    let newer = library.replace("version = \"3.5.1\"", "version = \"3.5.2\"");
    assert_ne!(newer, library);
    insta::assert_snapshot!(message(&format!("{library}{newer}")), @"the catalog is damaged: the headers `cutlass_3_5` have two entries");
    insta::assert_snapshot!(message(&first.replace("gnu++17", "c++9")), @"the catalog is damaged: torch 2.11.0 for darwin-aarch64: `c++9` is no language level");
    insta::assert_snapshot!(message(&first.replace("size = ", "length = ")), @"the catalog is damaged: unknown field `length`, expected one of `version`, `platform`, `wheel`, `size`, `sha256`, `record_sha256`, `cuda`, `cxx`, `license`, `names`");
}

#[test]
fn the_toolkits_of_cuda_are_whole() {
    let catalog = Catalog::embedded().unwrap();
    let shown: Vec<String> = catalog
        .cuda_toolkits()
        .iter()
        .map(|toolkit| {
            let archs: Vec<String> = toolkit.archs.iter().map(u32::to_string).collect();
            format!("{} {} gcc {} clang {}: {}", toolkit.version, toolkit.platform, toolkit.gcc, toolkit.clang, archs.join(" "))
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    13.0.3 linux-aarch64 gcc 15 clang 20: 75 80 86 87 88 89 90 100 103 110 120 121
    13.0.3 linux-x86_64 gcc 15 clang 20: 75 80 86 87 88 89 90 100 103 110 120 121
    13.0.3 windows-x86_64 gcc 15 clang 20: 75 80 86 87 88 89 90 100 103 110 120 121
    13.1.2 linux-aarch64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.1.2 linux-x86_64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.1.2 windows-x86_64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.2.2 linux-aarch64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.2.2 linux-x86_64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.2.2 windows-x86_64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.3.1 linux-aarch64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.3.1 linux-x86_64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.3.1 windows-x86_64 gcc 15 clang 21: 75 80 86 87 88 89 90 100 103 110 120 121
    13.4.3 linux-aarch64 gcc 16 clang 22: 75 80 86 87 88 89 90 100 103 107 110 120 121
    13.4.3 linux-x86_64 gcc 16 clang 22: 75 80 86 87 88 89 90 100 103 107 110 120 121
    13.4.3 windows-x86_64 gcc 16 clang 22: 75 80 86 87 88 89 90 100 103 107 110 120 121
    13.5.0 linux-aarch64 gcc 16 clang 22: 75 80 86 87 88 89 90 100 103 107 110 120 121
    13.5.0 linux-x86_64 gcc 16 clang 22: 75 80 86 87 88 89 90 100 103 107 110 120 121
    13.5.0 windows-x86_64 gcc 16 clang 22: 75 80 86 87 88 89 90 100 103 107 110 120 121
    ");
    for toolkit in catalog.cuda_toolkits() {
        let place = format!("{} {}", toolkit.version, toolkit.platform);
        let projects = |used_for| -> Vec<String> { toolkit_projects(&catalog, toolkit, used_for) };
        let compile = ["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl"];
        assert_eq!(projects(CudaUse::Compile), compile, "{place}");
        assert_eq!(projects(CudaUse::DeviceLink), ["nvidia-cuda-nvcc", "nvidia-cuda-runtime"], "{place}");
        assert_eq!(projects(CudaUse::TorchHeaders), ["nvidia-cublas", "nvidia-cusparse", "nvidia-cusolver"], "{place}");
        // The index has these from 13.2 on.
        let inspect = if toolkit.version.minor() < 2 { &[][..] } else { &["nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm"] };
        assert_eq!(projects(CudaUse::Inspect), inspect, "{place}");
        if toolkit.platform.starts_with("linux-") {
            let exports = toolkit.exports().unwrap();
            assert_eq!(exports.iter().map(|library| library.soname.as_str()).collect::<Vec<_>>(), ["libcudart.so.13"], "{place}");
            assert!(exports.iter().all(|library| library.offers("cudaLaunchKernel") && !library.offers("cuLaunchKernel")), "{place}");
        }
    }
}

#[test]
fn members_of_a_toolkit_are_named_as_its_platform_does() {
    let catalog = Catalog::embedded().unwrap();
    let files = |platform: &str, project: &str| -> Vec<String> {
        let toolkit = catalog.cuda(&Version::parse("13.2").unwrap(), platform).unwrap();
        let parts = catalog.cuda_parts(toolkit, &[CudaUse::Compile]);
        let part = parts.iter().find(|part| part.wheel.project == project).unwrap();
        assert!(part.members.programs.iter().all(|program| part.members.files.contains(program)));
        part.members.files.iter().map(|file| file.strip_prefix(&part.strip).unwrap().to_owned()).collect()
    };
    assert_eq!(files("linux-x86_64", "nvidia-nvvm"), ["nvvm/libdevice/libdevice.10.bc", "nvvm/bin/cicc"]);
    assert_eq!(files("windows-x86_64", "nvidia-nvvm"), ["nvvm/libdevice/libdevice.10.bc", "nvvm/bin/cicc.exe"]);
    assert_eq!(files("linux-aarch64", "nvidia-cuda-runtime"), ["lib/libcudart.so.13"]);
    assert_eq!(files("windows-x86_64", "nvidia-cuda-runtime"), ["bin/x86_64/cudart64_13.dll", "lib/x64/cudart.lib"]);
    assert_eq!(catalog.cuda(&Version::parse("12.8").unwrap(), "linux-x86_64"), None);
}

fn toolkit_projects(catalog: &Catalog, toolkit: &CudaToolkit, used_for: CudaUse) -> Vec<String> {
    catalog.cuda_parts(toolkit, &[used_for]).into_iter().map(|part| part.wheel.project).collect()
}

#[test]
fn the_oldest_tvm_ffi_of_a_minor_is_built_against() {
    let catalog = Catalog::embedded().unwrap();
    let minor = MajorMinor::new(0, 1);
    for platform in ["linux-x86_64", "linux-aarch64", "darwin-aarch64", "windows-x86_64"] {
        assert_eq!(catalog.oldest_tvm_ffi(minor, platform).unwrap().version.as_str(), "0.1.9");
        assert_eq!(catalog.tvm_ffi(&Version::parse("0.1.12").unwrap(), platform).unwrap().version.as_str(), "0.1.12");
    }
    let error = catalog.oldest_tvm_ffi(MajorMinor::new(9, 1), "linux-x86_64").unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"tvm-ffi 9.1 for linux-x86_64 is not in the catalog");
    insta::assert_snapshot!(error.hint().unwrap(), @"the catalog has 0.1.9, 0.1.10, 0.1.11, 0.1.12, 0.1.13, 0.1.14, 0.1.15");
}

/// What is compiled against the oldest release of a minor is promised to load with all: names of the C interface never go away.
#[test]
fn later_releases_of_tvm_ffi_have_what_earlier_ones_had() {
    const NAMES: [&str; 12] = [
        "TVMFFIAnyViewToOwnedAny",
        "TVMFFIBacktrace",
        "TVMFFIEnvGetStream",
        "TVMFFIEnvTensorAlloc",
        "TVMFFIErrorCreate",
        "TVMFFIErrorMoveFromRaised",
        "TVMFFIErrorSetRaised",
        "TVMFFIFunctionCall",
        "TVMFFIFunctionGetGlobal",
        "TVMFFIStringFromByteArray",
        "TVMFFITensorFromDLPack",
        "TVMFFITypeKeyToIndex",
    ];
    for release in Catalog::embedded().unwrap().tvm_ffi_releases() {
        let exports = release.exports().unwrap();
        let [library] = exports.as_slice() else { panic!("{} has {} libraries", release.version, exports.len()) };
        for name in NAMES {
            // macOS writes an underscore before each.
            let written = if release.platform.starts_with("darwin-") { format!("_{name}") } else { name.to_owned() };
            assert!(library.offers(&written) || library.offers(name), "{} for {} lacks {name}", release.version, release.platform);
        }
        assert!(!library.offers("TVMFFINoSuchName"));
    }
}

#[test]
fn names_of_a_release_take_little_room() {
    for release in Catalog::embedded().unwrap().releases() {
        let size = crate::names::catalog_file(&release.names).unwrap().len();
        assert!((1..=300_000).contains(&size), "`{}` has {size} bytes", release.names);
    }
}
