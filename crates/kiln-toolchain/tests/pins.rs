//! Releases that the catalog does not have: read once, pinned, and then as good as any; and looking after the store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::files_below;
use kiln_format::Version;
use kiln_format::lock::Lock;
use kiln_test_server::{Fault, FixtureServer, Member, Target, Wheel, WheelBuilder, noise};
use kiln_toolchain::{AgentOptions, Catalog, Error, IndexUrl, Network, ProvisionOptions, Provisioner, RetryPolicy, UreqTransport};

const PLATFORM: &str = "linux-x86_64";

/// A shared library that exports `int c10::present()` and another function for each release.
fn library(soname: &str, version: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("in.cpp"),
        format!("namespace c10 {{ int present() {{ return 1; }} int of_{}() {{ return 2; }} }}", version.replace('.', "_")),
    )
    .unwrap();
    let args = ["-shared", "-fPIC", &format!("-Wl,-soname,{soname}"), "in.cpp", "-o", "out.so"];
    let output = Command::new("g++").args(args).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(dir.path().join("out.so")).unwrap()
}

fn torch(version: &str) -> Wheel {
    let built = WheelBuilder::new("torch", version)
        .file("torch/version.py", format!("__version__ = '{version}+cu130'\ncuda: Optional[str] = '13.0'\n"))
        .file("torch/include/a.h", format!("// {version}"))
        .member(Member::stored("torch/include/noise.h", noise(7, 20_000)))
        .member(Member::stored("torch/lib/libc10.so", library("libc10.so", version)))
        .file(&format!("torch-{version}.dist-info/METADATA"), "Name: torch\nLicense-Expression: BSD-3-Clause\n")
        .build();
    Wheel { file: format!("torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"), ..built }
}

struct Bench {
    server: FixtureServer,
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(wheels: &[&Wheel]) -> Self {
        let server = FixtureServer::start().unwrap();
        for wheel in wheels {
            server.add("torch", wheel);
        }
        Self { server, dir: tempfile::tempdir().unwrap() }
    }

