//! Selection against the vectors of the specification, and its properties.

use std::collections::BTreeSet;

use kiln_format::{BackendName, MajorMinor, Variant, Version};
use proptest::prelude::*;

use super::testing::{ARM_LINUX, LINUX, MAC, build, parse, peer};
use super::*;

const ALL: &str = "[\"cuda\", \"cpu\", \"metal\", \"rocm\", \"xpu\"]";
const COMPILED: [&str; 5] = ["cuda", "cpu", "metal", "rocm", "xpu"];
const TVM_FFI: &str = "[tvm-ffi]\nsrc = [\"b.cpp\"]\n";

/// Names on `target`, sorted, without the system's part.
fn names(kernel: &kiln_format::Build, matrix: &Matrix, target: Target) -> Vec<String> {
    let suffix = format!("-{target}");
    let mut names: Vec<String> = select(kernel, matrix, target)
        .variants
        .iter()
        .map(|v| v.variant.name())
        .map(|name| name.strip_suffix(&suffix).map_or(name.clone(), str::to_owned))
        .collect();
    names.sort();
    names
}

fn product(torch: &[&str], compute: &[&str]) -> Vec<String> {
    torch.iter().flat_map(|t| compute.iter().map(move |c| format!("{t}-{c}"))).collect()
}

fn reasons(selection: &Selection) -> Vec<(String, &'static str)> {
    selection.left_out.iter().map(|l| (l.row.as_ref().map(ToString::to_string).unwrap_or_default(), l.reason.code())).collect()
}

fn can_all(_: &Selected) -> Result<(), String> {
    Ok(())
}

#[test]
fn compliance_list_of_arch_torch() {
    let kernel = build(ALL, "[torch]\nminver = \"2.12\"\n", &COMPILED);
    let mut linux = product(&["torch212-cxx11", "torch213-cxx11"], &["cpu", "cu126", "cu130", "cu132", "rocm71", "rocm72"]);
    linux.extend(["torch212-cxx11-xpu20253".to_owned(), "torch213-cxx11-xpu20260".to_owned()]);
    linux.sort();
    assert_eq!(names(&kernel, &peer(), LINUX), linux);
    assert_eq!(names(&kernel, &peer(), ARM_LINUX), product(&["torch212-cxx11", "torch213-cxx11"], &["cpu", "cu126", "cu130", "cu132"]));
    assert_eq!(names(&kernel, &peer(), MAC), product(&["torch212", "torch213"], &["cpu", "metal"]));
    // Torch 2.11 has one row outside the default set.
    let unbound = build(ALL, "[torch]\n", &COMPILED);
    let extra: Vec<_> = select(&unbound, &peer(), LINUX).variants.into_iter().filter(|v| !v.default).map(|v| v.variant.name()).collect();
    assert_eq!(extra, ["torch211-cxx11-cpu-x86_64-linux"]);
}

#[test]
fn compliance_list_of_the_stable_abi() {
    let kernel = build(ALL, "[torch]\nstable-abi = \"2.11\"\n", &COMPILED);
    let of = |computes: &[&str]| product(&["torch-stable-abi211"], computes);
    assert_eq!(names(&kernel, &peer(), LINUX), of(&["cpu", "cu126", "cu130", "cu132", "rocm71", "rocm72", "xpu20253", "xpu20260"]));
    assert_eq!(names(&kernel, &peer(), ARM_LINUX), of(&["cpu", "cu126", "cu130", "cu132"]));
    assert_eq!(names(&kernel, &peer(), MAC), of(&["cpu", "metal"]));
    for target in [LINUX, ARM_LINUX, MAC] {
        for variant in select(&kernel, &peer(), target).variants {
            let minor = if variant.variant.name().contains("xpu20253") { 12 } else { 13 };
            assert_eq!(variant.torch().unwrap().minor, MajorMinor::new(2, minor), "{}", variant.variant);
            assert!(variant.default && variant.compliance);
        }
    }
}

