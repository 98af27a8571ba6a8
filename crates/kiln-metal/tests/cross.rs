//! An extension for macOS, made on any machine: the example on torch's stable ABI, as `build.toml` lists it.
//!
//! `zig` compiles and links the host's part for real. Of the shaders **only the command lines are checked**: `recording-xcrun` stands in
//! for Apple's compilers, and Apple's headers that metal-cpp wants are stand-ins too. Nothing here has run on a Mac.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use kiln_backend::discover::apple::MetalPrograms;
use kiln_backend::{Component, Family, HostCompiler, HostRuntime, RuntimeFile, macho};
use kiln_graph::{ActionCache, Config, Event, Executor, Interrupt, WorkDir};
use kiln_metal::{MetalSettings, MetalToolkit};
use kiln_toolchain::Catalog;
use support::{OPS, Parts, component, settings, torch, version};

/// What the tests of the workspace are set up with.
fn test_env(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join(name);
    assert!(dir.is_dir(), "`{}` is missing: run `cargo xtask setup`", dir.display());
    dir
}

/// A directory of Apple's tools whose programs are `recording-xcrun`.
fn recorded(dir: &Path) -> PathBuf {
    let bin = dir.join("Toolchains/Metal.xctoolchain/usr/bin");
    fs::create_dir_all(&bin).unwrap();
    let program = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/recording_xcrun.py")).unwrap();
    for name in ["metal", "metallib"] {
        fs::write(bin.join(name), [b"#!/usr/bin/env python3\n".as_slice(), &program].concat()).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    dir.join("Toolchains/Metal.xctoolchain")
}

/// `zig c++` for macOS.
fn zig(settings: &MetalSettings) -> HostCompiler {
    let dir = test_env("zig").join("ziglang");
    let stub = RuntimeFile { name: "libSystem.tbd".to_owned(), path: dir.join("lib/libc/darwin/libSystem.tbd"), digest: "stub".to_owned() };
    HostCompiler {
        path: dir.join("zig"),
        args: vec!["c++".to_owned(), "-target".to_owned(), format!("aarch64-macos.{}", settings.minimum())],
        family: Family::Clang,
        version: version("22.1.8"),
        target: "aarch64-unknown-macos".to_owned(),
        identity: "zig".to_owned(),
        runtime: HostRuntime { libraries: vec![stub], ..HostRuntime::default() },
        accepts_no_gnu_unique: false,
    }
}

struct Project {
    dir: tempfile::TempDir,
    components: Vec<Component>,
}

/// What a run made.
struct Built {
    extension: PathBuf,
    started: Vec<String>,
}

impl Project {
    /// The example `rms-norm`.
    fn rms_norm() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples/rms-norm");
        for part in ["torch-ext", "rms_norm_common", "rms_norm_metal"] {
            fs::create_dir_all(dir.path().join("project").join(part)).unwrap();
            for file in fs::read_dir(example.join(part)).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
                fs::copy(&file, dir.path().join("project").join(part).join(file.file_name().unwrap())).unwrap();
            }
        }
        let include = ["torch-ext", "rms_norm_common"].map(support::path);
        let kernel = ["rms_norm_metal/rms_norm.metal", "rms_norm_metal/rms_norm_metal.cpp", "rms_norm_metal/sizes.h"];
        let mut kernel = component("kernel.rms_norm_metal", &kernel);
        kernel.include_dirs = include.to_vec();
        Self { dir, components: vec![component("torch", &["torch-ext/torch_binding.cpp"]), kernel] }
    }

    /// Another shader of the same base name, in another folder.
    fn with_another_shader(mut self) -> Self {
        let dir = self.dir.path().join("project/more");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("rms_norm.metal"), "kernel void of_another_folder() {}\n").unwrap();
        self.components[1].sources.push(support::path("more/rms_norm.metal"));
        self
    }

    fn build(&self, settings: MetalSettings) -> Result<Built, String> {
        let dir = self.dir.path();
        let python = test_env("torch-2.13.0").join("lib");
        let site = fs::read_dir(python).unwrap().next().unwrap().unwrap().path().join("site-packages");
        let catalog = Catalog::embedded().unwrap();
        let names = catalog.torch(&version("2.13.0"), "darwin-aarch64").unwrap().exports().unwrap();
        let programs = MetalPrograms::of(&recorded(&dir.join("developer"))).unwrap();
        let compiler = zig(&settings);
        let cache = test_env("zig").join("cache");
        let parts = Parts {
            project: &dir.join("project"),
            toolkit: MetalToolkit {
                version: "recording-xcrun".to_owned(),
                origin: "tests".to_owned(),
                programs,
                identity: "recording-xcrun".to_owned(),
                compiler,
                ambient: BTreeMap::new(),
            },
            settings,
            framework: torch(&site, names),
            ambient: BTreeMap::from([
                ("PATH".to_owned(), PathBuf::from("/usr/local/bin:/usr/bin:/bin")),
                ("ZIG_GLOBAL_CACHE_DIR".to_owned(), cache.clone()),
                ("ZIG_LOCAL_CACHE_DIR".to_owned(), cache),
            ]),
            headers: vec![
                test_env("metal-cpp").join("mlx/include/metal_cpp"),
                Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/shims"),
            ],
        };
        let (graph, extension) = parts.graph(&self.components).map_err(|error| error.to_string())?;
        let work = WorkDir::open(dir.join("work")).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap();
        let cache = Some(ActionCache::new(dir.join("cache"), 1 << 30));
        let config = Config { jobs: NonZeroUsize::new(2).unwrap(), cache, ..Config::default() };
        let (started, failures) = (Mutex::new(Vec::new()), Mutex::new(String::new()));
        let outcome = Executor::new(&work, config).run(&graph, &|event| match event {
            Event::StepStarted { label, .. } => started.lock().unwrap().push(label.clone()),
            Event::StepFailed { label, failure, output, .. } => {
                let said = String::from_utf8_lossy(output);
                failures.lock().unwrap().push_str(&format!("{label}: {failure}\n{said}\n"));
            }
            _ => {}
        });
        if !outcome.is_ok() {
            return Err(failures.into_inner().unwrap());
        }
        let mut started = started.into_inner().unwrap();
        started.sort();
        Ok(Built { extension: outcome.output_path(&extension), started })
    }

    /// The lines that Apple's tools were called with.
    fn lines(&self) -> Vec<(String, Vec<String>)> {
        let text = fs::read_to_string(self.dir.path().join("developer/command-lines-only.log")).unwrap_or_default();
        let line = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let words = value["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
            (value["program"].as_str().unwrap().to_owned(), words)
        };
        text.lines().map(line).collect()
    }
}

