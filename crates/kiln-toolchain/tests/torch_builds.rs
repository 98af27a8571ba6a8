//! Builds of one torch release: which of them a variant takes, and whether the headers of one may stand in for those of another.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{Bench, PLATFORM, version};
use kiln_format::MajorMinor;
use kiln_format::variant::Compute;
use kiln_test_server::{FixtureServer, Member, Wheel, WheelBuilder, noise};
use kiln_toolchain::{Error, TorchToolchain};

const CUDA_12_6: Compute = Compute::Cuda(MajorMinor { major: 12, minor: 6 });

/// A torch for CUDA 12.6 or 13.0: the headers that are generated differ, and `others` besides.
fn torch(local: &str, others: &[(&str, &str)]) -> Wheel {
    let suffix = if local.is_empty() { String::new() } else { format!("+{local}") };
    let full = if local.is_empty() { "2.13.0+cu130".to_owned() } else { format!("2.13.0{suffix}") };
    let mut wheel = WheelBuilder::new("torch", &format!("2.13.0{suffix}"))
        .file("torch/version.py", format!("__version__ = '{full}'\ncuda: Optional[str] = '13.0'\n"))
        .file("torch/include/ATen/cuda/CUDAConfig.h", format!("// {full}"))
        .file("torch/include/ATen/ATen.h", "#pragma once\n")
        .file("torch/include/c10/core/Device.h", "#pragma once\n// device\n");
    for (name, text) in others {
        wheel = wheel.file(name, *text);
    }
    let built = wheel.member(Member::stored("torch/lib/libtorch_cuda.so", noise(3, 3_000_000))).build();
    Wheel { file: format!("torch-2.13.0{suffix}-cp311-cp311-manylinux_2_28_x86_64.whl"), ..built }
}

/// The build of the package index, and an index with this build beside it.
fn bench(other: Option<&Wheel>) -> (Bench, FixtureServer) {
    let mut bench = Bench::with(torch("", &[]));
    let server = FixtureServer::start().unwrap();
    if let Some(wheel) = other {
        server.add("torch", wheel);
    }
    bench.torch_index = Some(server.index());
    (bench, server)
}

fn for_cuda(bench: &Bench) -> Result<TorchToolchain, Error> {
    bench.provision(|provisioner| provisioner.torch_for(&version(), CUDA_12_6, PLATFORM, true))
}

#[test]
fn headers_stand_in_where_only_generated_ones_differ() {
    let wheel = torch("cu126", &[]);
    let (mut bench, server) = bench(Some(&wheel));
    let toolchain = for_cuda(&bench).unwrap();
    let stand_in = toolchain.stand_in.clone().unwrap();
    let compared = stand_in.compared.clone().unwrap();
    assert_eq!((stand_in.build.as_str(), &compared.wheel, &compared.record_sha256), ("cu126", &wheel.file, &wheel.record_sha256));
    assert_eq!((compared.same, compared.generated.as_slice()), (2, &["ATen/cuda/CUDAConfig.h".to_owned()][..]));
    // A few ranges of the other wheel, not its libraries.
    let log = server.log();
    let bytes: u64 = log.entries.iter().map(|entry| entry.bytes).sum();
    assert!(bytes < 200_000 && log.entries.len() <= 5, "{bytes} {:?}", log.entries);
    // What was found is known from now on, without a network and to a plan.
    server.clear_log();
    bench.offline = true;
    assert_eq!(for_cuda(&bench).unwrap().stand_in.as_ref(), Some(&stand_in));
    let planned = bench.provision(|provisioner| provisioner.torch_for(&version(), CUDA_12_6, PLATFORM, false)).unwrap();
    assert_eq!((planned.stand_in.as_ref(), &planned.identity), (Some(&stand_in), &toolchain.identity));
    assert!(server.log().entries.is_empty());
    // The processor's variants, and those for the CUDA that it was built with, have it for their own.
    for compute in [Compute::Cpu, Compute::Cuda(MajorMinor { major: 13, minor: 0 })] {
        let own = bench.provision(|provisioner| provisioner.torch_for(&version(), compute, PLATFORM, true)).unwrap();
        assert_eq!((own.stand_in, own.identity), (None, toolchain.identity.clone()));
    }
}