#[test]
fn compliance_list_of_tvm_ffi() {
    let kernel = build(ALL, TVM_FFI, &COMPILED);
    let of = |computes: &[&str]| product(&["tvm-ffi01"], computes);
    assert_eq!(names(&kernel, &peer(), LINUX), of(&["cpu", "cu126", "cu130", "cu132", "xpu20253"]));
    assert_eq!(names(&kernel, &peer(), ARM_LINUX), of(&["cpu", "cu126", "cu130", "cu132"]));
    assert_eq!(names(&kernel, &peer(), MAC), of(&["cpu"]));
    // Two rows have CUDA 13.2: the first gives the name.
    let selection = select(&kernel, &peer(), LINUX);
    let cu132 = selection.variants.iter().find(|v| v.variant.name().contains("cu132")).unwrap();
    assert_eq!(cu132.row.as_ref().unwrap().torch, MajorMinor::new(2, 12));
    // No torch is compiled with, and of each major version of CUDA the oldest minor stands for all.
    assert!(selection.variants.iter().all(|v| v.torch().is_none()));
    let preferred: Vec<_> = selection.variants.iter().filter(|v| v.preferred).map(|v| v.variant.name()).collect();
    assert_eq!(preferred, ["cpu", "cu126", "cu130", "xpu20253"].map(|compute| format!("tvm-ffi01-{compute}-x86_64-linux")));
    assert!(reasons(&selection).contains(&("torch 2.13 cuda 13.2".into(), "same-name")));
}

#[test]
fn noarch_needs_no_row() {
    let kernel = parse(
        "[general]\nname = \"silu\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cann\", \"cuda\", \"neuron\", \"tpu\", \"cpu\"]\n[torch-noarch]\n",
    );
    let selection = select(&kernel, &peer(), LINUX);
    let names: Vec<_> = selection.variants.iter().map(|v| v.variant.name()).collect();
    // In matrix order, then those without a row in the order of the file.
    assert_eq!(names, ["torch-cpu", "torch-tpu", "torch-cuda", "torch-npu", "torch-neuron"]);
    assert_eq!(selection.variants[3].backend, BackendName::Cann);
    assert!(selection.variants.iter().all(|v| v.preferred && v.default && v.torch().is_none() && v.target.is_none()));
    let compliant: Vec<_> = selection.variants.iter().filter(|v| v.compliance).map(|v| v.backend.as_str()).collect();
    assert_eq!(compliant, ["cpu", "cuda"]);
}

#[test]
fn mixed_kernels_ship_python_for_what_they_do_not_compile() {
    let kernel = build("[\"cpu\", \"cuda\", \"neuron\"]", "[torch]\nminver = \"2.13\"\n", &["cpu"]);
    let selection = select(&kernel, &peer(), LINUX);
    assert_eq!(report::names(&selection), "torch213-cxx11-cpu-x86_64-linux\ntorch-cuda\ntorch-neuron\n");
    // Bounds that leave no row of a backend that has rows leave no noarch variant of it either.
    let kernel = build("[\"cpu\", \"cuda\", \"neuron\"]", "[torch]\n[general.cuda]\nminver = \"14.0\"\n", &["cpu"]);
    let selection = select(&kernel, &peer(), LINUX);
    assert!(!report::names(&selection).contains("cuda") && report::names(&selection).contains("torch-neuron"));
    assert!(selection.left_out.iter().any(|l| l.name.as_deref() == Some("torch-cuda") && l.reason == Reason::BoundsExcludeAll));
}