/// Load commands, names and the oldest system of the linked file; what stands in for `metallib` is embedded.
#[test]
fn the_example_on_the_stable_abi_is_a_mach_o_extension() {
    let project = Project::rms_norm().with_another_shader();
    let built = project.build(settings(None, None)).unwrap_or_else(|failures| panic!("{failures}"));
    let bytes = fs::read(&built.extension).unwrap();
    let image = macho::image(&bytes).unwrap();
    assert_eq!(image.minimum.unwrap().to_string(), "26.0");
    assert_eq!(image.install_name.as_deref(), Some(format!("@rpath/{OPS}.abi3.so").as_str()));
    assert_eq!(image.rpaths, ["@loader_path/lib"]);
    let mut needed = image.needed.clone();
    needed.sort();
    assert_eq!(
        needed,
        [
            "/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation",
            "/System/Library/Frameworks/Metal.framework/Versions/A/Metal",
            "/usr/lib/libSystem.B.dylib",
            "/usr/lib/libc++.1.dylib",
            "@rpath/libtorch_cpu.dylib",
        ]
    );
    // What is left for whatever is loaded is Python's.
    let anywhere: Vec<&str> =
        image.imports.iter().filter(|import| import.provider == macho::Provider::Anything).map(|import| import.name.as_str()).collect();
    assert!(!anywhere.is_empty() && anywhere.iter().all(|name| name.starts_with("Py") || name.starts_with("_Py")), "{anywhere:?}");
    let of = |library: &str| {
        let place = image.needed.iter().position(|needed| needed.ends_with(library)).unwrap();
        let names = image.imports.iter().filter(move |import| import.provider == macho::Provider::Library(place));
        names.map(|import| import.name.as_str()).collect::<Vec<_>>()
    };
    assert!(of("/libtorch_cpu.dylib").iter().all(|name| name.starts_with("aoti_torch_") || name.starts_with("torch_")));
    assert!(of("/libc++.1.dylib").contains(&"__cxa_throw"));
    assert!(of("/Foundation").contains(&"objc_msgSend"));
    // The entry point, and what zig's linker always adds.
    let mut exports = image.exports.clone();
    exports.retain(|name| !matches!(name.as_str(), "_mh_dylib_header" | "__dso_handle"));
    assert_eq!(exports, [format!("PyInit_{OPS}")]);
    assert_eq!(image.debug_files, [""; 0]);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(!text.contains(&project.dir.path().display().to_string()), "a path of this machine is inside");
    // All shaders are inside, those of one name too; they are no shaders, and say so.
    assert!(text.contains("MTLB recording-xcrun (command line only)"));
    for inside in ["no AIR of ./rms_norm_metal/rms_norm.metal", "no AIR of ./more/rms_norm.metal", "kernel void of_another_folder"] {
        assert!(text.contains(inside), "{inside}");
    }
    let programs: Vec<String> = project.lines().into_iter().map(|(program, _)| program).collect();
    assert_eq!(programs, ["metal", "metal", "metallib"]);
    agrees_with_llvm(&built.extension, &image);
    let tables = objdump(&built.extension, &["--bind", "--lazy-bind", "--weak-bind"]);
    let flat: Vec<&str> = tables.lines().filter(|line| line.contains("flat-namespace")).collect();
    assert!(!flat.is_empty() && flat.iter().all(|line| line.contains(" _Py")), "{flat:?}");
}

