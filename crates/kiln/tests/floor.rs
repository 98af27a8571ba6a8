//! Extensions on the floor: programs that use much of the C and C++ libraries, built by Kiln, judged by the checkers of others, and run
//! inside a real torch, or by tvm-ffi.
//!
//! With `KILN_TEST_FLOOR=full` in the environment every compiler, linker, level of optimisation and language level is tried, as `cargo
//! xtask test --full` does; with a part of a setting's name, which ends with what the programs stand behind (`clang++-19 lld`, `tvm_ffi`),
//! those settings only.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::project::{BINDING, ProjectBuilder};
use support::started::real_program;
use support::{Run, Sandbox, tree};

/// What the programs stand behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    /// Torch's stable ABI.
    Stable,
    /// Torch's C++ ABI.
    Classic,
    /// tvm-ffi.
    TvmFfi,
}

impl Binding {
    const ALL: &'static [Self] = &[Self::Stable, Self::Classic, Self::TvmFfi];
    const LEAST: &'static [Self] = &[Self::Stable, Self::TvmFfi];

    fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Classic => "classic",
            Self::TvmFfi => "tvm_ffi",
        }
    }

    /// The table of `build.toml`, which is also the beginning of the name of the Python package's directory.
    fn table(self) -> &'static str {
        if self == Self::TvmFfi { "tvm-ffi" } else { "torch" }
    }
}

/// How the programs are built.
#[derive(Clone, Debug, Default)]
struct Setting {
    /// What they stand behind: one after the other in one project, so that what knows nothing of torch is compiled once.
    bindings: Vec<Binding>,
    /// What `--cxx` says; the usual compiler without it.
    cxx: Option<String>,
    /// Flags of every unit.
    flags: Vec<&'static str>,
    /// Whether the compiler makes code for the OpenMP library that torch brings.
    openmp: bool,
}

