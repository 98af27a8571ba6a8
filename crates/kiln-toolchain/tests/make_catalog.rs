//! Catalog entries from small wheels whose libraries g++ made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_test_server::{Member, WheelBuilder};
use kiln_toolchain::make_catalog::{make_release, render_torch};
use kiln_toolchain::{Catalog, decode_names};

struct Place {
    dir: tempfile::TempDir,
}

const FILE: &str = "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl";

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("scratch")).unwrap();
        Self { dir }
    }

    fn library(&self, soname: &str, source: &str) -> Vec<u8> {
        let dir = self.dir.path();
        std::fs::write(dir.join("in.cpp"), source).unwrap();
        let args = ["-shared", "-fPIC", &format!("-Wl,-soname,{soname}"), "in.cpp", "-o", "out.so"];
        let output = Command::new("g++").args(args).current_dir(dir).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(dir.join("out.so")).unwrap()
    }

    /// A wheel with everything that a catalog entry is made from.
    fn sound(&self) -> WheelBuilder {
        let c10 = "#include <string>\nnamespace c10 { int present(int) { return 1; } }\n\
                   namespace std { int invented() { return 2; } }";
        WheelBuilder::new("torch", "2.13.0+cu130")
            .file("torch/version.py", "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n")
            .file("torch/lib/libtorch_cpu.so", self.library("libtorch_cpu.so", "namespace at { int relu() { return 1; } }"))
            .member(Member::stored("torch/lib/libc10.so", self.library("libc10.so", c10)))
            .file("torch/lib/libtorch_python.so", "not read")
            .file(
                "torch-2.13.0+cu130.dist-info/METADATA",
                "Name: torch\nLicense: UNKNOWN\nLicense-Expression: MIT\n\nLicense: of the text\n",
            )
    }

    fn save(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn scratch(&self) -> PathBuf {
        self.dir.path().join("scratch")
    }

    fn error(&self, path: &Path) -> String {
        let text = make_release(path, &self.scratch()).unwrap_err().to_string();
        assert_eq!(std::fs::read_dir(self.scratch()).unwrap().count(), 0);
        text
    }
}

#[test]
fn an_entry_says_what_the_wheel_is() {
    let place = Place::new();
    let wheel = place.sound().build();
    let release = make_release(&place.save(FILE, &wheel.bytes), &place.scratch()).unwrap();
    assert_eq!(std::fs::read_dir(place.scratch()).unwrap().count(), 0, "nothing is left behind");
    let pinned = &release.release;
    assert_eq!((pinned.version.as_str(), pinned.platform.as_str(), pinned.wheel.file.as_str()), ("2.13.0", "linux-x86_64", FILE));
    assert_eq!((pinned.wheel.size, &pinned.wheel.sha256), (wheel.bytes.len() as u64, &wheel.sha256));
    assert_eq!(pinned.wheel.record_sha256, wheel.record_sha256);
    assert_eq!((pinned.cuda.as_ref().unwrap().as_str(), pinned.license.as_str()), ("13.0", "MIT"));
    assert_eq!(pinned.names, "torch-2.13.0-linux-x86_64.names");
    // In link order, whatever the wheel's. What belongs to `std` is left out.
    assert_eq!(release.libraries, [("libc10.so".to_owned(), 1), ("libtorch_cpu.so".to_owned(), 1)]);
    let libraries = decode_names(&release.names_file).unwrap();
    assert!(libraries[0].offers("_ZN3c107presentEi"));
    assert!(!libraries[0].names.contains("_ZSt8inventedv"));
    assert!(libraries[1].offers("_ZN2at4reluEv"));
}

#[test]
fn the_catalog_reads_what_is_rendered() {
    let place = Place::new();
    let wheel = place.sound().build();
    let new = make_release(&place.save(FILE, &wheel.bytes), &place.scratch()).unwrap();
    let old = WheelBuilder::new("torch", "2.9.1")
        .file("torch/version.py", "__version__ = '2.9.1+cpu'\ncuda = None\n")
        .file("torch/lib/libc10.so", place.library("libc10.so", ""))
        .file("torch-2.9.1.dist-info/METADATA", "Name: torch\nLicense: BSD-3-Clause\n")
        .build();
    let old = make_release(&place.save("torch-2.9.1-cp311-cp311-manylinux_2_28_aarch64.whl", &old.bytes), &place.scratch()).unwrap();
    let text = render_torch(&[new.release.clone(), old.release]);
    let catalog = Catalog::parse(&text).unwrap();
    let shown: Vec<String> =
        catalog.releases().iter().map(|release| format!("{} {} {}", release.version, release.platform, release.cxx_level)).collect();
    assert_eq!(shown, ["2.9.1 linux-aarch64 gnu++17", "2.13.0 linux-x86_64 gnu++20"]);
    assert_eq!(catalog.releases()[0].cuda, None);
    assert_eq!(catalog.releases()[1], new.release);
}

#[test]
fn wheels_that_are_not_sound_are_refused() {
    let place = Place::new();
    let error = |builder: WheelBuilder| place.error(&place.save(FILE, &builder.build().bytes));
    let version_py = || Member::new("torch/version.py", "__version__ = '2.13.0'\n");
    let bare = || WheelBuilder::new("torch", "2.13.0");
    let torch = || bare().file("torch-2.13.0.dist-info/METADATA", "Name: torch\nVersion: 2.13.0\nLicense: MIT\n");

    insta::assert_snapshot!(place.error(Path::new("torch-2.13.0-py3-none-any.whl")), @"no catalog entry can be made of `torch-2.13.0-py3-none-any.whl`: it is not for a known platform");
    insta::assert_snapshot!(place.error(&place.save(FILE, b"text")), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: it is no zip file, or its end is missing");
    insta::assert_snapshot!(error(torch().without_record()), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: it does not have just one RECORD");
    insta::assert_snapshot!(error(torch()), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: it has no `torch/version.py`");
    insta::assert_snapshot!(error(torch().member(version_py())), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: it has no library to link with");
    insta::assert_snapshot!(error(torch().member(Member { crc32: Some(1), ..version_py() })), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: `torch/version.py` is damaged");
    insta::assert_snapshot!(error(torch().member(Member { recorded_as: Some(b"other".to_vec()), ..version_py() })), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: `torch/version.py` is not what RECORD says");
    insta::assert_snapshot!(error(torch().member(Member { recorded: false, ..version_py() })), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: RECORD does not have `torch/version.py`");
    insta::assert_snapshot!(error(bare().member(version_py()).file("torch/lib/libc10.so", place.library("libc10.so", ""))), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: it has no `torch-2.13.0.dist-info/METADATA`");
    insta::assert_snapshot!(error(torch().member(version_py()).file("torch/lib/libc10.so", "text")), @"no catalog entry can be made of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl`: `torch/lib/libc10.so`: not a shared library");
    let empty = torch().without_record().member(version_py()).file("torch-2.13.0.dist-info/RECORD", "");
    assert!(error(empty).ends_with("RECORD does not have `torch-2.13.0.dist-info/METADATA`"));
    let missing = place.error(&place.dir.path().join("torch-1-py3-none-manylinux_2_28_x86_64.whl"));
    assert!(missing.contains("No such file"), "{missing}");
}