#[test]
fn each_backend_chooses_its_own_stable_abi() {
    let rest = "[torch]\nstable-abi = { metal = \"2.12\", cuda = \"2.12\", tpu = \"2.11\" }\n";
    let kernel = build("[\"xpu\", \"rocm\", \"cuda\"]", rest, &["rocm", "cuda"]);
    let selection = select(&kernel, &peer(), LINUX);
    let shown: Vec<String> = selection
        .variants
        .iter()
        .map(|v| {
            format!(
                "{} {}",
                v.variant.name().replace("-x86_64-linux", ""),
                v.torch().map_or("-".to_owned(), |torch| torch.minor.to_string())
            )
        })
        .collect();
    // The stable ones first, one a toolkit and with the newest torch; then one for each torch in matrix order; Python where nothing is compiled.
    assert_eq!(
        shown,
        [
            "torch-stable-abi212-cu126 2.13",
            "torch-stable-abi212-cu130 2.13",
            "torch-stable-abi212-cu132 2.13",
            "torch212-cxx11-rocm71 2.12",
            "torch212-cxx11-rocm72 2.12",
            "torch-xpu -",
            "torch213-cxx11-rocm71 2.13",
            "torch213-cxx11-rocm72 2.13",
        ]
    );
    // Entries for backends that are not listed change nothing, and one version for all is the table of all.
    let without = build("[\"xpu\", \"rocm\", \"cuda\"]", "[torch]\nstable-abi = { cuda = \"2.12\" }\n", &["rocm", "cuda"]);
    assert_eq!(select(&without, &peer(), LINUX), selection);
    let all = build(ALL, "[torch]\nstable-abi = \"2.11\"\n", &COMPILED);
    let table = COMPILED.map(|backend| format!("{backend} = \"2.11\"")).join(", ");
    let each = build(ALL, &format!("[torch]\nstable-abi = {{ {table} }}\n"), &COMPILED);
    assert_eq!(select(&all, &peer(), LINUX), select(&each, &peer(), LINUX));
    let old = "[general]\nname = \"relu\"\nversion = 1\nlicense = \"Apache-2.0\"\nbackends = [\"cpu\"]\n[torch]\nstable-abi = \"2.11\"\n\
               [kernel.cpu]\nbackend = \"cpu\"\ndepends = [\"torch\"]\nsrc = [\"a.cpp\"]\n";
    let new = kiln_format::build::update("build.toml", old, None).unwrap().text;
    assert_eq!(select(&parse(old), &peer(), LINUX), select(&parse(&new), &peer(), LINUX));
}

