//! Variant names: the vectors of the specification, and properties of every name.
#![expect(clippy::panic, reason = "a helper that fails fails its test")]

use kiln_format::variant::{
    ArchFramework, ArchVariant, Compute, Cpu, CxxAbi, EmitError, NoarchTarget, Os, Rejection, System, Variant, normalize,
};
use kiln_format::{BackendName, MajorMinor, OpsId};
use proptest::prelude::*;

fn v(major: u64, minor: u64) -> MajorMinor {
    MajorMinor::new(major, minor)
}

fn torch(version: MajorMinor) -> ArchFramework {
    ArchFramework::TorchCxx { version, abi: None }
}

fn parse(name: &str) -> Variant {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn names_of_targets() {
    let torch_of = |version: &str| torch(normalize::torch(version).unwrap());
    for (framework, compute, cpu, os, name) in [
        (torch_of("2.12.1"), Compute::Cuda(v(12, 6)), Cpu::X86_64, Os::Linux, "torch212-cxx11-cu126-x86_64-linux"),
        (torch_of("2.13.0"), Compute::Metal, Cpu::Aarch64, Os::Darwin, "torch213-metal-aarch64-darwin"),
        (torch_of("3"), Compute::Cpu, Cpu::X86_64, Os::Linux, "torch30-cxx11-cpu-x86_64-linux"),
        (
            ArchFramework::TorchStable { version: v(2, 11) },
            Compute::Cuda(v(13, 0)),
            Cpu::Aarch64,
            Os::Linux,
            "torch-stable-abi211-cu130-aarch64-linux",
        ),
        (
            ArchFramework::TvmFfi { version: normalize::first_two("0.1.9").unwrap() },
            Compute::Xpu(normalize::first_two("2025.3.2").unwrap()),
            Cpu::X86_64,
            Os::Linux,
            "tvm-ffi01-xpu20253-x86_64-linux",
        ),
        (torch(v(2, 9)), Compute::Cuda(v(12, 8)), Cpu::X86_64, Os::Windows, "torch29-cu128-x86_64-windows"),
        (torch(v(2, 13)), Compute::new(BackendName::Cann, v(8, 5)), Cpu::Aarch64, Os::Linux, "torch213-cxx11-cann85-aarch64-linux"),
        (torch(v(2, 13)), Compute::new(BackendName::Rocm, v(7, 2)), Cpu::X86_64, Os::Linux, "torch213-cxx11-rocm72-x86_64-linux"),
    ] {
        let variant = Variant::arch(framework, compute, cpu, os).unwrap();
        assert_eq!(variant.name(), name);
        assert_eq!(parse(name), variant);
        assert_eq!(variant.backend(), Some(compute.backend()));
    }
}

#[test]
fn names_of_extensions() {
    let id = OpsId::parse("_relu_cpu_1").unwrap();
    let of = |name: &str| parse(name).extension_name(&id);
    for (name, file) in [
        ("torch213-cxx11-cpu-x86_64-linux", "_relu_cpu_1.abi3.so"),
        ("torch-stable-abi211-cpu-aarch64-linux", "_relu_cpu_1.abi3.so"),
        ("torch213-metal-aarch64-darwin", "_relu_cpu_1.abi3.so"),
        ("torch29-cu128-x86_64-windows", "_relu_cpu_1.pyd"),
        ("tvm-ffi01-cpu-x86_64-linux", "_relu_cpu_1.so"),
        ("tvm-ffi01-cpu-aarch64-darwin", "_relu_cpu_1.dylib"),
        ("tvm-ffi01-cu128-x86_64-windows", "_relu_cpu_1.dll"),
    ] {
        assert_eq!(of(name).as_deref(), Some(file), "{name}");
    }
    assert_eq!(of("torch-cpu"), None);
}

#[test]
fn every_name_of_the_compliance_list() {
    let of = |torch: &str, computes: &[&str], system: &str| -> Vec<String> {
        computes.iter().map(|compute| format!("{torch}-{compute}-{system}")).collect()
    };
    let mut names = Vec::new();
    for torch in ["torch212-cxx11", "torch213-cxx11"] {
        names.extend(of(torch, &["cpu", "cu126", "cu130", "cu132", "rocm71", "rocm72"], "x86_64-linux"));
        names.extend(of(torch, &["cpu", "cu126", "cu130", "cu132"], "aarch64-linux"));
    }
    names.extend(of("torch212-cxx11", &["xpu20253"], "x86_64-linux"));
    names.extend(of("torch213-cxx11", &["xpu20260"], "x86_64-linux"));
    for torch in ["torch212", "torch213", "torch-stable-abi211"] {
        names.extend(of(torch, &["cpu", "metal"], "aarch64-darwin"));
    }
    names.extend(of(
        "torch-stable-abi211",
        &["cpu", "cu126", "cu130", "cu132", "rocm71", "rocm72", "xpu20253", "xpu20260"],
        "x86_64-linux",
    ));
    names.extend(of("tvm-ffi01", &["cpu", "cu126", "cu130", "cu132", "xpu20253"], "x86_64-linux"));
    names.extend(["cpu", "cuda", "metal", "rocm", "xpu"].map(|backend| format!("torch-{backend}")));
    for name in names {
        let variant = parse(&name);
        assert_eq!(variant.to_string(), name);
        assert_eq!(variant.check_emittable(), Ok(()));
    }
}

#[test]
fn noarch_names() {
    for backend in BackendName::ALL {
        let variant = Variant::noarch(backend);
        assert_eq!(parse(&variant.name()), variant);
        assert_eq!(variant.check_emittable(), Ok(()));
        assert_eq!(variant.backend(), Some(backend));
    }
    assert_eq!(Variant::noarch(BackendName::Cann).name(), "torch-npu");
    let universal = parse("torch-universal");
    assert_eq!((universal.clone(), universal.backend()), (Variant::Noarch(NoarchTarget::Universal), None));
    assert!(matches!(universal.check_emittable(), Err(EmitError::ReadOnly { .. })));
}

#[test]
fn digit_splits() {
    let version = |name: &str| match parse(name) {
        Variant::Arch(ArchVariant { framework, compute, .. }) => (framework, compute),
        Variant::Noarch(_) => panic!("{name}"),
    };
    assert_eq!(version("tvm-ffi110-cpu-x86_64-linux").0, ArchFramework::TvmFfi { version: v(1, 10) });
    assert_eq!(version("torch213-cxx11-cu1210-x86_64-linux").1, Compute::Cuda(v(121, 0)));
    assert_eq!(version("torch213-cxx98-xpu20253-x86_64-linux").1, Compute::Xpu(v(2025, 3)));
    assert_eq!(version("torch213-cxx98-cpu-x86_64-linux").0, ArchFramework::TorchCxx { version: v(2, 13), abi: Some(CxxAbi::Cxx98) });
    assert_eq!(version("torch213-cpu-x86_64-linux").0, torch(v(2, 13)));
}

#[test]
fn names_that_are_refused() {
    let said: Vec<String> = [
        "torch213-cxx11-foo-x86_64-linux",
        "torch213-cxx11-rocm72-x86_64",
        "triton-cuda",
        "",
        "torch",
        "torch-cann",
        "torch2-cpu-x86_64-linux",
        "torch-stable-abi2-cpu-x86_64-linux",
        "torch-stable-abi-cpu-x86_64-linux",
        "tvm-ffi-cpu-x86_64-linux",
        "torch213-cxx14-cpu-x86_64-linux",
        "torch213-cxx11-cu1-x86_64-linux",
        "torch213-cxx11-cu99999999999999999999990-x86_64-linux",
        "torch213-cxx11-cpu-amd64-linux",
        "torch213-cxx11-cpu-x86_64-Linux",
        "torch213-cxx11-cpu-x86_64-linux-gnu",
        "torch203-cxx11-cpu-x86_64-linux",
        "torch213-cxx11-cu0126-x86_64-linux",
        "torch２13-cpu-x86_64-linux",
        "torch213-cxx11-cpu-x86_64-linux\n",
    ]
    .iter()
    .map(|name| name.parse::<Variant>().unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    `torch213-cxx11-foo-x86_64-linux` is not a variant name: `foo` is no compute part such as `cpu` or `cu130`
    `torch213-cxx11-rocm72-x86_64` is not a variant name: compute, processor and operating system must follow the framework, but 2 parts do
    `triton-cuda` is not a variant name: it starts with neither `torch` nor `tvm-ffi`
    `` is not a variant name: it starts with neither `torch` nor `tvm-ffi`
    `torch` is not a variant name: `` is no backend of a Python-only variant
    `torch-cann` is not a variant name: `cann` is no backend of a Python-only variant
    `torch2-cpu-x86_64-linux` is not a variant name: it has no torch version such as `torch213`
    `torch-stable-abi2-cpu-x86_64-linux` is not a variant name: it has no stable ABI version such as `abi211`
    `torch-stable-abi-cpu-x86_64-linux` is not a variant name: it has no stable ABI version such as `abi211`
    `tvm-ffi-cpu-x86_64-linux` is not a variant name: it has no tvm-ffi version such as `ffi01`
    `torch213-cxx14-cpu-x86_64-linux` is not a variant name: compute, processor and operating system must follow the framework, but 4 parts do
    `torch213-cxx11-cu1-x86_64-linux` is not a variant name: `cu1` is no compute part such as `cpu` or `cu130`
    `torch213-cxx11-cu99999999999999999999990-x86_64-linux` is not a variant name: `cu99999999999999999999990` is no compute part such as `cpu` or `cu130`
    `torch213-cxx11-cpu-amd64-linux` is not a variant name: `amd64` is no processor part such as `x86_64`
    `torch213-cxx11-cpu-x86_64-Linux` is not a variant name: `Linux` is no operating system part such as `linux`
    `torch213-cxx11-cpu-x86_64-linux-gnu` is not a variant name: compute, processor and operating system must follow the framework, but 4 parts do
    `torch203-cxx11-cpu-x86_64-linux` is not a variant name: its versions are those of `torch23-cxx11-cpu-x86_64-linux`
    `torch213-cxx11-cu0126-x86_64-linux` is not a variant name: its versions are those of `torch213-cxx11-cu126-x86_64-linux`
    `torch２13-cpu-x86_64-linux` is not a variant name: it has no torch version such as `torch213`
    `torch213-cxx11-cpu-x86_64-linux\n` is not a variant name: `linux\n` is no operating system part such as `linux`
    ");
}

#[test]
fn names_that_are_never_written() {
    let linux = |framework, compute| Variant::arch(framework, compute, Cpu::X86_64, Os::Linux).unwrap_err().to_string();
    let said = [
        linux(torch(v(2, 13)), Compute::Cuda(v(12, 10))),
        linux(torch(v(2, 13)), Compute::Rocm(v(7, 10))),
        linux(torch(v(10, 0)), Compute::Cpu),
        linux(ArchFramework::TorchStable { version: v(10, 2) }, Compute::Cpu),
        linux(ArchFramework::TvmFfi { version: v(11, 0) }, Compute::Cuda(v(13, 10))),
        parse("torch213-cpu-x86_64-linux").check_emittable().unwrap_err().to_string(),
        parse("torch213-cxx98-cpu-x86_64-linux").check_emittable().unwrap_err().to_string(),
        parse("torch213-cxx11-cpu-aarch64-darwin").check_emittable().unwrap_err().to_string(),
        parse("torch-universal").check_emittable().unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(said.join("\n"), @"
    variant `torch213-cxx11-cu1210-x86_64-linux` would collide: it is meant as torch 2.13 with cuda 12.10, but loaders read it as torch 2.13 with cuda 121.0
    variant `torch213-cxx11-rocm710-x86_64-linux` would collide: it is meant as torch 2.13 with rocm 7.10, but loaders read it as torch 2.13 with rocm 71.0
    variant `torch100-cxx11-cpu-x86_64-linux` would collide: it is meant as torch 10.0, but loaders read it as torch 1.0
    variant `torch-stable-abi102-cpu-x86_64-linux` would collide: it is meant as torch's stable ABI 10.2, but loaders read it as torch's stable ABI 1.2
    variant `tvm-ffi110-cu1310-x86_64-linux` would collide: it is meant as tvm-ffi 11.0 with cuda 13.10, but loaders read it as tvm-ffi 1.10 with cuda 131.0
    variant `torch213-cpu-x86_64-linux` is only read, never written: names for torch's C++ ABI have `-cxx11` on Linux and no tag elsewhere
    variant `torch213-cxx98-cpu-x86_64-linux` is only read, never written: names for torch's C++ ABI have `-cxx11` on Linux and no tag elsewhere
    variant `torch213-cxx11-cpu-aarch64-darwin` is only read, never written: names for torch's C++ ABI have `-cxx11` on Linux and no tag elsewhere
    variant `torch-universal` is only read, never written: every backend has its own variant
    ");
}

#[test]
fn normalisation() {
    assert_eq!(normalize::torch("2.13.0+cu130"), Ok(v(2, 13)));
    assert_eq!(normalize::torch("2.14.0a0+git1234"), Ok(v(2, 14)));
    assert!(normalize::torch("nightly").is_err());
    assert_eq!(normalize::rocm("7.2.53150-676d00dad9"), Ok(v(7, 2)));
    assert!(normalize::rocm("").is_err());
    assert_eq!(normalize::first_two("13.0.88"), Ok(v(13, 0)));
    assert_eq!(normalize::xpu_compiler("Intel(R) oneAPI DPC++/C++ Compiler 2025.3.2 (2025.3.2.20260112)"), Some(v(2025, 3)));
    assert_eq!(normalize::xpu_compiler("version 2025. Released."), None);
    assert_eq!(normalize::xpu_torch("20250302"), Some(v(2025, 3)));
    assert_eq!(normalize::xpu_torch("20260000"), Some(v(2026, 0)));
    assert_eq!(normalize::xpu_torch("2025"), None);
    assert_eq!(normalize::xpu_torch("2025é302"), None);
    for (machine, cpu) in [("x86_64", Some(Cpu::X86_64)), ("AMD64", Some(Cpu::X86_64)), ("arm64", Some(Cpu::Aarch64)), ("i686", None)] {
        assert_eq!(normalize::cpu(machine), cpu);
    }
    for (system, os) in [("Linux", Some(Os::Linux)), ("Darwin", Some(Os::Darwin)), ("Windows", Some(Os::Windows)), ("FreeBSD", None)] {
        assert_eq!(normalize::os(system), os);
    }
}

fn linux_cuda() -> System {
    System {
        cpu: Cpu::X86_64,
        os: Os::Linux,
        compute: Compute::Cuda(v(12, 6)),
        torch: Some(v(2, 12)),
        cxx_abi: Some(CxxAbi::Cxx11),
        tvm_ffi: Some(v(0, 1)),
        macos: None,
        python: v(3, 12),
        free_threaded: false,
    }
}

#[test]
fn order_of_preference() {
    let expected: Vec<Variant> = [
        "torch-stable-abi211-cu126-x86_64-linux",
        "torch-stable-abi210-cu126-x86_64-linux",
        "torch212-cu126-x86_64-linux",
        "torch212-cxx11-cu126-x86_64-linux",
        "torch212-cxx11-cu120-x86_64-linux",
        "tvm-ffi01-cu126-x86_64-linux",
        "torch-cuda",
        "torch-universal",
    ]
    .map(parse)
    .to_vec();
    let rejected = [
        ("torch-stable-abi213-cu126-x86_64-linux", Rejection::Torch),
        ("torch212-cxx11-cu128-x86_64-linux", Rejection::Compute),
        ("torch212-cxx11-cu118-x86_64-linux", Rejection::Compute),
        ("torch212-cxx98-cu126-x86_64-linux", Rejection::CxxAbi),
        ("torch213-cxx11-cu126-x86_64-linux", Rejection::Torch),
        ("tvm-ffi02-cu126-x86_64-linux", Rejection::TvmFfi),
        ("torch212-cxx11-cu126-aarch64-linux", Rejection::Cpu),
        ("torch212-cu126-x86_64-windows", Rejection::Os),
        ("torch212-cxx11-cpu-x86_64-linux", Rejection::Compute),
        ("torch-rocm", Rejection::Compute),
    ];
    let system = linux_cuda();
    for (name, reason) in rejected {
        assert_eq!(system.accepts(&parse(name)), Err(reason), "{name}");
        assert!(!reason.to_string().is_empty());
    }
    let mut given: Vec<Variant> = rejected.iter().map(|(name, _)| parse(name)).collect();
    given.extend(expected.iter().rev().cloned());
    assert_eq!(system.select(&given), expected.iter().collect::<Vec<_>>());
}

#[test]
fn equals_keep_the_given_order() {
    let pair = ["tvm-ffi01-cu120-x86_64-linux", "torch-cuda"].map(parse);
    assert_eq!(pair[0].preference(), pair[1].preference());
    assert_eq!(linux_cuda().select(&pair), pair.iter().collect::<Vec<_>>());
    assert_eq!(linux_cuda().select(pair.iter().rev()), pair.iter().rev().collect::<Vec<_>>());
}

#[test]
fn other_devices() {
    let rocm = System { compute: Compute::Rocm(v(7, 2)), ..linux_cuda() };
    let variants = ["torch212-cxx11-rocm71-x86_64-linux", "torch212-cxx11-rocm72-x86_64-linux"].map(parse);
    assert_eq!(rocm.select(&variants), [&variants[1]]);

    let mac = System { os: Os::Darwin, cpu: Cpu::Aarch64, compute: Compute::Metal, cxx_abi: None, macos: Some(v(15, 5)), ..linux_cuda() };
    let metal = parse("torch212-metal-aarch64-darwin");
    assert_eq!(mac.accepts(&metal), Err(Rejection::Macos));
    assert_eq!(mac.accepts(&parse("torch-metal")), Ok(()));
    assert_eq!(mac.accepts(&parse("torch212-cxx11-metal-aarch64-darwin")), Err(Rejection::CxxAbi));
    assert_eq!(System { macos: Some(v(26, 0)), ..mac }.accepts(&metal), Ok(()));

    let npu = System { compute: Compute::Cann(v(8, 5)), ..linux_cuda() };
    assert_eq!(npu.accepts(&parse("torch-npu")), Ok(()));
    assert_eq!(npu.accepts(&parse("torch212-cxx11-cann85-x86_64-linux")), Ok(()));
    assert_eq!(npu.accepts(&parse("torch212-cxx11-cann84-x86_64-linux")), Err(Rejection::Compute));
}

#[test]
fn interpreters_and_missing_torch() {
    let stable = parse("torch-stable-abi211-cu126-x86_64-linux");
    assert_eq!(System { torch: None, ..linux_cuda() }.accepts(&stable), Err(Rejection::Torch));
    let free = System { free_threaded: true, python: v(3, 14), ..linux_cuda() };
    assert_eq!(free.accepts(&stable), Err(Rejection::FreeThreaded));
    assert_eq!(free.accepts(&parse("torch-cuda")), Ok(()));
    assert_eq!(System { python: v(3, 15), ..free }.accepts(&stable), Ok(()));
}

fn any_version() -> impl Strategy<Value = MajorMinor> {
    (0u64..3000, 0u64..40).prop_map(|(major, minor)| v(major, minor))
}

fn any_compute() -> impl Strategy<Value = Compute> {
    (prop::sample::select(BackendName::ALL.to_vec()), any_version()).prop_map(|(backend, version)| Compute::new(backend, version))
}

fn any_framework() -> impl Strategy<Value = ArchFramework> {
    let abi = prop::sample::select(vec![None, Some(CxxAbi::Cxx11), Some(CxxAbi::Cxx98)]);
    (0..3, 0u64..12, 0u64..120, abi).prop_map(|(kind, major, minor, abi)| match kind {
        0 => ArchFramework::TorchCxx { version: v(major, minor), abi },
        1 => ArchFramework::TorchStable { version: v(major, minor) },
        _ => ArchFramework::TvmFfi { version: v(major, minor) },
    })
}

fn any_variant() -> impl Strategy<Value = Variant> {
    let cpu = prop::sample::select(vec![Cpu::Aarch64, Cpu::X86_64]);
    let os = prop::sample::select(vec![Os::Darwin, Os::Linux, Os::Windows]);
    let arch = (any_framework(), any_compute(), cpu, os)
        .prop_map(|(framework, compute, cpu, os)| Variant::Arch(ArchVariant { framework, compute, cpu, os }));
    let noarch = prop::sample::select(BackendName::ALL.to_vec()).prop_map(Variant::noarch);
    prop_oneof![8 => arch, 1 => noarch, 1 => Just(Variant::Noarch(NoarchTarget::Universal))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What Kiln may write is read back as what was meant; what it may not write would have been misread, or is an old form.
    #[test]
    fn round_trip(variant in any_variant()) {
        let name = variant.to_string();
        match variant.check_emittable() {
            Ok(()) => prop_assert_eq!(name.parse::<Variant>(), Ok(variant)),
            Err(EmitError::ReadOnly { .. }) => prop_assert_eq!(name.parse::<Variant>(), Ok(variant)),
            Err(EmitError::Collision { .. } | EmitError::Unreadable { .. }) => prop_assert_ne!(name.parse::<Variant>(), Ok(variant)),
        }
    }

    /// Whatever is read is printed as it was written.
    #[test]
    fn names_are_kept(name in "(torch|torch-stable-abi|tvm-ffi)[0-9]{1,4}(-cxx11|-cxx98)?-(cpu|metal|cu|rocm|xpu|cann)[0-9]{0,6}-(x86_64|aarch64)-(linux|darwin|windows)") {
        if let Ok(variant) = name.parse::<Variant>() {
            prop_assert_eq!(variant.to_string(), name);
        }
    }

    /// The constructor gives only names that may be written, and never changes what it was asked for but the tag.
    #[test]
    fn constructor(framework in any_framework(), compute in any_compute()) {
        for os in [Os::Darwin, Os::Linux, Os::Windows] {
            if let Ok(variant) = Variant::arch(framework, compute, Cpu::X86_64, os) {
                prop_assert_eq!(variant.check_emittable(), Ok(()));
                let Variant::Arch(arch) = variant else { panic!("not an arch variant") };
                prop_assert_eq!((arch.compute, arch.os), (compute, os));
            }
        }
    }

    /// Preference is a total order that puts accepted variants of the stable ABI first.
    #[test]
    fn stable_first(a in any_variant(), b in any_variant()) {
        let stable = |variant: &Variant| matches!(variant, Variant::Arch(ArchVariant { framework: ArchFramework::TorchStable { .. }, .. }));
        if stable(&a) && !stable(&b) {
            prop_assert!(a.preference() < b.preference());
        }
    }
}
