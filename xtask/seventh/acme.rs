//! Variants for a vendor that was added in one crate, `kiln-format` and the line that lists it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::project::{BINDING, kept, write};
use support::started::real_program;
use support::{Run, Sandbox, shared_cache, tree};

/// A release of Acme for each framework: what the built-in matrix cannot know.
const MATRIX: &str = "schema = 1\nrevision = \"acme\"\n[releases]\n\"2.13\" = \"2.13.0\"\n\n[[row]]\ntorch = \"2.13\"\ncompute = \"acme\"\nversion = \"1.0\"\n\
                      systems = [\"x86_64-linux\", \"aarch64-linux\"]\ndefault = true\ntvm-ffi = \"0.1\"\n";

const STABLE: &str = "torch-stable-abi211-acme10";
const TVM_FFI: &str = "tvm-ffi01-acme10";

struct Acme {
    sandbox: Sandbox,
    dir: PathBuf,
}

impl Acme {
    /// A project for Acme alone, with a unit of each kind.
    fn new(framework: &str, binding: &str, kernel: &str) -> Self {
        let sandbox = Sandbox::new().with_cache(shared_cache().to_owned());
        let dir = sandbox.path("project");
        let head = "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"acme\"]\n";
        let component = format!("[kernel.k]\nbackend = \"acme\"\ndepends = []\nsrc = [\"k.acme\", \"h.cpp\"]\n{kernel}\n");
        write(&dir, "build.toml", &format!("{head}\n{framework}\n{component}"));
        write(&dir, "kiln.toml", "[matrix]\nfile = \"matrix.toml\"\n[acme]\nmood = \"good\"\n");
        write(&dir, "matrix.toml", MATRIX);
        write(&dir, "binding.cpp", binding);
        for package in ["torch-ext", "tvm-ffi-ext"] {
            write(&dir, &format!("{package}/tiny/__init__.py"), "from ._ops import ops\n");
        }
        write(&dir, "k.acme", &format!("#ifndef MARK\n#error no flag\n#endif\nint tiny_k(int x) {{ return x * MARK; }}\n{}", kept("tiny_k(1)")));
        write(&dir, "h.cpp", &format!("#ifdef MARK\n#error not its flag\n#endif\nint tiny_h(int x) {{ return x; }}\n{}", kept("tiny_h(1)")));
        Self { sandbox, dir }
    }

    fn torch(kernel: &str) -> Self {
        Self::new("[torch]\nsrc = [\"binding.cpp\"]\nstable-abi = { acme = \"2.11\" }\n", BINDING, kernel)
    }

    fn run(&self, args: &[&str]) -> Run {
        let compiler = real_program("g++").unwrap();
        Run::of(self.sandbox.kiln(&self.dir, args).env("ACME_CXX", compiler))
    }

    fn build(&self, args: &[&str]) -> Run {
        let run = self.run(&[&["build"], args].concat());
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run
    }

    fn variant(name: &str) -> String {
        format!("{name}-{}-linux", std::env::consts::ARCH)
    }

    fn record(&self, name: &str) -> Value {
        let record: Value = serde_json::from_slice(&fs::read(self.dir.join("build/kiln-build.json")).unwrap()).unwrap();
        record["variants"][Self::variant(name)].clone()
    }
}

const MARK: &str = "acme-flags = [\"-DMARK=3\"]";

