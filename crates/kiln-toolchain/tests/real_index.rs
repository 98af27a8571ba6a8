//! One real torch, through a mirror that counts. Needs the package index that pip uses here, and fails without it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{PLATFORM, files_below};
use kiln_format::Version;
use kiln_test_server::{Log, MirrorOptions, MirrorServer};
use kiln_toolchain::{
    AgentOptions, Catalog, IndexSettings, IndexUrl, Network, ProvisionOptions, Provisioner, RetryPolicy, UreqTransport, ask_pip,
    default_index, pip_files,
};

/// Where the catalog lies; it is what the library has compiled in.
const CATALOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/catalog/torch.toml");

/// The index that pip would use here, as its address.
fn real_index() -> String {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let pip_files = pip_files(&environment);
    let ask_python = || ask_pip(Path::new("python3"));
    let settings = IndexSettings::of_machine(&environment, &pip_files, &ask_python, Path::new("/"));
    let index = default_index(&settings).unwrap();
    index.url.to_string()
}

#[test]
fn a_real_torch_costs_little_and_is_fetched_once_by_two_processes() {
    let upstream = real_index();
    // What the registry sent is kept from one run of the tests to the next.
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mirror");
    let mirror = MirrorServer::start(&upstream, &MirrorOptions { cache: Some(kept.clone()), ..MirrorOptions::default() }).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let fetch = |version: &str| {
        Command::new(env!("CARGO_BIN_EXE_kiln-toolchain-test-fetch"))
            .args([CATALOG.as_ref(), cache.as_os_str(), mirror.index().as_ref(), version.as_ref()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let said: Vec<String> = [fetch("2.13.0"), fetch("2.13.0")]
        .into_iter()
        .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    let last: Vec<&str> = said.iter().map(|text| text.lines().last().unwrap()).collect();
    assert!(last[0].starts_with("ok ") && last[0] == last[1], "{said:#?}");
    let log = mirror.log();
    assert_eq!(log.sent_twice(), Vec::<String>::new());
    // Not every index compresses its pages, as the mirror does: the bar holds for those as well.
    let page = std::fs::metadata(kept.join("torch.json")).unwrap().len();
    let bytes_of_files =
        |log: &Log| log.entries.iter().filter(|entry| entry.path.starts_with("/files/")).map(|entry| entry.bytes).sum::<u64>();
    assert!(bytes_of_files(&log) + page <= 12_000_000, "{} and {page} bytes", bytes_of_files(&log));
    assert!(log.entries.len() <= 8, "{:#?}", log.entries);
    assert!(log.bytes() - bytes_of_files(&log) < page / 2, "the page came compressed");

    let tree = Path::new(last[0].strip_prefix("ok ").unwrap());
    let headers = files_below(&tree.join("torch/include"));
    assert!(headers.len() > 9000, "{} headers", headers.len());
    assert!(headers.contains(&"torch/csrc/stable/library.h".to_owned()) && headers.contains(&"ATen/core/Tensor.h".to_owned()));
    let version_py = std::fs::read_to_string(tree.join("torch/version.py")).unwrap();
    assert!(version_py.contains("__version__ = '2.13.0+cu130'"), "{version_py}");

    // The same store in this process: complete, as it was fetched, and of use without a network.
    let catalog = Catalog::embedded().unwrap();
    let offline = || panic!("the network is not asked for what is in the store");
    let options = ProvisionOptions { cache_dir: cache.clone(), lower: Vec::new(), offline: true, retry: RetryPolicy::default() };
    let provisioner = Provisioner::new(&catalog, options.clone(), &offline, &|_| {});
    let version = Version::parse("2.13.0").unwrap();
    provisioner.verify(&version, PLATFORM).unwrap();
    let toolchain = provisioner.torch(&version, PLATFORM).unwrap();
    assert_eq!(toolchain.binding.dir, tree);
    assert!(!toolchain.exports.is_empty());
    for include in &toolchain.include_dirs {
        assert!(toolchain.binding.dir.join(&include.path).is_dir(), "{include:?}");
    }

    // Another release needs no page of the index: what was listed for the first one is remembered.
    mirror.clear_log();
    let network = || {
        let transport = Arc::new(UreqTransport::new(&AgentOptions::default())?);
        Ok(Network::new(IndexUrl::parse(&mirror.index()).unwrap(), transport))
    };
    let online = ProvisionOptions { offline: false, ..options };
    let provisioner = Provisioner::new(&catalog, online, &network, &|_| {});
    provisioner.fetch(&Version::parse("2.15.0").unwrap(), PLATFORM).unwrap();
    let log = mirror.log();
    assert_eq!(log.requests("/simple/"), 0);
    assert!(log.bytes() + page <= 12_000_000 && log.entries.len() <= 6, "{} {:#?}", log.bytes(), log.entries);
}