impl Setting {
    fn write(&self, dir: &Path, binding: Binding) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/floor");
        for name in [
            "plain/programs.h",
            "plain/library.cpp",
            "plain/threads.cpp",
            "plain/parallel.cpp",
            "stable/binding.cpp",
            "classic/binding.cpp",
            "tvm_ffi/binding.cpp",
        ] {
            support::project::write(dir, name, &fs::read_to_string(from.join(name)).unwrap());
        }
        let table = binding.table();
        support::project::write(dir, &format!("{table}-ext/floor_programs/__init__.py"), "from ._ops import ops\n");
        let (kind, stable) = (binding.as_str(), if binding == Binding::Stable { "stable-abi = { cpu = \"2.11\" }" } else { "" });
        let flags = &self.flags;
        // Nobody brings an OpenMP library for kernels of tvm-ffi.
        let openmp = self.openmp && binding != Binding::TvmFfi;
        let parallel: Vec<&str> = flags.iter().copied().chain(openmp.then_some("-fopenmp")).collect();
        let text = format!(
            "[general]\nname = \"floor-programs\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"cpu\"]\n\n\
             [{table}]\nsrc = [\"{kind}/binding.cpp\"]\ninclude = [\"plain\"]\ncxx-flags = {flags:?}\n{stable}\n\n\
             [kernel.library]\nbackend = \"cpu\"\ndepends = []\ncxx-flags = {flags:?}\n\
             src = [\"plain/library.cpp\", \"plain/threads.cpp\", \"plain/programs.h\"]\n\n\
             [kernel.parallel]\nbackend = \"cpu\"\ndepends = []\ncxx-flags = {parallel:?}\n\
             src = [\"plain/parallel.cpp\", \"plain/programs.h\"]\n"
        );
        support::project::write(dir, "build.toml", &text);
    }

    /// Builds the programs; gives the extension and what the build said.
    fn build(&self, sandbox: &Sandbox, dir: &Path, binding: Binding) -> (PathBuf, Run) {
        self.write(dir, binding);
        let mut args = vec!["-j2", "--unique-id", "1"];
        if binding == Binding::Classic {
            args.extend(["--torch", "2.13"]);
        }
        if let Some(cxx) = &self.cxx {
            args.extend(["--cxx", cxx]);
        }
        let out = dir.join(binding.as_str());
        let out_arg = out.display().to_string();
        args.extend(["--out", &out_arg]);
        let run = sandbox.build(dir, &args);
        let extensions = tree::extensions(&out);
        assert_eq!(extensions.len(), 1);
        let record: Value = serde_json::from_slice(&fs::read(out.join("kiln-build.json")).unwrap()).unwrap();
        let variant = record["variants"].as_object().unwrap().values().next().unwrap();
        assert_eq!(variant["floor"]["policy"], "manylinux_2_28");
        (extensions[0].clone(), run)
    }

    /// Builds the programs and tries them in torch.
    fn try_out(&self, sandbox: &Sandbox, name: &str) -> Vec<PathBuf> {
        let dir = sandbox.path(name);
        self.bindings.iter().map(|binding| self.try_binding(sandbox, &dir, *binding)).collect()
    }

    fn try_binding(&self, sandbox: &Sandbox, dir: &Path, binding: Binding) -> PathBuf {
        let (extension, run) = self.build(sandbox, dir, binding);
        // Linkers have nothing to say; clang tells at each compile that it has no use for the linker's name.
        for message in run.reason("step-finished").iter().filter(|message| message["verb"] == "Linking") {
            assert_eq!(message["output"], "", "{self:?}: {message}");
        }
        for remark in run.messages() {
            assert!(!["check", "warning"].contains(&remark["reason"].as_str().unwrap()), "{self:?}: {remark}");
        }
        // Only the entry points are seen by others, and nothing is one for the whole process.
        let exports = kiln_object::elf::dynamic_file(&extension).unwrap().exports;
        let entry = format!("PyInit_{}", extension.file_name().unwrap().to_str().unwrap().split('.').next().unwrap());
        let entries: Vec<String> = match binding {
            Binding::TvmFfi => FUNCTIONS.iter().map(|name| format!("__tvm_ffi_{name}")).collect(),
            _ => vec![entry],
        };
        let mut seen: Vec<_> = exports.iter().map(|export| (export.name.as_str(), export.binding)).collect();
        seen.sort_unstable_by_key(|(name, _)| *name);
        let wanted: Vec<_> = entries.iter().map(|name| (name.as_str(), kiln_object::elf::Binding::Global)).collect();
        assert_eq!(seen, wanted, "{self:?}");

        let work = dir.join(format!("work of {}", binding.as_str()));
        fs::create_dir(&work).unwrap();
        let script = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name);
        let run = |mut command: Command, well: &str| {
            let run = Run::of(command.env("HOME", sandbox.path("home")));
            assert_eq!(run.code, Some(0), "{self:?}: {}\n{}", run.stdout, run.stderr);
            assert!(run.stdout.contains(well), "{}", run.stdout);
        };
        if binding != Binding::TvmFfi {
            let mut command = Command::new(environment("torch-2.13.0"));
            command.arg("-B").arg(script("floor_programs.py")).arg(&extension).arg(work).arg(binding.as_str());
            run(command, "all well in torch 2.13.0");
            return extension;
        }
        for (release, well) in [("tvm-ffi-oldest", "all well in tvm-ffi 0.1.9"), ("tvm-ffi-newest", "all well in tvm-ffi 0.1.")] {
            let python = environment("base");
            let packages = python.ancestors().nth(3).unwrap().join(release);
            assert!(packages.exists(), "`{}` is missing: `cargo xtask setup` makes it", packages.display());
            let mut command = Command::new(python);
            command.arg("-B").arg(script("floor_programs_tvm_ffi.py")).arg(&extension).arg(&work).env("PYTHONPATH", packages);
            run(command, well);
        }
        extension
    }
}

/// The functions of the programs behind tvm-ffi, sorted.
const FUNCTIONS: [&str; 12] =
    ["caught", "echo", "errors", "files", "futures", "numbers", "parallel_sum", "relu", "text", "threads", "throws", "uncaught"];

/// The interpreter of an environment that `cargo xtask setup` makes.
fn environment(name: &str) -> PathBuf {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join(name).join("bin/python");
    assert!(python.exists(), "`{}` is missing: `cargo xtask setup` makes it", python.display());
    python
}

/// Asks auditwheel, kernel-abi-check and abi3audit about the extensions; all must be content.
fn judge_by_others(extensions: &[PathBuf]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-abi/tests/python/oracles.py");
    let run = Run::of(Command::new(environment("oracles")).arg("-B").arg(script).args(extensions));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 3 * extensions.len());
    for line in lines {
        assert!(line.ends_with("\tok"), "{line}");
    }
}

