//! Variants for Metal, on a machine that is no Mac.
//!
//! Plans are complete here. `zig` out of its wheel compiles and links the host's part for real. Of shaders **only the command lines are
//! checked**: `recording-xcrun` stands in for Apple's tools, refuses what they do not have, and says so in all that it makes. Nothing here
//! has run on a Mac.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use kiln_object::macho;
use serde_json::Value;
use support::started::real_program;
use support::{Run, Sandbox, tree};

const VARIANT: &str = "torch-stable-abi211-metal-aarch64-darwin";
const TARGET: [&str; 2] = ["--target", "aarch64-darwin"];

/// What the tests of the workspace are set up with.
fn test_env(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join(name);
    assert!(dir.is_dir(), "`{}` is missing: run `cargo xtask setup`", dir.display());
    dir
}

/// What the directories of Apple's tools have.
#[derive(Clone, Copy, PartialEq)]
enum Kit {
    /// Xcode with its component for Metal.
    Whole,
    /// Xcode without it.
    NoComponent,
    /// The command line tools alone.
    ToolsOnly,
}

struct Mac {
    sandbox: Sandbox,
    developer: PathBuf,
    environment: PathBuf,
}

impl Mac {
    fn new(kit: Kit) -> Self {
        let sandbox = Sandbox::new();
        let developer = match kit {
            Kit::ToolsOnly => sandbox.path("Library/Developer/CommandLineTools"),
            Kit::Whole | Kit::NoComponent => sandbox.path("Xcode.app/Contents/Developer"),
        };
        let component = sandbox.path("mnt/MetalToolchain-v17.1.324.0.test");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-metal/tests/support/recording_xcrun.py");
        let program = format!("#!{}\n{}", real_program("python3").unwrap().display(), fs::read_to_string(source).unwrap());
        let write = |path: &Path| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &program).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        // A compiler and the headers of the system are in all of them.
        let (clang, sdk) = match kit {
            Kit::ToolsOnly => ("usr/bin/clang++", "SDKs/MacOSX.sdk"),
            _ => ("Toolchains/XcodeDefault.xctoolchain/usr/bin/clang++", "Platforms/MacOSX.platform/Developer/SDKs/MacOSX.sdk"),
        };
        write(&developer.join(clang));
        fs::create_dir_all(developer.join(sdk)).unwrap();
        write(&developer.join("usr/bin/xcrun"));
        if kit != Kit::ToolsOnly {
            write(&developer.join("usr/bin/xcodebuild"));
        }
        if kit == Kit::Whole {
            for name in ["metal", "metallib"] {
                write(&component.join("Metal.xctoolchain/usr/bin").join(name));
            }
            fs::write(developer.join("recording-component"), component.display().to_string()).unwrap();
            // Its programs keep their lines beside Xcode's.
            fs::create_dir_all(component.join("Metal.xctoolchain")).unwrap();
        }
        // The wheel of zig, as pip puts it into a virtual environment.
        let environment = sandbox.path("venv");
        let site = environment.join("lib/python3.12/site-packages");
        fs::create_dir_all(&site).unwrap();
        symlink(test_env("zig").join("ziglang"), site.join("ziglang")).unwrap();
        Self { sandbox, developer, environment }
    }

    /// A project with two shaders of one name, and a host that is C++; under torch's stable ABI, without torch's headers.
    fn project(&self) -> PathBuf {
        let dir = self.sandbox.path("project");
        let text = "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"metal\"]\n\n\
                    [torch]\nsrc = [\"binding.cpp\"]\nstable-abi = \"2.11\"\n\n\
                    [kernel.one]\nbackend = \"metal\"\ndepends = []\nsrc = [\"one/k.metal\", \"one/k.cpp\", \"one/k.h\"]\n\
                    include = [\"one\"]\n\n\
                    [kernel.two]\nbackend = \"metal\"\ndepends = []\nsrc = [\"two/k.metal\"]\n";
        let host = "#include EMBEDDED_METALLIB_HEADER\n#include \"k.h\"\n\
                    extern \"C\" __attribute__((used)) const unsigned char *tiny_bytes() { return EMBEDDED_METALLIB_NAMESPACE::metallib_data; }\n";
        for (name, content) in [
            ("build.toml", text),
            ("torch-ext/tiny/__init__.py", "from ._ops import ops\n"),
            ("binding.cpp", support::project::BINDING),
            ("one/k.metal", "#include \"k.h\"\nkernel void one() {}\n"),
            ("one/k.h", "#define ONE 1\n"),
            ("one/k.cpp", host),
            ("two/k.metal", "kernel void two() {}\n"),
        ] {
            support::project::write(&dir, name, content);
        }
        dir
    }

    fn run(&self, dir: &Path, args: &[&str]) -> Run {
        let mut command = self.sandbox.kiln(dir, &[args, &TARGET].concat());
        Run::of(command.env("DEVELOPER_DIR", &self.developer).env("VIRTUAL_ENV", &self.environment))
    }

    fn build(&self, dir: &Path) -> Run {
        let run = self.run(dir, &["build", "--backend", "metal", "--message-format", "json"]);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run
    }
}

