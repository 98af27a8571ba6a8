//! The model of a file: every key arrives, in the order of the file, and the questions to it are answered by the rules.
#![expect(clippy::panic, reason = "a helper that fails fails its test")]

use kiln_format::build::{Framework, KernelOptions, StableAbi};
use kiln_format::{BackendName, Build, Parsed, SourceFile, Spanned, build};

fn parse(text: &str) -> Build {
    let parsed: Parsed = build::parse("build.toml", text);
    parsed.build.unwrap_or_else(|| panic!("{}", kiln_format::render(&parsed.source, &parsed.diagnostics)))
}

fn every_key() -> Build {
    parse(include_str!("cases/ok/every-key/build.toml"))
}

fn texts<T: std::fmt::Display>(values: &[Spanned<T>]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

#[test]
fn general() {
    let build = every_key();
    let general = &build.general;
    assert_eq!((general.name.as_str(), *general.version, build.python_name().as_str()), ("every--key9", 0, "every__key9"));
    assert_eq!(general.license.as_ref().unwrap().as_str(), "MIT");
    assert_eq!(general.upstream.as_ref().unwrap().to_url(), "ssh://git@example.org/team/repo.git");
    assert_eq!(general.source.as_ref().unwrap().as_str(), "https://example.org/team/repo");
    assert_eq!(
        build.backends().collect::<Vec<_>>(),
        [BackendName::Cpu, BackendName::Cuda, BackendName::Metal, BackendName::Rocm, BackendName::Xpu]
    );
    assert_eq!((general.cuda_minver.as_ref().unwrap().as_str(), general.cuda_maxver.as_ref().unwrap().as_str()), ("12.6", "13.2"));
    assert_eq!(general.hub.repo_id.as_ref().unwrap().as_str(), "team/every-key9");
    assert_eq!(general.hub.branch.as_ref().unwrap().as_str(), "next");
    assert_eq!(build.source.slice(general.name.span), "\"every--key9\"");
}

#[test]
fn torch() {
    let build = every_key();
    let Framework::Torch(torch) = &build.framework else { panic!("not torch") };
    assert_eq!(texts(&torch.src), ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]);
    assert_eq!(
        (texts(build.framework.include()), texts(build.framework.cxx_flags())),
        (vec!["include".to_owned()], vec!["-DBINDING".to_owned()])
    );
    assert_eq!((torch.minver.as_ref().unwrap().as_str(), torch.maxver.as_ref().unwrap().as_str()), ("2.11", "2.15"));
    assert_eq!((build.ext_dir(), build.framework.table_name(), build.framework.src().len()), ("torch-ext", "torch", 2));
    assert_eq!(build.shipped_extensions(), ["py", "pyi", "json"]);
    assert_eq!(build.stable_abi_for(BackendName::Cuda).unwrap().as_str(), "2.11");
    assert_eq!(build.stable_abi_for(BackendName::Rocm).unwrap().as_str(), "2.12");
    assert!(build.stable_abi_for(BackendName::Cpu).is_none());
}

#[test]
fn kernels() {
    let build = every_key();
    assert_eq!(build.kernels.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(), ["a", "b c", "m", "x", "c"]);
    let cuda = build.kernels_for(BackendName::Cuda).next().unwrap();
    assert_eq!(
        (texts(&cuda.src), texts(&cuda.depends)),
        (vec!["cuda/a.cu".to_owned()], vec!["torch".to_owned(), "cutlass_3_6".to_owned()])
    );
    assert_eq!((texts(&cuda.include), texts(&cuda.cxx_flags)), (vec!["include".to_owned()], vec!["-DHOST".to_owned()]));
    let KernelOptions::Cuda { capabilities, flags, minver } = &cuda.options else { panic!("not cuda") };
    assert_eq!(texts(capabilities.as_ref().unwrap()), ["8.0", "9.0a", "10.0f", "12.0+PTX"]);
    assert_eq!((texts(flags), minver.as_ref().unwrap().as_str()), (vec!["--use_fast_math".to_owned()], "12.8"));
    let rocm = build.kernels_for(BackendName::Rocm).next().unwrap();
    let KernelOptions::Rocm { archs, flags } = &rocm.options else { panic!("not rocm") };
    assert_eq!(
        (texts(archs.as_ref().unwrap()), texts(flags)),
        (vec!["gfx90a".to_owned(), "gfx942".to_owned()], vec!["-ffast-math".to_owned()])
    );
    let xpu = build.kernels_for(BackendName::Xpu).next().unwrap();
    assert_eq!(xpu.options, KernelOptions::Xpu { flags: vec![Spanned::new("-DX".to_owned(), kiln_format::Span::default())] });
    assert_eq!(build.kernels_for(BackendName::Metal).next().unwrap().options, KernelOptions::Metal);
    assert_eq!(build.kernels_for(BackendName::Cpu).next().unwrap().options, KernelOptions::Cpu);
    assert_eq!(build.kernels_for(BackendName::Cann).count(), 0);
}