/// The names of the steps' programs and arguments are those of the vendor's compiler, the device code is inside, the record and the metadata
/// say whose it is.
#[test]
fn a_kernel_under_torchs_stable_abi() {
    let acme = Acme::torch(MARK);
    let listed = acme.run(&["list-variants"]);
    assert!(listed.stdout.contains(&Acme::variant(STABLE)), "{}{}", listed.stdout, listed.stderr);
    let plan = acme.run(&["build", "--plan"]);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    for part in ["k.acme", "acme_image.cpp", &Acme::variant(STABLE)] {
        assert!(plan.stdout.contains(part), "{part}: {}", plan.stdout);
    }
    let built = acme.build(&[]);
    assert!(built.stderr.contains("Acme 1.0 makes no code for real devices"), "{}", built.stderr);

    let kept = acme.record(STABLE);
    assert_eq!((&kept["backend"], &kept["compute"]), (&"acme".into(), &"1.0".into()), "{kept}");
    assert_eq!(kept["toolchains"]["acme"]["version"], "1.0", "{kept}");
    assert_eq!(kept["proven"], serde_json::json!({ "stage": "linked", "by": "acme-cc 1.0" }), "{kept}");
    assert_eq!(kept["archs"], serde_json::json!(["acme1"]), "{kept}");
    let dir = acme.dir.join("build").join(Acme::variant(STABLE));
    let metadata: Value = serde_json::from_slice(&fs::read(dir.join("metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata["backend"], serde_json::json!({ "type": "acme", "archs": ["acme1"] }));
    let extension = tree::extensions(&acme.dir.join("build")).remove(0);
    let bytes = fs::read(&extension).unwrap();
    assert!(bytes.windows(10).any(|window| window == b"acme image"), "the image of the device code is inside");

    let checked = acme.run(&["check", "build"]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
    let again = acme.build(&["--message-format", "json"]);
    assert_eq!(again.steps().0, 0, "nothing is to be done: {}", again.stdout);
}

/// Metadata that name an architecture without code are told by the vendor's own comparison.
#[test]
fn checks_of_built_variants_ask_the_vendor() {
    let acme = Acme::torch(MARK);
    acme.build(&[]);
    let path = acme.dir.join("build").join(Acme::variant(STABLE)).join("metadata.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"acme1\"", "\"acme2\"")).unwrap();
    let checked = acme.run(&["check-builds", "build"]);
    assert_eq!(checked.code, Some(1), "{}{}", checked.stdout, checked.stderr);
    assert!(format!("{}{}", checked.stdout, checked.stderr).contains("the extension has no code for `acme2`"), "{}", checked.stdout);
}

/// tvm-ffi knows no more of the vendor than torch does. Its extension loads: nothing of it asks for a device.
#[test]
fn a_kernel_for_tvm_ffi() {
    let binding = "#include <tvm/ffi/function.h>\nint tiny_k(int);\nstatic int twice(int x) { return tiny_k(x); }\n\
                   TVM_FFI_DLL_EXPORT_TYPED_FUNC(twice, twice);\n";
    let acme = Acme::new("[tvm-ffi]\nsrc = [\"binding.cpp\"]\n", binding, MARK);
    acme.build(&[]);
    let kept = acme.record(TVM_FFI);
    assert_eq!(kept["proven"], serde_json::json!({ "stage": "loaded", "by": "acme-cc 1.0" }), "{kept}");
}

/// Its keys are those of its kernels alone, and their values are checked.
#[test]
fn keys_are_checked() {
    let said = |kernel: &str| {
        let run = Acme::torch(kernel).run(&["check-config"]);
        format!("{}{}", run.stdout, run.stderr)
    };
    assert!(!said(MARK).contains("error"), "{}", said(MARK));
    assert!(said("cuda-flags = []").contains("`cuda-flags` belongs to cuda kernels, and [kernel.k] is a acme kernel"), "{}", said("cuda-flags = []"));
    assert!(said("acme-flags = [\"-march=native\"]").contains("warning[machine-flag]"), "{}", said("acme-flags = [\"-march=native\"]"));
    assert!(said("acme-flags = 1").contains("error[wrong-type]"), "{}", said("acme-flags = 1"));

    let acme = Acme::torch(MARK);
    write(&acme.dir, "kiln.toml", "[matrix]\nfile = \"matrix.toml\"\n[acme]\nmood = \"bad\"\n");
    let run = acme.run(&["build"]);
    assert!(run.stderr.contains("error[invalid-value]: `mood` must be `good`"), "{}", run.stderr);
}

/// A machine without its toolkit is told where it was looked for.
#[test]
fn a_missing_toolkit_is_told() {
    let acme = Acme::torch(MARK);
    let alone = acme.sandbox.run(&acme.dir, &["build", "--backend", "acme"]);
    assert_eq!(alone.code, Some(1), "{}", alone.stderr);
    assert!(alone.stderr.contains("no compiler of Acme 1.0 was found; looked at ACME_CXX"), "{}", alone.stderr);
    let doctor = Run::of(acme.sandbox.kiln(Path::new(&acme.sandbox.path("home")), &["doctor", "acme", "--offline"]).env_remove("ACME_CXX"));
    assert_eq!(doctor.code, Some(1), "{}{}", doctor.stdout, doctor.stderr);
}

/// What `--arch` asks goes to whose name it is.
#[test]
fn arch_is_the_vendors() {
    let acme = Acme::torch(MARK);
    acme.build(&["--arch", "acme1"]);
    let run = acme.run(&["build", "--arch", "acme7"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("`--arch` has `acme7`, which is no architecture of Acme's"), "{}", run.stderr);
}
