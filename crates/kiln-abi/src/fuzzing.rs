//! Bodies of the fuzz targets, as plain functions so that ordinary tests run them too.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use kiln_format::variant::Variant;
use kiln_object::{archive, elf, macho, offload};

use crate::{DEFAULT_POLICY, Expectation, Origins, Policies, Profile, PythonVersion, Report, check_elf, check_macho};

/// A variant for macOS.
const MACOS: &str = "torch-stable-abi211-metal-aarch64-darwin";

/// Any bytes as a bundle of device code, as an object that holds some, and as the code of one device: no panic, no more than there is room
/// for, and a bundle that is made of it is read as what it was made of.
pub fn offload(data: &[u8]) {
    // A bundle begins with a text of 24 bytes and a number, each entry has three numbers.
    let has_room = |bundles: &[offload::Bundle]| {
        let entries: usize = bundles.iter().map(|bundle| bundle.entries.len()).sum();
        assert!(bundles.len() <= data.len() / 32 && entries <= data.len() / 24);
    };
    for bundles in [offload::of_section(data), offload::of_elf(data)].into_iter().flatten() {
        has_room(&bundles);
    }
    let code = offload::code_object(data).ok();
    let made = offload::bundle(&[("gfx90a:xnack+".to_owned(), data.to_vec())]);
    let read = offload::of_section(&made).ok().map(|bundles| bundles.into_iter().flat_map(|bundle| bundle.entries).collect::<Vec<_>>());
    assert_eq!(read, code.map(|code| vec![offload::Entry { target: "gfx90a:xnack+".to_owned(), code }]));
}

/// Any bytes as a shared object, an object or a static library, through every check: no panic, and no more findings than the file
/// has room for.
pub fn object(data: &[u8]) {
    // An entry of an archive's index has at least five bytes, a member a header of sixty.
    if let Ok(index) = archive::symbol_index(data) {
        assert!(index.len() <= data.len());
    }
    if let Ok(members) = archive::members(data) {
        assert!(members.len() <= data.len() / 60);
    }
    // What the floor does with the objects of a static library. Tables may overlap, so that what is changed in one is in another.
    if let Ok(definitions) = elf::definitions(data) {
        assert!(definitions.len() <= data.len());
        let mut hidden = data.to_vec();
        if elf::hide(&mut hidden, |name| name.len() > 4).is_ok() {
            assert_eq!(hidden.len(), data.len());
            let _again = elf::definitions(&hidden);
        }
    }
    let origins = match elf::relocatable(data) {
        Ok(object) => Origins::new([("object", &object)]),
        Err(_) => Origins::default(),
    };
    let (dynamic, image) = (elf::dynamic(data), macho::image(data));
    if dynamic.is_err() && image.is_err() {
        return;
    }
    static POLICIES: LazyLock<Option<Policies>> = LazyLock::new(|| Policies::embedded().ok());
    let Some(policies) = &*POLICIES else { return };
    let allowed = BTreeSet::new();
    let known = |soname: &str, name: &str| (soname == "libc10.so").then_some(name.len().is_multiple_of(2));
    for profile in [Profile::Extension, Profile::Library] {
        for name in ["torch213-cxx11-cpu-x86_64-linux", "torch-stable-abi211-cu130-aarch64-linux", "tvm-ffi01-rocm71-x86_64-linux", MACOS] {
            let expected = Expectation {
                profile,
                floor: policies.get(DEFAULT_POLICY).ok(),
                framework: None,
                compute: None,
                platform: None,
                id: Some("_relu_cpu_1"),
                python: PythonVersion::FLOOR,
                macos: None,
                allowed_libraries: &allowed,
                known_names: &known,
                origins: &origins,
                host_paths: &[],
                own: true,
            };
            let expected = name.parse::<Variant>().map_or(expected, |variant| expected.for_variant(&variant));
            let mut report = Report::default();
            if let Ok(dynamic) = &dynamic {
                check_elf("file", dynamic, &expected, &mut report);
            }
            if let Ok(image) = &image {
                check_macho("file", image, &expected, &mut report);
            }
            // A symbol has at least sixteen bytes, a needed library or version eight; each breaks few rules.
            assert!(report.findings.len() <= data.len(), "{} findings in {} bytes", report.findings.len(), data.len());
            for finding in &report.findings {
                assert!(!finding.detail.is_empty() && !finding.fix.is_empty(), "{finding:?}");
            }
        }
    }
}
