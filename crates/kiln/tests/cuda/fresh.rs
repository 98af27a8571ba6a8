//! A machine that has a C++ compiler and nothing of CUDA.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kiln_test_server::ProxyServer;

use crate::support::tree;
use crate::support::{Sandbox, kiln_program, text};

/// What a first build may fetch.
const MOST: u64 = 100_000_000;

/// Toolkit, torch and all that goes with them come through a proxy that counts. That the variant loads in torch 2.12 and 2.15 without a
/// device, registers its operators and refuses tensors of the CPU as torch does is what `cargo xtask build-kernels` proves of the example.
#[test]
fn a_first_build_fetches_no_more_than_it_needs() {
    let sandbox = Sandbox::without_torch();
    let dir = sandbox.path("rms-norm");
    tree::copy_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples/rms-norm"), &dir);
    let proxy = ProxyServer::start(None).unwrap();
    // The caller's way to the index, but through the proxy. One capability is as much to fetch as all of them.
    let mut command = Command::new(kiln_program());
    command.args(["build", "--backend", "cuda", "--arch", "8.0"]).current_dir(&dir).stdin(Stdio::null());
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "PIP_PROXY"] {
        command.env(name, format!("http://{}", proxy.address()));
    }
    command.env_remove("no_proxy").env_remove("NO_PROXY").env("KILN_CACHE_DIR", sandbox.path("empty"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let variants: Vec<PathBuf> = tree::extensions(&dir.join("build")).iter().map(|path| path.parent().unwrap().to_owned()).collect();
    assert_eq!(variants, [dir.join("build/torch-stable-abi211-cu130-x86_64-linux")]);
    let received = proxy.received();
    assert!(received < MOST, "{received} bytes were fetched");
    assert!(received > 40_000_000, "the compilers came another way: {received} bytes, {:?}", proxy.tunnels());
}
