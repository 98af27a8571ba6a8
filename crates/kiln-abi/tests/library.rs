//! Torch's own library of 440 MB: clean in the library profile, and read no further than its tables.
//!
//! The only test of its program, since it measures what the process reads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kiln_abi::{Expectation, Origins, Policies, Profile, PythonVersion, Report, check_file};

/// The libraries of the test environment's torch.
fn libraries() -> PathBuf {
    let env = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join("torch-2.13.0/lib");
    let pythons = std::fs::read_dir(&env).unwrap_or_else(|cause| panic!("`{}`: {cause}: run `cargo xtask setup`", env.display()));
    let python = pythons.map(|entry| entry.unwrap().path()).find(|path| path.join("site-packages/torch").is_dir());
    python.unwrap_or_else(|| panic!("no torch below `{}`: run `cargo xtask setup`", env.display())).join("site-packages/torch/lib")
}

/// Bytes that this process has read so far.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn torch_itself_is_clean_and_is_not_read_whole() {
    let policies = Policies::embedded().unwrap();
    let allowed = BTreeSet::new();
    let origins = Origins::default();
    let check = |name: &str, profile: Profile| {
        let expected = Expectation {
            profile,
            floor: policies.get("manylinux_2_28").ok(),
            framework: None,
            compute: None,
            platform: None,
            id: None,
            python: PythonVersion::FLOOR,
            macos: None,
            allowed_libraries: &allowed,
            known_names: &|_, _| None,
            origins: &origins,
            host_paths: &[],
            own: false,
        };
        let mut report = Report::default();
        check_file(&libraries().join(name), name, &expected, &mut report);
        report
    };
    let size = std::fs::metadata(libraries().join("libtorch_cpu.so")).unwrap().len();
    let before = bytes_read();
    let report = check("libtorch_cpu.so", Profile::Library);
    let read = bytes_read() - before;
    assert_eq!(
        (report.files.as_slice(), report.findings.as_slice(), report.failures.as_slice()),
        (["libtorch_cpu.so".to_owned()].as_slice(), [].as_slice(), [].as_slice())
    );
    assert!(size > 400_000_000 && read < size / 10, "{read} of {size} bytes");
    for name in ["libc10.so", "libtorch.so", "libc10_cuda.so", "libtorch_cuda.so"] {
        let report = check(name, Profile::Library);
        assert!(report.findings.is_empty() && report.failures.is_empty(), "{name}: {report:?}");
    }
    // As an extension it would be refused: the profile is what makes the difference.
    let rules: Vec<&str> = check("libc10.so", Profile::Extension).rules().into_iter().map(kiln_abi::Rule::code).collect();
    assert!(rules.contains(&"run-path") && rules.contains(&"exports"), "{rules:?}");
}