#[test]
fn depends_are_general_first_and_each_once() {
    let build = parse(
        r#"
        [general]
        name = "all-depends"
        version = 1
        edition = 5
        license = "MIT"
        backends = ["cuda", "neuron", "tpu", "xpu", "cann"]
        python-depends = ["tvm-ffi", "einops"]
        kernel-depends = [{ repo-id = "a/b", version = 1 }]
        cuda = { python-depends = ["nvidia-cutlass-dsl", "einops", "helion"], kernel-depends = [{ repo-id = "c/d", revision = "x" }] }
        neuron.python-depends = ["nki"]
        tpu.python-depends = ["helion"]
        xpu.python-depends = ["onednn"]
        [torch-noarch]
        pyext = ["json", "json"]
        cuda-capabilities = ["9.0"]
        [kernel]
        "#,
    );
    let names = |backend| build.python_depends_for(backend).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(names(BackendName::Cuda), "tvm-ffi einops nvidia-cutlass-dsl helion");
    assert_eq!(names(BackendName::Neuron), "tvm-ffi einops nki");
    assert_eq!(names(BackendName::Tpu), "tvm-ffi einops helion");
    assert_eq!(names(BackendName::Xpu), "tvm-ffi einops onednn");
    assert_eq!(names(BackendName::Cann), "tvm-ffi einops");
    let repos = |backend| build.kernel_depends_for(backend).iter().map(|depend| depend.repo_id.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!((repos(BackendName::Cuda), repos(BackendName::Tpu)), ("a/b c/d".to_owned(), "a/b".to_owned()));
    assert_eq!(build.shipped_extensions(), ["json", "py"]);
    assert_eq!((build.ext_dir(), build.framework.table_name()), ("torch-ext", "torch-noarch"));
    assert!(build.stable_abi_for(BackendName::Cuda).is_none());
    assert!(build.framework.src().is_empty() && build.framework.include().is_empty() && build.framework.cxx_flags().is_empty());
    let Framework::TorchNoarch(noarch) = &build.framework else { panic!("not noarch") };
    assert_eq!((texts(noarch.cuda_capabilities.as_ref().unwrap()), noarch.rocm_archs.is_none()), (vec!["9.0".to_owned()], true));
}

#[test]
fn both_spellings_of_archs() {
    let snake = parse(include_str!("cases/ok/noarch-archs/build.toml"));
    let kebab = include_str!("cases/ok/noarch-archs/build.toml")
        .replace("cuda_capabilities", "cuda-capabilities")
        .replace("rocm_archs", "rocm-archs");
    assert_eq!(parse(&kebab), snake);
}

#[test]
fn tvm_ffi() {
    let build = parse(include_str!("cases/ok/tvm-ffi/build.toml"));
    assert_eq!((build.ext_dir(), build.framework.table_name()), ("tvm-ffi-ext", "tvm-ffi"));
    assert_eq!(texts(build.framework.src()), ["tvm-ffi-ext/b.cpp"]);
    assert_eq!((texts(build.framework.include()), texts(build.framework.cxx_flags())), (vec![".".to_owned()], vec!["-O2".to_owned()]));
    assert_eq!(build.shipped_extensions(), ["py", "pyi"]);
    assert!(build.stable_abi_for(BackendName::Cpu).is_none());
}

#[test]
fn stable_abi_forms() {
    let all = parse(include_str!("cases/ok/stable-abi-string/build.toml"));
    for backend in BackendName::ALL {
        assert_eq!(all.stable_abi_for(backend).unwrap().as_str(), "2.11");
    }
    let empty = parse(include_str!("cases/ok/stable-abi-empty-table/build.toml"));
    let Framework::Torch(torch) = &empty.framework else { panic!("not torch") };
    assert_eq!(torch.stable_abi, StableAbi::None);
    let absent = parse(include_str!("cases/ok/stable-abi-absent-backend/build.toml"));
    assert!(absent.stable_abi_for(BackendName::Cpu).is_none() && absent.stable_abi_for(BackendName::Cuda).is_some());
}

/// The form of a file does not matter: inline tables, dotted keys, headers in any order, line ends, a byte order mark.
#[test]
fn spelling_does_not_matter() {
    let plain = include_str!("cases/ok/minimal/build.toml");
    assert_eq!(parse(include_str!("cases/ok/crlf-bom/build.toml")), parse(plain));
    let dotted = r#"
        kernel.k = { src = ["cpu/k.cpp"], depends = ["torch"], backend = "cpu" }
        torch.src = ["./torch-ext//torch_binding.cpp"]
        general = { name = "relu", version = 1, edition = 5, license = "Apache-2.0", backends = ["cpu"] }
    "#;
    assert_eq!(parse(dotted), parse(plain));
    assert_ne!(parse(&plain.replace("version = 1", "version = 2")), parse(plain));
}

/// A table whose header follows those of its children keeps the place of its first key.
#[test]
fn kernels_stay_in_the_order_of_the_file() {
    let text = include_str!("cases/ok/minimal/build.toml")
        .replace("[kernel.k]", "[kernel.z]\nbackend = \"cpu\"\ndepends = []\nsrc = []\n\n[kernel.k]")
        + "\n[kernel.a]\nbackend = \"cpu\"\ndepends = []\nsrc = []\n";
    assert_eq!(parse(&text).kernels.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(), ["z", "k", "a"]);
}

#[test]
fn cann_kernels() {
    let text = include_str!("cases/ok/minimal/build.toml")
        .replace("backends = [\"cpu\"]", "backends = [\"cann\"]")
        .replace("backend = \"cpu\"", "backend = \"cann\"\nnpu-archs = [\"dav-2201\"]\nasc-flags = [\"-O2\"]");
    let build = parse(&text);
    let KernelOptions::Cann { archs, flags } = &build.kernels[0].options else { panic!("not cann") };
    assert_eq!((texts(archs.as_ref().unwrap()), texts(flags)), (vec!["dav-2201".to_owned()], vec!["-O2".to_owned()]));
}

#[test]
fn a_file_knows_its_name() {
    let build = parse(include_str!("cases/ok/minimal/build.toml"));
    let source: &SourceFile = &build.source;
    assert_eq!((source.name(), source.line(2)), ("build.toml", "name = \"relu\""));
}