    /// Does something with what `lock` pins, and the cache directory called `cache`.
    fn with<T>(&self, lock: &Lock, cache: &str, offline: bool, act: impl FnOnce(&Provisioner<'_>) -> T) -> T {
        let network = || {
            let transport = Arc::new(UreqTransport::new(&AgentOptions::default())?);
            Ok(Network::new(IndexUrl::parse(&self.server.index()).unwrap(), transport))
        };
        let retry = RetryPolicy { attempts: 2, ..RetryPolicy::default() };
        let options = ProvisionOptions { cache_dir: self.dir.path().join(cache), lower: Vec::new(), offline, retry };
        act(&Provisioner::new(&Catalog::default().with_locked(lock), options, &network, &|_| {}))
    }

    fn pin(&self, version: &str) -> Result<Lock, Error> {
        let mut lock = Lock::default();
        let pinned = self.with(&lock, "cache", false, |p| p.pin_torch(&parsed(version), None, PLATFORM))?;
        assert!(pinned.vouched);
        lock.add(pinned.locked);
        Ok(lock)
    }

    fn trees(&self) -> std::path::PathBuf {
        self.dir.path().join("cache/toolchains-v1/trees")
    }

    fn assert_clean(&self) {
        for dir in ["trees", "work", "names"] {
            assert_eq!(files_below(&self.dir.path().join("cache/toolchains-v1").join(dir)), Vec::<String>::new(), "{dir}");
        }
    }
}

fn parsed(version: &str) -> Version {
    Version::parse(version).unwrap()
}

#[test]
fn a_pinned_release_is_as_good_as_one_of_the_catalog() {
    let wheel = torch("2.12.0");
    let bench = Bench::new(&[&wheel]);
    let lock = bench.pin("2.12.0").unwrap();
    let torch = &lock.torch()[0];
    assert_eq!((&torch.sha256, &torch.record_sha256, torch.size), (&wheel.sha256, &wheel.record_sha256, wheel.bytes.len() as u64));
    assert_eq!((torch.cuda.as_ref().unwrap().as_str(), torch.license.as_str()), ("13.0", "BSD-3-Clause"));
    assert_eq!(bench.server.log().sent_twice(), Vec::<String>::new());

    // Without the network, and from the text of the file.
    let lock = Lock::parse(&lock.render()).unwrap();
    bench.server.clear_log();
    let toolchain = bench.with(&lock, "cache", true, |p| p.torch(&parsed("2.12.0"), PLATFORM)).unwrap();
    assert!(toolchain.exports[0].offers("_ZN3c107presentEv") && !toolchain.exports[0].offers("_ZN3c104goneEv"));
    assert_eq!(std::fs::read_to_string(toolchain.binding.dir.join("torch/include/a.h")).unwrap(), "// 2.12.0");
    assert_eq!(bench.server.log().entries.len(), 0);

    // On another machine nothing but the lock is there: offline it is told, online the names are made again.
    let error = bench.with(&lock, "other", true, |p| p.torch(&parsed("2.12.0"), PLATFORM)).unwrap_err();
    insta::assert_snapshot!(format!("{error}; {}", error.hint().unwrap()), @"torch 2.12.0 (linux-x86_64) is not in the store, and `--offline` forbids to fetch it; run `kiln toolchain fetch torch==2.12.0` while online");
    let again = bench.with(&lock, "other", false, |p| p.torch(&parsed("2.12.0"), PLATFORM)).unwrap();
    assert_eq!((again.identity, &again.exports), (toolchain.identity, &toolchain.exports));
}

#[test]
fn what_an_index_does_not_offer_cannot_be_pinned() {
    let bench = Bench::new(&[&torch("2.12.0")]);
    assert!(matches!(bench.pin("2.12.7").unwrap_err(), Error::NoWheel { .. }));
    bench.assert_clean();
}

#[test]
fn a_wheel_that_is_not_what_the_index_says_is_refused() {
    let wheel = torch("2.12.0");
    let bench = Bench::new(&[&wheel]);
    // In a header, in a library, in RECORD, in the directory.
    let places = [
        wheel.data_start("torch/include/noise.h") + 9,
        wheel.data_start("torch/lib/libc10.so") + 1000,
        wheel.data_start("torch-2.12.0.dist-info/RECORD") + 7,
        wheel.bytes.len() as u64 - 60,
    ];
    for place in places {
        bench.server.heal();
        bench.server.fault(Target::Files, Fault::Corrupt(place));
        let error = bench.pin("2.12.0").unwrap_err();
        assert!(matches!(&error, Error::Unvouched { file, .. } if *file == wheel.file), "{place}: {error}");
        bench.assert_clean();
    }
}

/// The lock with its only pin changed.
fn with_change(sound: &Lock, change: &dyn Fn(&mut kiln_format::lock::LockedTorch)) -> Lock {
    let mut torch = sound.torch()[0].clone();
    change(&mut torch);
    let mut lock = Lock::default();
    lock.add(torch);
    lock
}

#[test]
fn a_lock_that_was_changed_by_hand_is_refused() {
    let wheel = torch("2.12.0");
    let bench = Bench::new(&[&wheel]);
    let sound = bench.pin("2.12.0").unwrap();
    let changed = |change: &dyn Fn(&mut kiln_format::lock::LockedTorch)| {
        let lock = with_change(&sound, change);
        std::fs::remove_dir_all(bench.dir.path().join("cache")).unwrap();
        let error = bench.with(&lock, "cache", false, |p| p.torch(&parsed("2.12.0"), PLATFORM)).unwrap_err();
        assert_eq!(files_below(&bench.trees()), Vec::<String>::new(), "{error}");
        error
    };
    let other = || "0".repeat(64);
    assert!(matches!(changed(&|torch| torch.sha256 = other()), Error::ListedOtherwise { .. }));
    assert!(matches!(changed(&|torch| torch.record_sha256 = other()), Error::LockDiffers { .. }));
    assert!(matches!(changed(&|torch| torch.names_sha256 = other()), Error::LockDiffers { .. }));
    assert!(matches!(changed(&|torch| torch.size += 1), Error::LockDiffers { .. }));
    // What the wheel says of itself.
    let differs = |change: &dyn Fn(&mut kiln_format::lock::LockedTorch)| changed(change).to_string();
    let said = "the lock file is damaged: what it pins for torch 2.12.0 (linux-x86_64) is not what the wheel gives: ";
    assert_eq!(differs(&|torch| torch.cuda = Version::parse("12.8").ok()), format!("{said}`cuda`"));
    assert_eq!(differs(&|torch| torch.cuda = None), format!("{said}`cuda`"));
    assert_eq!(differs(&|torch| torch.cxx = "gnu++17".to_owned()), format!("{said}`cxx`"));
    assert_eq!(differs(&|torch| torch.license = "Evil".to_owned()), format!("{said}`license`"));
}

/// The store has all of the release: what the lock says of it is compared with that.
#[test]
fn a_lock_that_was_changed_later_is_refused() {
    let bench = Bench::new(&[&torch("2.12.0")]);
    let sound = bench.pin("2.12.0").unwrap();
    let changed = |change: &dyn Fn(&mut kiln_format::lock::LockedTorch)| {
        let lock = with_change(&sound, change);
        let version = lock.torch()[0].version.clone();
        let provided = bench.with(&lock, "cache", true, |p| p.torch(&version, PLATFORM));
        let cpu = kiln_format::variant::Compute::Cpu;
        let asked = bench.with(&lock, "cache", true, |p| p.would_provide_torch(&version, cpu, PLATFORM));
        let (provided, asked) = (provided.unwrap_err(), asked.unwrap_err());
        assert_eq!(provided.to_string(), asked.to_string());
        assert!(matches!(&provided, Error::LockDiffers { .. }), "{provided}");
        provided.to_string().rsplit_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(changed(&|torch| torch.cuda = Version::parse("12.8").ok()), "`cuda`");
    assert_eq!(changed(&|torch| torch.cuda = None), "`cuda`");
    assert_eq!(changed(&|torch| torch.cxx = "gnu++17".to_owned()), "`cxx`");
    assert_eq!(changed(&|torch| torch.license = "Evil".to_owned()), "`license`");
    bench.with(&sound, "cache", true, |p| p.torch(&parsed("2.12.0"), PLATFORM)).unwrap();
}

#[test]
fn a_wheel_whose_metadata_is_that_of_another_one_cannot_be_pinned() {
    for metadata in ["Name: torch\nVersion: 2.11.0\n", "Name: tortch\nVersion: 2.12.0\n"] {
        let built = WheelBuilder::new("torch", "2.12.0")
            .file("torch/version.py", "__version__ = '2.12.0+cu130'\ncuda: Optional[str] = '13.0'\n")
            .member(Member::stored("torch/lib/libc10.so", library("libc10.so", "2.12.0")))
            .file("torch-2.12.0.dist-info/METADATA", format!("{metadata}License-Expression: BSD-3-Clause\n"))
            .build();
        let bench = Bench::new(&[&Wheel { file: "torch-2.12.0-cp311-cp311-manylinux_2_28_x86_64.whl".to_owned(), ..built }]);
        let error = bench.pin("2.12.0").unwrap_err();
        assert!(matches!(error, Error::Make(_)) && error.to_string().contains("its METADATA is that of "), "{error}");
        bench.assert_clean();
    }
}

#[test]
fn offers_are_the_releases_of_the_index() {
    let bench = Bench::new(&[&torch("2.12.0"), &torch("2.12.3")]);
    let offered = bench.with(&Lock::default(), "cache", false, |p| p.offered_torch(PLATFORM)).unwrap();
    assert_eq!(offered.iter().map(|offer| offer.version.as_str()).collect::<Vec<_>>(), ["2.12.0", "2.12.3"]);
    assert_eq!(bench.with(&Lock::default(), "cache", false, |p| p.offered_torch("darwin-aarch64")).unwrap(), []);
}

/// Puts a file in the place of a read-only one.
fn replace(path: &Path, content: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn damage_is_named_and_repaired() {
    let bench = Bench::new(&[&torch("2.12.0")]);
    let lock = bench.pin("2.12.0").unwrap();
    let dir = bench.with(&lock, "cache", true, |p| p.fetch(&parsed("2.12.0"), PLATFORM)).unwrap();
    let verify = |repair| {
        let found = bench.with(&lock, "cache", false, |p| p.verify_all(repair)).unwrap();
        found.into_iter().map(|entry| format!("{} {}", entry.reason, entry.repaired)).collect::<Vec<_>>()
    };
    assert_eq!(verify(false), Vec::<String>::new());
    replace(&dir.join("torch/include/a.h"), b"// 2.12.1");
    let names = bench.dir.path().join("cache/toolchains-v1/names").join(&lock.torch()[0].names_sha256);
    replace(&names, b"none");
    assert_eq!(verify(false), ["`torch/include/a.h` was changed false", "it was changed false"]);
    assert_eq!(verify(true), ["`torch/include/a.h` was changed true", "it was changed true"]);
    assert_eq!(verify(false), Vec::<String>::new());
    assert_eq!(std::fs::read_to_string(dir.join("torch/include/a.h")).unwrap(), "// 2.12.0");
    // What a tree was made of can be damaged too: the catalog knows.
    replace(&dir.parent().unwrap().join("tree.json"), b"{}");
    assert_eq!(verify(true).len(), 1);
    assert_eq!(verify(false), Vec::<String>::new());
    assert!(dir.join("torch/include/a.h").exists());
}

#[test]
fn only_what_nobody_needs_is_collected() {
    let bench = Bench::new(&[&torch("2.12.0"), &torch("2.12.3")]);
    let (first, second) = (bench.pin("2.12.0").unwrap(), bench.pin("2.12.3").unwrap());
    let both = || files_below(&bench.trees()).iter().filter(|file| file.ends_with("a.h")).count();
    let collect =
        |texts: &[String], locks: &[Lock], dry_run| bench.with(&first, "cache", true, |p| p.collect(texts, locks, dry_run)).unwrap();
    // What locks name stays.
    let collected = collect(&[], &[first.clone(), second.clone()], false);
    assert_eq!((collected.removed.len(), collected.kept, both()), (0, 2, 2));
    // What a record names stays; the names of the other release go with it. Nothing goes in a dry run.
    let id = bench.with(&second, "cache", true, |p| p.torch(&parsed("2.12.3"), PLATFORM)).unwrap().identity;
    let collected = collect(&[format!("\"identity\": \"{id}\"")], std::slice::from_ref(&second), true);
    assert_eq!((collected.removed.len(), collected.kept, both()), (2, 1, 2));
    assert!(collected.freed() > 20_000, "{collected:?}");
    // What is in use stays, whether or not anything names it.
    let used = bench.with(&first, "cache", true, |p| {
        p.fetch(&parsed("2.12.0"), PLATFORM).unwrap();
        collect(&[], std::slice::from_ref(&second), false)
    });
    assert_eq!((used.in_use.len(), both()), (1, 2));
    let collected = collect(&[], std::slice::from_ref(&second), false);
    assert_eq!((collected.in_use.len(), collected.removed.len(), both()), (0, 1, 1));
    // What a killed process left goes; what another one is making stays.
    let work = bench.dir.path().join("cache/toolchains-v1/work");
    std::fs::create_dir_all(work.join("killed")).unwrap();
    std::fs::create_dir_all(work.join("busy")).unwrap();
    let busy = std::fs::File::create(bench.dir.path().join("cache/toolchains-v1/locks/busy")).unwrap();
    busy.lock().unwrap();
    assert_eq!(collect(&[], std::slice::from_ref(&second), false).removed.len(), 1);
    assert!(!work.join("killed").exists() && work.join("busy").exists());
    drop(busy);
    assert_eq!(collect(&[], &[], false).kept, 0);
    assert_eq!(both(), 0);
}