fn objdump(path: &Path, args: &[&str]) -> String {
    let output = Command::new("llvm-objdump-19").arg("--macho").args(args).arg(path).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Another reader of the same file sees the same.
fn agrees_with_llvm(path: &Path, image: &macho::Image) {
    let text = objdump(path, &["--private-headers"]);
    let (mut needed, mut rpaths, mut minimum, mut command) = (Vec::new(), Vec::new(), String::new(), "");
    for line in text.lines().map(str::trim) {
        let word = |text: &str| text.split(" (offset").next().unwrap_or_default().trim().to_owned();
        match line.split_once(' ') {
            Some(("cmd", name)) => command = name.trim(),
            Some(("name", name)) if command == "LC_LOAD_DYLIB" => needed.push(word(name)),
            Some(("path", path)) if command == "LC_RPATH" => rpaths.push(word(path)),
            Some(("minos", version)) => version.trim().clone_into(&mut minimum),
            _ => {}
        }
    }
    assert_eq!((needed, rpaths, minimum), (image.needed.clone(), image.rpaths.clone(), image.minimum.unwrap().to_string()));
}

/// The contract of the header in Objective-C++: its names, its function with and without a place for the error, and that several units may
/// include it. Apple's headers are stand-ins: this is a check of its syntax and types.
#[test]
fn the_header_is_objective_cxx() {
    let project = Project::rms_norm();
    let built = project.build(settings(None, None)).unwrap_or_else(|failures| panic!("{failures}"));
    let work = project.dir.path().join("work");
    let header = find(&work, &format!("{OPS}_metallib.h")).unwrap_or_else(|| panic!("{:?} made no header", built.started));
    let source = format!(
        "#include \"{OPS}_metallib.h\"\n#include \"{OPS}_metallib.h\"\n\
         static_assert(sizeof({OPS}_metal::metallib_data) == {OPS}_metal::metallib_data_len && {OPS}_metal::metallib_data[0] == 'M');\n\
         static_assert(__is_same(decltype({OPS}_metal::metallib_data_len), const std::size_t));\n\
         id<MTLLibrary> one(id<MTLDevice> device) {{ NSError *error = nullptr; return {OPS}_metal::createLibrary(device, &error); }}\n\
         id<MTLLibrary> two(id<MTLDevice> device) {{ return {OPS}_metal::createLibrary(device); }}\n"
    );
    let file = project.dir.path().join("user.mm");
    fs::write(&file, source).unwrap();
    for more in [&["-std=gnu++17"][..], &["-std=gnu++20", "-Werror", "-Wall"]] {
        let mut clang = Command::new("clang++-19");
        clang.args(["--target=arm64-apple-macos26.0", "-x", "objective-c++", "-fblocks", "-fsyntax-only"]).args(more);
        // The C++ library is this machine's: only its types count.
        clang.args(["-nostdinc++", "-isystem"]).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/objc"));
        let output = clang.arg("-I").arg(header.parent().unwrap()).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The file of this name below a directory.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(dir).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.iter().find_map(|path| match path.is_dir() {
        true => find(path, name),
        false => path.ends_with(name).then(|| path.clone()),
    })
}

/// What is told of the oldest system reaches the file. A build with nothing to do runs nothing; an edit of a shader, or of a header that it
/// includes, compiles it again and embeds it.
#[test]
fn edits_and_settings() {
    let project = Project::rms_norm();
    let old = settings(Some("15.0"), Some("metal3.2"));
    let built = project.build(old.clone()).unwrap_or_else(|failures| panic!("{failures}"));
    let image = macho::image(&fs::read(&built.extension).unwrap()).unwrap();
    assert_eq!(image.minimum.unwrap().to_string(), "15.0");
    assert!(project.lines().iter().any(|(_, argv)| argv.starts_with(&["-std=metal3.2".to_owned(), "-O2".to_owned()])));
    let again = project.build(old.clone()).unwrap_or_else(|failures| panic!("{failures}"));
    assert_eq!(again.started, [""; 0]);
    let first = fs::read(&built.extension).unwrap();

    let header = project.dir.path().join("project/rms_norm_metal/sizes.h");
    let text = fs::read_to_string(&header).unwrap();
    fs::write(&header, format!("{text}// edited\n")).unwrap();
    let edited = project.build(old.clone()).unwrap_or_else(|failures| panic!("{failures}"));
    for label in ["rms_norm_metal/rms_norm.metal", "rms_norm_metal/rms_norm_metal.cpp"] {
        assert!(edited.started.iter().any(|started| started == label), "{:?}", edited.started);
    }
    let second = fs::read(&edited.extension).unwrap();
    assert!(first != second && String::from_utf8_lossy(&second).contains("// edited"));
}

/// A name that nothing offers is told before the link, with who wants it.
#[test]
fn names_that_nothing_offers() {
    let project = Project::rms_norm();
    let binding = project.dir.path().join("project/torch-ext/torch_binding.cpp");
    let text = fs::read_to_string(&binding).unwrap();
    fs::write(&binding, format!("namespace c10 {{ void gone(int); }}\nvoid use() {{ c10::gone(1); }}\n{text}")).unwrap();
    let failures = project.build(settings(None, None)).map(|_| ()).unwrap_err();
    assert!(failures.contains("undefined symbol `c10::gone(int)`"), "{failures}");
    assert!(failures.contains("wanted by torch-ext/torch_binding.cpp"), "{failures}");
}

/// A stand-in that took every option would prove nothing.
#[test]
fn the_recorder_refuses_what_metal_does_not_have() {
    let dir = tempfile::tempdir().unwrap();
    let programs = MetalPrograms::of(&recorded(dir.path())).unwrap();
    let refused = |program: &Path, argv: &[&str]| {
        let output = Command::new(program).args(argv).output().unwrap();
        assert_eq!(output.status.code(), Some(64));
        String::from_utf8(output.stderr).unwrap()
    };
    let line = ["-std=metal4.0", "-O2", "-mmacosx-version-min=26.0", "-MD", "-MF", "d", "-c", "k.metal", "-o", "k.air"];
    for (place, wrong) in [(0, "-std=c++17"), (1, "-O3"), (2, "-fnonsense"), (7, "k.cpp"), (9, "k.o")] {
        let mut line = line;
        line[place] = wrong;
        let said = refused(&programs.metal, &line);
        assert_eq!(said.trim(), format!("recording-xcrun (command line only): unknown option: {wrong}"));
    }
    assert!(refused(&programs.metallib, &["-o", "x.metallib", "-x"]).contains("unknown option: -x"));
}
