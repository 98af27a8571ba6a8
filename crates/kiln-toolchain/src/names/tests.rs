use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("_ZN2at4_ops{prefix}{number}4callERKNS_6TensorE")).collect()
}

fn coded(names: &[String]) -> CodedSet {
    CodedSet::new(names.iter().map(String::as_str))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_coded_set_has_all_its_names_and_survives_its_file(names in proptest::collection::vec("[a-zA-Z_0-9]{0,12}", 0..200)) {
        let set = coded(&names);
        for name in &names {
            prop_assert!(set.contains(name));
        }
        let libraries = decode(&encode(&[("liba.so".to_owned(), set.clone()), ("libb.so".to_owned(), CodedSet::default())])).unwrap();
        prop_assert_eq!(libraries.len(), 2);
        prop_assert_eq!(&libraries[0].soname, "liba.so");
        prop_assert_eq!(&*libraries[0].names, &NameSet::from(set));
        prop_assert!(libraries[1].names.is_empty());
    }

    #[test]
    fn damaged_sets_are_errors_or_other_sets(mut bytes in Just(coded(&names("x", 50)).encode()), edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5), cut in any::<prop::sample::Index>()) {
        for (place, value) in edits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = CodedSet::decode(&bytes);
        let _ = CodedSet::decode(&bytes[..cut.index(bytes.len())]);
    }
}

/// The rate that the documentation promises, measured. Deterministic: the hash is.
#[test]
fn false_members_are_one_in_a_million() {
    let set = coded(&names("in", 80_000));
    assert_eq!(set.len(), 80_000);
    let tries = 8_000_000;
    let mut name = String::new();
    let hits = (0..tries).filter(|number| {
        name.clear();
        let _ = write!(name, "_ZN2at4outE{number}");
        set.contains(&name)
    });
    let hits = hits.count();
    // Expected: 7.6.
    assert!((1..=20).contains(&hits), "{hits} of {tries}");
}

#[test]
fn a_name_costs_less_than_22_bits() {
    let bytes = coded(&names("in", 80_000)).encode().len();
    assert!(bytes * 8 < 22 * 80_000, "{bytes}");
}

#[test]
fn damaged_files_are_refused() {
    let file = encode(&[("liba.so".to_owned(), coded(&names("x", 50)))]);
    let error = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
    let signed = |body: &[u8]| [body, blake3::hash(body).as_bytes()].concat();
    let body = &file[..file.len() - 32];
    assert_eq!(error(b"short"), "it is cut short");
    assert_eq!(error(&[0; 64]), "it is no names file");
    assert_eq!(error(&file[..file.len() - 1]), "its checksum does not match");
    let mut changed = file.clone();
    changed[40] ^= 1;
    assert_eq!(error(&changed), "its checksum does not match");
    let mut newer = body.to_vec();
    newer[8] = 2;
    assert_eq!(error(&signed(&newer)), "it is of another version");
    assert_eq!(error(&signed(&body[..30])), "it is cut short");
    assert_eq!(error(&signed(&[body, &[0]].concat())), "it is longer than it says");
    let mut odd = body.to_vec();
    odd[20] = 0xff;
    assert_eq!(error(&signed(&odd)), "a library name is not UTF-8 text");
    // A set that is longer than its count says, and one that holds a number beyond its range.
    let set = coded(&names("x", 50)).encode();
    assert_eq!(CodedSet::decode(&[&set[..], &[0]].concat()).unwrap_err().to_string(), "it is longer than it says");
    assert_eq!(CodedSet::decode(&[&[1, 0, 0, 0], &set[4..]].concat()).unwrap_err().to_string(), "it holds too large a number");
    let twice = [&[2, 0, 0, 0, 2, 0, 0, 0][..], &[0; 6]].concat();
    assert_eq!(CodedSet::decode(&twice).unwrap_err().to_string(), "it holds one number twice");
}

#[test]
fn exact_sets_are_exact() {
    let set = NameSet::exact(["b".to_owned(), "a".to_owned(), "b".to_owned()]);
    assert_eq!((set.len(), set.contains("a"), set.contains("c")), (2, true, false));
    assert_eq!(set.names().unwrap(), ["a", "b"]);
    assert_eq!(set.digest(), NameSet::exact(["a".to_owned(), "b".to_owned()]).digest());
    assert_ne!(set.digest(), NameSet::exact(["ab".to_owned()]).digest());
    let coded = NameSet::from(CodedSet::new(["a", "b"]));
    assert_ne!(set.digest(), coded.digest());
    assert_eq!(coded.names(), None);
}

#[test]
fn names_of_the_runtime_are_told_apart() {
    for name in [
        "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev",
        "_ZNKSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv",
        "_ZNSt10filesystem7__cxx114pathC1Ev",
        "_ZSt4cout",
        "_ZTVSt9exception",
        "_ZTISt13runtime_error",
        "_ZTTSt14basic_ifstreamIcSt11char_traitsIcEE",
        "_ZGVNSt7collateIcE2idE",
        "_ZNSs4_Rep20_S_empty_rep_storageE",
        "_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EES4_",
        "_ZNSt6vectorIN2at6TensorESaIS1_EE17_M_realloc_insertIJS1_EEEvN9__gnu_cxx17__normal_iteratorIPS1_S3_EEDpOT_",
        "_ZN9__gnu_cxx13stdio_filebufIcSt11char_traitsIcEEC1Ev",
        "_ZN10__cxxabiv117__class_type_infoD1Ev",
        "_Znwm",
        "_ZdaPvmSt11align_val_t",
        "_ZTIi",
        "_ZTSPKc",
        "_ZTIDn",
        "__cxa_throw",
        "__gxx_personality_v0",
        "_Unwind_Resume",
    ] {
        assert!(is_of_runtime(name), "{name}");
    }
    for name in [
        "_ZN3c104goneEi",
        "_ZN2at6Tensor4reluEv",
        "_ZTVN5torch8autograd4NodeE",
        "_ZTIN3c105ErrorE",
        "_ZlsRSoRKN3c106DeviceE",
        "_ZN3c10lsERSoNS_10DeviceTypeE",
        "_ZN2at3getESt6vectorIiSaIiEE",
        "_ZTIPN2at6TensorE",
        "aoti_torch_empty_strided",
        "PyInit_x",
        "cudaMalloc",
        "",
    ] {
        assert!(!is_of_runtime(name), "{name}");
    }
}

#[test]
fn a_library_does_not_offer_what_it_copied_from_the_runtime() {
    let names = ["_ZN3c104goneEi", "_ZNSt10filesystem7__cxx114pathC1Ev"].map(str::to_owned);
    let library = LibraryExports { soname: "libc10.so".to_owned(), names: Arc::new(NameSet::exact(names)) };
    assert!(library.offers("_ZN3c104goneEi"));
    assert!(library.names.contains("_ZNSt10filesystem7__cxx114pathC1Ev"));
    assert!(!library.offers("_ZNSt10filesystem7__cxx114pathC1Ev"));
}