#[test]
fn an_index_that_speaks_html_and_one_without_ranges() {
    for ranges in [true, false] {
        let wheel = torch("cu126", &[]);
        let (bench, server) = bench(Some(&wheel));
        server.html_only();
        if !ranges {
            server.fault(kiln_test_server::Target::Files, kiln_test_server::Fault::NoRanges);
        }
        let compared = for_cuda(&bench).unwrap().stand_in.unwrap().compared.unwrap();
        assert_eq!(compared.record_sha256, wheel.record_sha256);
        assert_eq!(common::files_below(&bench.cache().join("toolchains-v1/work")), Vec::<String>::new());
    }
}

#[test]
fn headers_that_differ_do_not_stand_in() {
    let changed = torch("cu126", &[("torch/include/ATen/New.h", "// only here"), ("torch/include/c10/core/Stream.h", "x")]);
    let (mut bench, _server) = bench(Some(&changed));
    let said = bench.shown(&for_cuda(&bench).unwrap_err());
    insta::assert_snapshot!(said, @"
    error: the headers of `torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl` cannot stand in for those of torch 2.13.0+cu126: 2 differ, such as `ATen/New.h`, `c10/core/Stream.h`
    hint: pin the build itself with `kiln toolchain add torch==2.13.0+cu126`
    ");
    // Nor do they later.
    bench.offline = true;
    assert_eq!(bench.shown(&for_cuda(&bench).unwrap_err()), said);
}

/// Each index has its own answer: a wrong one spoils no right one, and a right one vouches for no other.
#[test]
fn an_answer_is_that_of_its_index() {
    let right = torch("cu126", &[]);
    let wrong = torch("cu126", &[("torch/include/ATen/New.h", "// only here")]);
    let (mut bench, good_server) = bench(Some(&right));
    let bad_server = FixtureServer::start().unwrap();
    bad_server.add("torch", &wrong);
    let (good, bad) = (Some(good_server.index()), Some(bad_server.index()));
    let compared =
        |bench: &Bench| for_cuda(bench).map(|toolchain| toolchain.stand_in.unwrap().compared.map(|compared| compared.record_sha256));
    let refused = |bench: &Bench| assert!(matches!(for_cuda(bench), Err(Error::HeadersDiffer { .. })));

    bench.torch_index = bad.clone();
    refused(&bench);
    // Without an index nothing is known of the right build.
    bench.torch_index = None;
    assert_eq!(compared(&bench).unwrap(), None);
    bench.torch_index = good.clone();
    assert_eq!(compared(&bench).unwrap(), Some(right.record_sha256.clone()));
    bench.torch_index = bad;
    refused(&bench);
    bench.offline = true;
    refused(&bench);
    // What was found to be the same counts where no index is named, too.
    for index in [good, None] {
        bench.torch_index = index;
        assert_eq!(compared(&bench).unwrap(), Some(right.record_sha256.clone()));
    }
    // An index that is corrected is asked again.
    bench.offline = false;
    bad_server.remove(&wrong.file);
    bad_server.add("torch", &right);
    bench.torch_index = Some(bad_server.index());
    assert_eq!(compared(&bench).unwrap(), Some(right.record_sha256.clone()));
}

#[test]
fn what_cannot_be_compared_is_told() {
    let uncompared = |bench: &Bench| {
        let stand_in = for_cuda(bench).unwrap().stand_in.unwrap();
        assert_eq!((stand_in.build.as_str(), stand_in.compared), ("cu126", None));
    };
    // An index that has another build only, one that has none, and no index.
    let (mut bench, server) = bench(Some(&torch("cu128", &[])));
    uncompared(&bench);
    server.remove(&torch("cu128", &[]).file);
    uncompared(&bench);
    bench.torch_index = None;
    uncompared(&bench);
    // Nothing of that is kept: an index that has the build counts as soon as there is one.
    server.add("torch", &torch("cu126", &[]));
    bench.torch_index = Some(server.index());
    assert!(for_cuda(&bench).unwrap().stand_in.unwrap().compared.is_some());
}