#[test]
fn bounds_are_inclusive_and_torch_is_compared_by_minor() {
    let torch = |bounds: &str| names(&build("[\"cpu\"]", &format!("[torch]\n{bounds}\n"), &["cpu"]), &peer(), LINUX);
    assert_eq!(torch("maxver = \"2.12\""), ["torch211-cxx11-cpu", "torch212-cxx11-cpu"]);
    assert_eq!(torch("minver = \"2.12.9\""), ["torch212-cxx11-cpu", "torch213-cxx11-cpu"]);
    assert_eq!(torch("minver = \"3\""), Vec::<String>::new());
    let cuda = |bounds: &str| {
        let kernel = build("[\"cuda\"]", &format!("[torch]\nminver = \"2.13\"\n[general.cuda]\n{bounds}\n"), &["cuda"]);
        names(&kernel, &peer(), LINUX).iter().map(|name| name.trim_start_matches("torch213-cxx11-").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(cuda("minver = \"13\""), ["cu130", "cu132"]);
    assert_eq!(cuda("minver = \"12.6.0\"\nmaxver = \"13.0\""), ["cu126", "cu130"]);
    assert_eq!(cuda("maxver = \"12\""), Vec::<String>::new());
    // CUDA bounds say nothing about others.
    let kernel = build("[\"rocm\", \"cpu\"]", "[torch]\nminver = \"2.13\"\n[general.cuda]\nminver = \"99.0\"\n", &["rocm", "cpu"]);
    assert_eq!(names(&kernel, &peer(), LINUX).len(), 3);
}

#[test]
fn cuda_minver_drops_the_row_only_when_no_kernel_is_left() {
    let kernels = |first: &str, second: &str| {
        let kernel = |name: &str, minver: &str| format!("[kernel.{name}]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"a.cu\"]\n{minver}\n");
        build("[\"cuda\"]", &format!("[torch]\nminver = \"2.13\"\n{}{}", kernel("a", first), kernel("b", second)), &[])
    };
    assert_eq!(names(&kernels("cuda-minver = \"13.0\"", ""), &peer(), LINUX).len(), 3);
    let selection = select(&kernels("cuda-minver = \"13.2\"", "cuda-minver = \"13.0\""), &peer(), LINUX);
    assert_eq!(report::names(&selection), "torch213-cxx11-cu130-x86_64-linux\ntorch213-cxx11-cu132-x86_64-linux\n");
    assert!(selection.left_out.iter().any(|l| l.reason == Reason::EveryKernelNeedsCuda(Version::parse("13.0").unwrap())));
}

#[test]
fn the_stable_abi_bounds_torch_and_comes_first() {
    let kernel = build("[\"rocm\", \"cuda\", \"cpu\"]", "[torch.stable-abi]\ncuda = \"2.13\"\nrocm = \"2.12\"\n", &["rocm", "cuda", "cpu"]);
    let selection = select(&kernel, &peer(), LINUX);
    let names: Vec<_> = selection.variants.iter().map(|v| v.variant.name().replace("-x86_64-linux", "")).collect();
    assert_eq!(
        names,
        [
            "torch-stable-abi213-cu126",
            "torch-stable-abi213-cu130",
            "torch-stable-abi213-cu132",
            "torch-stable-abi212-rocm71",
            "torch-stable-abi212-rocm72",
            "torch211-cxx11-cpu",
            "torch212-cxx11-cpu",
            "torch213-cxx11-cpu"
        ]
    );
    let reasons = reasons(&selection);
    assert!(reasons.contains(&("torch 2.12 cuda 13.0".into(), "stable-abi-newer")));
    assert!(reasons.contains(&("torch 2.12 rocm 7.1".into(), "newer-torch")));
}

#[test]
fn names_that_loaders_misread_are_refused() {
    let text = "schema = 1\nrevision = \"r\"\n[releases]\n\"2.13\" = \"2.13.0\"\n[[row]]\ntorch = \"2.13\"\ncompute = \"cuda\"\nversion = \"12.10\"\nsystems = [\"x86_64-linux\"]\ndefault = true\n";
    let selection = select(&build("[\"cuda\"]", "[torch]\n", &["cuda"]), &Matrix::parse("m", text).unwrap(), LINUX);
    assert_eq!(selection.variants, []);
    insta::assert_snapshot!(selection.left_out[0].reason, @"variant `torch213-cxx11-cu1210-x86_64-linux` would collide: it is meant as torch 2.13 with cuda 12.10, but loaders read it as torch 2.13 with cuda 121.0");
}

#[test]
fn every_row_is_accounted_for() {
    let matrix = Matrix::builtin().unwrap();
    for kernel in [build(ALL, "[torch]\nstable-abi = \"2.12\"\n", &["cpu", "cuda"]), build("[\"cpu\"]", TVM_FFI, &["cpu"])] {
        let selection = select(&kernel, &matrix, LINUX);
        let rows =
            selection.variants.iter().filter(|v| v.row.is_some()).count() + selection.left_out.iter().filter(|l| l.row.is_some()).count();
        assert_eq!(rows, matrix.rows.len());
    }
}

fn chosen(kernel: &kiln_format::Build, set: Set, filters: &Filters) -> Vec<String> {
    let selection = choose(kernel, &Matrix::builtin().unwrap(), LINUX, set, filters, &can_all).unwrap();
    selection
        .variants
        .iter()
        .map(|v| {
            format!("{} {}", v.variant.name().replace("-x86_64-linux", ""), v.torch().map_or(String::new(), |t| t.release.to_string()))
        })
        .collect()
}

#[test]
fn the_three_sets() {
    let stable = build("[\"cpu\", \"cuda\"]", "[torch]\nstable-abi = \"2.11\"\n", &["cpu", "cuda"]);
    let none = Filters::default();
    // One per compute major: the oldest minor, compiled with the newest torch that has it.
    assert_eq!(
        chosen(&stable, Set::Preferred, &none),
        ["torch-stable-abi211-cpu 2.15.0", "torch-stable-abi211-cu126 2.13.0", "torch-stable-abi211-cu130 2.14.1"]
    );
    assert_eq!(chosen(&stable, Set::Release, &none).len(), 4);
    assert_eq!(chosen(&stable, Set::All, &none).len(), 4);
    let torch = build("[\"cpu\", \"cuda\"]", "[torch]\n", &["cpu", "cuda"]);
    assert_eq!(chosen(&torch, Set::Preferred, &none), ["torch215-cxx11-cpu 2.15.0", "torch215-cxx11-cu132 2.15.0"]);
    let all = chosen(&torch, Set::All, &none);
    let release = chosen(&torch, Set::Release, &none);
    assert_eq!(
        all.iter().filter(|name| !release.contains(name)).collect::<Vec<_>>(),
        ["torch211-cxx11-cpu 2.11.0", "torch211-cxx11-cu130 2.11.0"]
    );
}

#[test]
fn what_this_machine_cannot_build_gives_way() {
    let kernel = build("[\"cpu\", \"cuda\"]", "[torch]\n", &["cpu", "cuda"]);
    let no_cuda_13 = |v: &Selected| match v.compute_version().map(Version::major) {
        Some(13) => Err("no nvcc 13".to_owned()),
        _ => Ok(()),
    };
    let matrix = Matrix::builtin().unwrap();
    let selection = choose(&kernel, &matrix, LINUX, Set::Preferred, &Filters::default(), &no_cuda_13).unwrap();
    assert_eq!(report::names(&selection), "torch213-cxx11-cu126-x86_64-linux\ntorch215-cxx11-cpu-x86_64-linux\n");
    let cannot = selection.left_out.iter().filter(|l| l.reason == Reason::CannotBuild("no nvcc 13".into())).count();
    assert_eq!(cannot, 7);
    // What is published does not depend on the machine.
    let release = choose(&kernel, &matrix, LINUX, Set::Release, &Filters::default(), &no_cuda_13).unwrap();
    assert_eq!(release.variants.len(), 3 + 1 + 8);
}

#[test]
fn filters_narrow_before_equal_names_are_dropped() {
    let stable = build("[\"cpu\", \"cuda\"]", "[torch]\nstable-abi = \"2.11\"\n", &["cpu", "cuda"]);
    let torch = |text: &str| Filters { torch: vec![Version::parse(text).unwrap()], ..Filters::default() };
    assert_eq!(chosen(&stable, Set::Preferred, &torch("2.11")), ["torch-stable-abi211-cpu 2.11.0", "torch-stable-abi211-cu130 2.11.0"]);
    assert_eq!(chosen(&stable, Set::All, &torch("2.12.1")).len(), 4);
    let cuda = Filters { cuda: vec![Version::parse("13.2").unwrap()], ..Filters::default() };
    assert_eq!(chosen(&stable, Set::Preferred, &cuda), ["torch-stable-abi211-cpu 2.15.0", "torch-stable-abi211-cu132 2.15.0"]);
    let cpu = Filters { backends: vec![BackendName::Cpu], ..Filters::default() };
    assert_eq!(chosen(&stable, Set::Release, &cpu), ["torch-stable-abi211-cpu 2.15.0"]);
    let kernel = build("[\"cpu\"]", "[torch]\n", &["cpu"]);
    let named = Filters { variants: vec!["torch211-*".into(), "*13-cxx??-cpu-*".into()], ..Filters::default() };
    assert_eq!(chosen(&kernel, Set::Preferred, &named), ["torch211-cxx11-cpu 2.11.0", "torch213-cxx11-cpu 2.13.0"]);
}

#[test]
fn filters_that_match_nothing_list_what_there_is() {
    let kernel = build("[\"cpu\"]", "[torch]\nminver = \"2.14\"\n", &["cpu"]);
    let v = |text: &str| vec![Version::parse(text).unwrap()];
    let errors: Vec<String> = [
        Filters { variants: vec!["torch*-cpu-*".into(), "torch9-cpu".into()], ..Filters::default() },
        Filters { backends: vec![BackendName::Cuda], ..Filters::default() },
        Filters { torch: v("2.9"), ..Filters::default() },
        Filters { torch: v("2.13.7"), ..Filters::default() },
        Filters { cuda: v("11.8"), ..Filters::default() },
    ]
    .iter()
    .map(|filters| {
        let error = choose(&kernel, &Matrix::builtin().unwrap(), LINUX, Set::All, filters, &can_all).unwrap_err();
        format!("{error}\nhint: {}", error.hint())
    })
    .collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    no variant of this kernel is called `torch9-cpu`
    hint: there is `torch214-cxx11-cpu-x86_64-linux`, `torch215-cxx11-cpu-x86_64-linux`
    this kernel has no backend `cuda`
    hint: there is `cpu`
    no row of the matrix has torch 2.9
    hint: there is `2.11`, `2.12`, `2.13`, `2.14`, `2.15`
    no row of the matrix has torch 2.13.7
    hint: there is `2.11`, `2.12`, `2.13`, `2.14`, `2.15`
    `--cuda` chooses nothing: this kernel has no variant that is compiled for CUDA
    hint: there is `cpu`
    ");
}

fn any_kernel() -> impl Strategy<Value = kiln_format::Build> {
    let backends = prop::sample::subsequence(COMPILED.to_vec(), 1..=5);
    let compiled = prop::sample::subsequence(COMPILED.to_vec(), 0..=5);
    let abi = prop::sample::select(vec![
        "",
        "stable-abi = \"2.11\"",
        "stable-abi = { cuda = \"2.12\", cpu = \"2.13\" }",
        "minver = \"2.13\"",
        "maxver = \"2.12\"",
    ]);
    (backends, compiled, abi).prop_map(|(backends, compiled, abi)| build(&format!("{backends:?}"), &format!("[torch]\n{abi}\n"), &compiled))
}

proptest! {
    #[test]
    fn names_are_unique_and_round_trip(kernel in any_kernel(), target in prop::sample::select(vec![LINUX, ARM_LINUX, MAC])) {
        let selection = select(&kernel, &Matrix::builtin().unwrap(), target);
        let names: BTreeSet<_> = selection.variants.iter().map(|v| v.variant.name()).collect();
        prop_assert_eq!(names.len(), selection.variants.len());
        for variant in &selection.variants {
            prop_assert_eq!(variant.variant.name().parse::<Variant>().unwrap(), variant.variant.clone());
            prop_assert_eq!(variant.variant.backend(), Some(variant.backend));
            prop_assert_eq!(variant.row.is_none(), variant.kind == Kind::Noarch);
        }
        // Each backend with a variant has one that is preferred.
        for variant in &selection.variants {
            prop_assert!(selection.variants.iter().any(|v| v.backend == variant.backend && v.preferred));
        }
    }

    #[test]
    fn sets_grow(kernel in any_kernel()) {
        let matrix = Matrix::builtin().unwrap();
        let names = |set| -> Vec<String> {
            choose(&kernel, &matrix, LINUX, set, &Filters::default(), &can_all).unwrap().variants.iter().map(|v| v.variant.name()).collect()
        };
        let (release, all) = (names(Set::Release), names(Set::All));
        prop_assert!(release.iter().all(|name| all.contains(name)));
        prop_assert!(names(Set::Preferred).iter().all(|name| all.contains(name)));
        prop_assert_eq!(all, select(&kernel, &matrix, LINUX).variants.iter().map(|v| v.variant.name()).collect::<Vec<_>>());
    }

    #[test]
    fn patterns(text in "[ab]{0,6}", at in 0usize..6, length in 0usize..6) {
        let start = at.min(text.len());
        let end = (start + length).min(text.len());
        let starred = format!("{}*{}", &text[..start], &text[end..]);
        prop_assert!(super::choose::matches(&starred, &text), "{starred} {text}");
        prop_assert!(super::choose::matches(&"?".repeat(text.len()), &text));
        let (longer, other) = (text.clone() + "?", "*c".to_owned() + &text);
        prop_assert!(!super::choose::matches(&longer, &text));
        prop_assert!(!super::choose::matches(&other, &text));
    }
}