/// The settings of this run, each with a name: two compilers with two linkers each, or every one there is.
fn settings(sandbox: &Sandbox) -> Vec<(String, Setting)> {
    let wanted = std::env::var("KILN_TEST_FLOOR").ok();
    let linkers = sandbox.path("linkers");
    fs::create_dir(&linkers).unwrap();
    let (compilers, all): (&[&str], &[&str]) = match wanted {
        None => (&["g++-12", "clang++-19"], &["bfd", "lld"]),
        Some(_) => (&["g++-11", "g++-12", "clang++-19"], &["bfd", "lld", "mold", "gold"]),
    };
    for linker in all {
        // gcc looks for linkers by their plain names.
        let names: &[&str] = if *linker == "lld" { &["ld.lld", "ld.lld-19"] } else { &[&format!("ld.{linker}")] };
        let real = names.iter().find_map(|name| real_program(name)).unwrap_or_else(|| missing(linker));
        std::os::unix::fs::symlink(real, linkers.join(format!("ld.{linker}"))).unwrap();
    }
    let mut settings = Vec::new();
    for compiler in compilers {
        let path = real_program(compiler).unwrap_or_else(|| missing(compiler));
        let mut add = |name: String, linker: &str, bindings: &[Binding], flags: &[&'static str]| {
            let cxx = Some(format!("{} -B{} -fuse-ld={linker}", path.display(), linkers.display()));
            let openmp = compiler.starts_with('g');
            settings.push((format!("{compiler} {name}"), Setting { bindings: bindings.to_vec(), cxx, flags: flags.to_vec(), openmp }));
        };
        for linker in all {
            add((*linker).to_owned(), linker, Binding::ALL, &[]);
        }
        if wanted.is_none() {
            continue;
        }
        for flag in LEVELS.iter().chain(&LANGUAGES) {
            add((*flag).to_owned(), "bfd", Binding::LEAST, &[flag]);
        }
        add("not inline".to_owned(), "bfd", Binding::LEAST, &["-O1", "-fno-inline"]);
        add("hardened".to_owned(), "lld", Binding::ALL, &[&["-O2"][..], &HARDENED].concat());
    }
    if let Some(wanted) = wanted.filter(|wanted| wanted != "full") {
        for (name, setting) in &mut settings {
            setting.bindings.retain(|binding| format!("{name} {}", binding.as_str()).contains(&wanted));
        }
        settings.retain(|(_, setting)| !setting.bindings.is_empty());
        assert!(!settings.is_empty(), "no setting is called `{wanted}`");
    }
    settings
}

fn missing(program: &str) -> ! {
    panic!("`{program}` is missing: `cargo xtask setup --full` installs it")
}

const LEVELS: [&str; 5] = ["-O0", "-Os", "-O1", "-O2", "-O3"];
const LANGUAGES: [&str; 2] = ["-std=c++17", "-std=c++20"];
const HARDENED: [&str; 6] = [
    "-D_GLIBCXX_ASSERTIONS",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=3",
    "-fstack-protector-strong",
    "-fcf-protection",
    "-fstack-clash-protection",
];

/// Exceptions in both directions, texts, locales, regular expressions, files, threads, futures, OpenMP.
#[test]
fn programs_run_in_torch_and_keep_to_the_floor() {
    let sandbox = Sandbox::new();
    let extensions: Vec<PathBuf> = settings(&sandbox).iter().flat_map(|(name, setting)| setting.try_out(&sandbox, name)).collect();
    judge_by_others(&extensions);
}

/// A newer floor than the usual one: kept to, recorded, known to the checks, and no release.
#[test]
fn a_newer_floor_is_kept_to_and_no_release() {
    let sandbox = Sandbox::new();
    let plain = "#include <dlfcn.h>\n#include <cmath>\nint tiny_plain() { return dlsym(nullptr, \"x\") != nullptr; }\n\
        double power(double x) { return std::pow(x, x); }\n";
    let call = "int tiny_plain();\n__attribute__((constructor)) static void call() { if (tiny_plain() > 1) __builtin_trap(); }\n";
    let project = ProjectBuilder::new().torch("stable-abi = { cpu = \"2.11\" }").file("binding.cpp", &format!("{BINDING}{call}"));
    let project = project.file("plain.cpp", plain).kernel("plain", &[], &["plain.cpp"], "");
    let dir = project.file("kiln.toml", "[build]\nfloor = \"manylinux_2_34\"\n").write(&sandbox.path("p"));
    let run = sandbox.run(&dir, &["build", "--release"]);
    assert_eq!(run.code, Some(1));
    let told = "a release keeps to `manylinux_2_28`, and `floor` in `kiln.toml` is `manylinux_2_34`";
    assert!(run.stderr.contains(told), "{}", run.stderr);

    let run = sandbox.build(&dir, &["-j2", "--unique-id", "1"]);
    assert_eq!((run.reason("check"), run.reason("warning")), (vec![], vec![]));
    let record: Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let variant = record["variants"].as_object().unwrap().values().next().unwrap();
    assert_eq!(variant["floor"]["policy"], "manylinux_2_34");
    assert_eq!(variant["floor"]["GLIBC"], "2.34");
    let check = sandbox.run(&dir, &["check"]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);
    // It is what was asked for: more than the usual floor has, and no more than its own.
    let check = sandbox.run(&dir, &["check", "--manylinux", "manylinux_2_28"]);
    assert!(check.code == Some(1) && check.stderr.contains("error[floor-version]"), "{}", check.stderr);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-abi/tests/python/oracles.py");
    let run = Run::of(Command::new(environment("oracles")).arg("-B").arg(script).args(tree::extensions(&dir.join("build"))));
    assert!(run.stdout.contains("auditwheel\tmanylinux_2_34"), "{}", run.stdout);
}