/// A plan needs none of the tools, and has every command.
#[test]
fn the_plan_is_complete_on_any_machine() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("rms-norm");
    tree::copy_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples/rms-norm"), &dir);
    let run = sandbox.run(&dir, &[&["build", "--plan", "--backend", "metal"], &TARGET[..]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for part in [
        &format!("variant {VARIANT} with torch 2.13.0: _rms_norm_metal_"),
        "  metal -std=metal4.0 -O2 -mmacosx-version-min=26.0 '-I{project}/torch-ext' '-I{project}/rms_norm_common' -MD -MF '{out}/unit.d' -c \
         ./rms_norm_metal/rms_norm.metal -o '{out}/unit.air'",
        "  metallib -o '{out}/_rms_norm_metal_",
        "  builtin embed-metallib",
        "  clang++ -arch arm64 -mmacosx-version-min=26.0 -O3",
        "-DTORCH_TARGET_VERSION=0x020b000000000000",
        "'-DEMBEDDED_METALLIB_HEADER=\"_rms_norm_metal_",
        "-Xlinker @loader_path/lib",
        "  makes libc10.tbd, libtorch.tbd, libtorch_cpu.tbd, Metal.tbd, Foundation.tbd, libc++.1.tbd",
    ] {
        assert!(run.stdout.contains(part), "{part}\n{}", run.stdout);
    }
    assert!(!dir.join(".kiln").exists());
    // What `kiln.toml` says is in it.
    fs::write(dir.join("kiln.toml"), "[metal]\ndeployment-target = \"15.4\"\nlanguage = \"metal3.2\"\n").unwrap();
    let run = sandbox.run(&dir, &[&["build", "--plan", "--backend", "metal"], &TARGET[..]].concat());
    assert!(run.stdout.contains("  metal -std=metal3.2 -O2 -mmacosx-version-min=15.4 "), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("  clang++ -arch arm64 -mmacosx-version-min=15.4 "), "{}", run.stdout);
    fs::write(dir.join("kiln.toml"), "[metal]\ndeployment-target = \"new\"\nlanguage = \"c++\"\n").unwrap();
    let run = sandbox.run(&dir, &[&["build", "--plan", "--backend", "metal"], &TARGET[..]].concat());
    for part in ["`new` is no release of macOS", "`c++` is no language of shaders"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

/// The whole way: Apple's stand-ins make the library, zig the extension, the checks pass, and the variant is put in place.
#[test]
fn a_variant_is_made_and_checked() {
    let mac = Mac::new(Kit::Whole);
    let dir = mac.project();
    mac.build(&dir);
    let extension = tree::extensions(&dir.join("build")).remove(0);
    assert_eq!(extension.parent().unwrap().file_name().unwrap(), VARIANT);
    let bytes = fs::read(&extension).unwrap();
    let image = macho::image(&bytes).unwrap();
    assert_eq!((image.minimum.unwrap().to_string().as_str(), image.rpaths.as_slice()), ("26.0", &["@loader_path/lib".to_owned()][..]));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    for inside in ["MTLB recording-xcrun (command line only)", "kernel void one()", "kernel void two()", "#define ONE 1"] {
        assert!(text.contains(inside), "{inside}");
    }
    let metadata: Value = serde_json::from_slice(&fs::read(extension.with_file_name("metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata["backend"], serde_json::json!({ "type": "metal" }));
    let record: Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let kept = &record["variants"][VARIANT];
    assert_eq!(kept["proven"]["by"], "zig 22.1.8", "{kept}");
    assert_eq!(kept["toolchains"]["metal"]["version"], "32023.830", "{kept}");
    // zig keeps what it keeps elsewhere.
    assert!(!dir.join(".zig-cache").exists() && !dir.join("zig-out").exists());

    let again = mac.build(&dir);
    assert_eq!(again.steps().0, 0, "a build with nothing to do runs nothing: {}", again.stdout);
    // An edit of a header of the shaders compiles the one that includes it.
    fs::write(dir.join("one/k.h"), "#define ONE 2\n").unwrap();
    let edited = mac.build(&dir).ran("Compiling");
    assert!(edited.contains(&"one/k.metal".to_owned()) && !edited.contains(&"two/k.metal".to_owned()), "{edited:?}");
    let run = mac.run(&dir, &["check-abi"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let older = mac.run(&dir, &["check-abi", "--macos", "15.0"]);
    assert_eq!(older.code, Some(1), "{}", older.stderr);
    assert!(older.stdout.contains("macos-floor") || older.stderr.contains("macos-floor"), "{}{}", older.stdout, older.stderr);
    assert_eq!(mac.run(&dir, &["check-abi", "--macos", "26.0"]).code, Some(0));
    assert_eq!(mac.run(&dir, &["check-abi", "--macos", "70000.0"]).code, Some(2));
}

/// What has no shader is built without any of Apple's tools.
#[test]
fn no_shader_needs_no_apple_tools() {
    let mac = Mac::new(Kit::Whole);
    let dir = mac.project();
    let text = fs::read_to_string(dir.join("build.toml")).unwrap();
    let text = text.split("[kernel.two]").next().unwrap().replace("\"one/k.metal\", ", "");
    fs::write(dir.join("build.toml"), text).unwrap();
    fs::write(dir.join("one/k.cpp"), "#ifdef EMBEDDED_METALLIB_HEADER\n#error there is a header\n#endif\n").unwrap();
    let run = |args: &[&str]| Run::of(mac.sandbox.kiln(&dir, &[args, &TARGET].concat()).env("VIRTUAL_ENV", &mac.environment));
    for args in [&["build", "--variant", VARIANT][..], &["build", "--backend", "metal"], &["build", "--all"], &["doctor", "metal"]] {
        let run = run(args);
        assert_eq!(run.code, Some(0), "{args:?}: {}{}", run.stdout, run.stderr);
    }

    // Names are those of the system's C++ library, whatever the compiler's own is; what only looks like one of Objective-C is none.
    let with = |text: &str| {
        fs::write(dir.join("one/k.cpp"), text).unwrap();
        run(&["build", "--backend", "metal"])
    };
    let hashes = "#include <string>\n#include <unordered_map>\n\
                  __attribute__((used)) int of(std::unordered_map<std::string, int> &map, const std::string &key) { return map[key]; }\n";
    let built = with(hashes);
    assert_eq!(built.code, Some(0), "{}{}", built.stdout, built.stderr);
    let bytes = fs::read(tree::extensions(&dir.join("build")).remove(0)).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("__hash_memory"));
    let invented = with("extern \"C\" int class_mine(); extern \"C\" __attribute__((used)) int all() { return class_mine(); }\n");
    assert_eq!(invented.code, Some(1), "{}", invented.stdout);
    assert!(invented.stderr.contains("class_mine"), "{}", invented.stderr);
}

/// What doctor says is what a build would do, not a plan.
#[test]
fn doctor_says_what_a_build_would() {
    let mac = Mac::new(Kit::Whole);
    let dir = mac.project();
    let bare = mac.sandbox.run(&dir, &[&["doctor", "metal"], &TARGET[..]].concat());
    assert_eq!(bare.code, Some(1), "{}{}", bare.stdout, bare.stderr);
    let with = mac.run(&dir, &["doctor", "metal"]);
    assert_eq!(with.code, Some(0), "{}{}", with.stdout, with.stderr);
    // And what loads it: a runner with the macOS that loaders ask for.
    assert!(mac.run(&dir, &["matrix"]).stdout.contains("\"macos-26\""));
}

/// Each way to lack the compiler of shaders has its own words and its own remedy.
#[test]
fn a_machine_without_the_tools() {
    let said = |mac: &Mac, args: &[&str]| {
        let run = mac.run(&mac.project(), args);
        assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
        run.stderr
    };
    let named = ["build", "--variant", VARIANT];
    let lacking = said(&Mac::new(Kit::NoComponent), &named);
    assert!(lacking.contains("error[no-metal]: there is no compiler of Metal shaders: the Xcode in `"), "{lacking}");
    assert!(lacking.contains("lacks its component MetalToolchain") && lacking.contains("looked at"), "{lacking}");
    assert!(lacking.contains("hint: run `xcodebuild -downloadComponent MetalToolchain`"), "{lacking}");
    let tools = said(&Mac::new(Kit::ToolsOnly), &named);
    assert!(tools.contains("CommandLineTools` are the command line tools, which have none"), "{tools}");
    assert!(tools.contains("hint: on a Mac install Xcode 26 or newer"), "{tools}");

    let mac = Mac::new(Kit::Whole);
    let dir = mac.project();
    let nothing = |args: &[&str]| mac.sandbox.run(&dir, &[args, &TARGET].concat());
    let run = nothing(&named);
    assert!(run.stderr.contains("error[no-metal]: there is no compiler of Metal shaders: this machine has no Xcode"), "{}", run.stderr);
    assert!(run.stderr.contains("looked at DEVELOPER_DIR"), "{}", run.stderr);
    let run = nothing(&["build", "--backend", "metal"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("it cannot be built here: there is no compiler of Metal shaders"), "{}", run.stderr);

    // Among others it is listed with the reason, and breaks nothing.
    let text = fs::read_to_string(dir.join("build.toml")).unwrap().replace("[\"metal\"]", "[\"metal\", \"tpu\"]");
    fs::write(dir.join("build.toml"), text).unwrap();
    let all = nothing(&["build", "--all"]);
    assert_eq!(all.code, Some(0), "{}{}", all.stdout, all.stderr);
    let left_out = format!("`{VARIANT}` is left out: it cannot be built here: there is no compiler of Metal shaders");
    assert!(all.stderr.contains(&left_out), "{}", all.stderr);
    assert!(dir.join("build/torch-tpu/metadata.json").is_file());
}

/// A variant that is named and that no machine like this one builds is told so, before any compiler is looked for.
#[test]
fn what_cannot_be_built_is_told_first() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("project");
    let project = support::project::ProjectBuilder::new().torch("stable-abi = \"2.11\"").file("c.cpp", "int c;\n");
    project.kernel("c", &[], &["c.cpp"], "").write(&dir);
    let mut command = sandbox.kiln(&dir, &["build", "--variant", "torch-stable-abi211-cpu-aarch64-darwin", "--target", "aarch64-darwin"]);
    let run = Run::of(command.env("PATH", sandbox.path("nothing")));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("error[cannot-build]: `torch-stable-abi211-cpu-aarch64-darwin` cannot be built"), "{}", run.stderr);
    assert!(run.stderr.contains("is built on such a machine"), "{}", run.stderr);
}

/// tvm-ffi has no Metal.
#[test]
fn kernels_for_tvm_ffi_are_refused() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("project");
    let text = "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"cpu\", \"metal\"]\n\n\
                [tvm-ffi]\nsrc = [\"binding.cpp\"]\n\n[kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"c.cpp\"]\n\n\
                [kernel.m]\nbackend = \"metal\"\ndepends = []\nsrc = [\"m.mm\"]\n";
    for (name, content) in [("build.toml", text), ("tvm-ffi-ext/tiny/__init__.py", ""), ("binding.cpp", ""), ("c.cpp", ""), ("m.mm", "")] {
        support::project::write(&dir, name, content);
    }
    for args in [&["build", "--plan"][..], &["build"], &["build", "--plan", "--backend", "metal", "--target", "aarch64-darwin"]] {
        let run = sandbox.run(&dir, args);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        let told = "error[tvm-ffi-backend]: tvm-ffi has no metal: kernels for metal are built for torch alone";
        assert!(run.stderr.contains(told), "{}", run.stderr);
    }
    let run = sandbox.run(&dir, &["build", "--plan", "--backend", "cpu"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}