/// What the floor is for: an extension for this system only is refused by others.
#[test]
fn a_build_for_the_host_is_recorded_and_no_release() {
    let sandbox = Sandbox::new();
    let dir = support::project::usual().file("kiln.toml", "[build]\nfloor = \"host\"\n").write(&sandbox.path("p"));
    let run = sandbox.run(&dir, &["build", "--release"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.contains("error[configuration]: a release keeps to `manylinux_2_28`, and `floor` in `kiln.toml` is `host`"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("hint: remove `floor` from `[build]`, or build without `--release`"), "{}", run.stderr);

    sandbox.build(&dir, &["--unique-id", "1"]);
    let record: Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let variant = record["variants"].as_object().unwrap().values().next().unwrap();
    assert_eq!(variant["floor"], serde_json::json!({"policy": "host"}));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-abi/tests/python/oracles.py");
    let run = Run::of(Command::new(environment("oracles")).arg("-B").arg(script).args(tree::extensions(&dir.join("build"))));
    assert!(run.stdout.contains("auditwheel\tmanylinux_2_") || run.stdout.contains("auditwheel\tlinux"), "{}", run.stdout);
}

/// All projects of a user share one floor, and none is made twice.
#[test]
fn a_floor_is_made_once() {
    let sandbox = Sandbox::without_torch();
    fs::create_dir_all(sandbox.cache()).unwrap();
    std::os::unix::fs::symlink(support::shared_cache().join("toolchains-v1"), sandbox.cache().join("toolchains-v1")).unwrap();
    let project = |name: &str| support::project::usual().write(&sandbox.path(name));
    let first = sandbox.build(&project("first"), &[]);
    assert_eq!(first.reason("preparing").len(), 1);
    let compiled = sandbox.started().compiles();
    // Without the cache, which would give the units of the first project to the second.
    let second = sandbox.build(&project("second"), &["--no-cache"]);
    assert_eq!(second.reason("preparing").len(), 0);
    let shims = compiled - sandbox.started().compiles();
    assert_eq!(shims, 17);
    let floors = || fs::read_dir(sandbox.cache().join("floors-v1")).unwrap().count();
    assert_eq!(floors(), 2);

    // A damaged one is made whole without a compiler, and nothing is linked again.
    let floor = fs::read_dir(sandbox.cache().join("floors-v1")).unwrap().map(|entry| entry.unwrap().path());
    let floor = floor.into_iter().find(|path| path.join("libc.so").is_file()).unwrap();
    fs::remove_file(floor.join("libc.so")).unwrap();
    let third = sandbox.build(&sandbox.path("first"), &[]);
    assert_eq!((third.steps().0, sandbox.started().compiles()), (0, 0));
    assert!(floor.join("libc.so").is_file() && floors() == 2);
}

#[test]
fn a_compiler_that_cannot_make_the_shims_is_told() {
    let sandbox = Sandbox::without_torch();
    fs::create_dir_all(sandbox.cache()).unwrap();
    std::os::unix::fs::symlink(support::shared_cache().join("toolchains-v1"), sandbox.cache().join("toolchains-v1")).unwrap();
    let dir = support::project::usual().write(&sandbox.path("p"));
    let run = sandbox.run(&dir, &["build", "--cxx", "g++ -fno-such-option"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error[host-compiler]: "), "{}", run.stderr);
}
