//! The linked extension, judged by the machine's own tools: what it exports and needs, and that Python imports it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::project::{BINDING, ProjectBuilder, kept, usual};
use support::started::real_program;
use support::{Sandbox, text, tree};

/// The output of a program of the machine; it must succeed and say nothing else.
fn output(program: &str, args: &[&str]) -> String {
    let program = real_program(program).unwrap_or_else(|| panic!("`{program}` is not installed"));
    let output = Command::new(program).args(args).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Builds and gives the only extension.
fn built(sandbox: &Sandbox, dir: &Path) -> PathBuf {
    let run = sandbox.build(dir, &[]);
    for step in run.reason("step-finished") {
        assert_eq!(step["output"], "", "a compiler or linker has something to say");
    }
    let extensions = tree::extensions(&dir.join("build"));
    assert_eq!(extensions.len(), 1);
    extensions[0].clone()
}

/// The id that an extension's file name carries.
fn id(extension: &Path) -> String {
    extension.file_name().unwrap().to_str().unwrap().strip_suffix(".abi3.so").unwrap().to_owned()
}

/// The values of one kind of entry of the dynamic section, sorted.
fn dynamic(extension: &Path, kind: &str) -> Vec<String> {
    let listing = output("readelf", &["-dW", extension.to_str().unwrap()]);
    let lines = listing.lines().filter(|line| line.contains(&format!("({kind})")));
    let mut values: Vec<String> =
        lines.map(|line| line.split_once('[').map_or(line, |(_, rest)| rest.trim_end_matches(']')).to_owned()).collect();
    values.sort();
    values
}

/// A Python that imports the extension as the loader does and says its name.
const IMPORT: &str = "
import importlib.util, sys
name, path = sys.argv[1:]
spec = importlib.util.spec_from_file_location(name, path)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
own = sorted(key for key in vars(module) if not key.startswith('__'))
print(module.__name__, module.__file__ == path, own)
";

fn import(extension: &Path) {
    let id = id(extension);
    let said = output("python3", &["-I", "-c", IMPORT, &id, extension.to_str().unwrap()]);
    assert_eq!(said, format!("{id} True []\n"));
}

#[test]
fn the_entry_point_is_all_that_is_visible() {
    let sandbox = Sandbox::new();
    // Names that a unit makes visible by itself, unique symbols among them, must not get out either.
    let dir = usual()
        .file(
            "loud/loud.cpp",
            &format!(
                "__attribute__((visibility(\"default\"))) int tiny_loud() {{ return 1; }}\n\
                 extern \"C\" {{ __attribute__((visibility(\"default\"))) int tiny_data = 3; }}\n\
                 template <typename T> struct __attribute__((visibility(\"default\"))) Tiny {{ static inline int count = 0; }};\n\
                 int tiny_count() {{ return ++Tiny<int>::count + tiny_data + tiny_loud(); }}\n{}",
                kept("tiny_count()")
            ),
        )
        .kernel("loud", &[], &["loud/loud.cpp"], "")
        .write(&sandbox.path("project"));
    let extension = built(&sandbox, &dir);
    let path = extension.to_str().unwrap();
    let all = output("nm", &["--format=just-symbols", path]);
    assert!(all.contains("tiny_loud") && all.contains("tiny_data"), "the unit was left out: {all}");
    let exported = output("nm", &["-D", "--defined-only", "--format=just-symbols", path]);
    assert_eq!(exported, format!("PyInit_{}\n", id(&extension)));
    for kind in ["RPATH", "RUNPATH", "TEXTREL"] {
        assert_eq!(dynamic(&extension, kind), Vec::<String>::new());
    }
    let headers = output("readelf", &["-lW", path]);
    let stack = headers.lines().find(|line| line.trim_start().starts_with("GNU_STACK")).unwrap();
    assert!(!stack.contains("RWE"), "{stack}");
}

#[test]
fn only_what_is_used_is_needed() {
    let sandbox = Sandbox::new();
    // Neither torch nor C++: nothing but what the compiler's start-up code needs.
    let dir = ProjectBuilder::new().file("plain.cpp", "int tiny_plain;\n").kernel("plain", &[], &["plain.cpp"], "");
    let extension = built(&sandbox, &dir.write(&sandbox.path("plain")));
    let c_library = ["libc.so.6".to_owned()];
    assert!(dynamic(&extension, "NEEDED").iter().all(|name| c_library.contains(name)), "{:?}", dynamic(&extension, "NEEDED"));
    import(&extension);

    // A name of one of torch's libraries needs that one and no other.
    let dir = ProjectBuilder::new()
        .torch("stable-abi = { cpu = \"2.11\" }")
        .file("shim.cpp", "#include <torch/csrc/inductor/aoti_torch/c/shim.h>\nint tiny_shim() { return aoti_torch_device_type_cpu(); }\n")
        .kernel("shim", &["torch"], &["shim.cpp"], "");
    let extension = built(&sandbox, &dir.write(&sandbox.path("shim")));
    let needed = dynamic(&extension, "NEEDED");
    let runtime = ["libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"];
    let torch: Vec<_> = needed.iter().filter(|name| !runtime.contains(&name.as_str())).collect();
    assert_eq!(torch, ["libtorch_cpu.so"]);
}

/// Warnings that a careful author turns on.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

#[test]
fn python_imports_every_form_of_a_binding() {
    let sandbox = Sandbox::new();
    let headers = output("python3", &["-c", "import sysconfig; print(sysconfig.get_paths()['include'])"]);
    let headers = headers.trim();
    assert!(Path::new(headers).join("Python.h").is_file(), "Python's headers are needed for this test: `{headers}` has no Python.h");
    let strict = format!("include = [\"python\"]\ncxx-flags = {STRICT:?}");
    // Python's own headers are not held to what the author's are.
    let python = format!("#pragma GCC system_header\n#include \"{headers}/Python.h\"\n");
    let user = "PyObject *tiny_user() { return PyLong_FromLong(7); }\n";
    for (name, file, binding) in [
        ("plain", "binding.cpp", BINDING.to_owned()),
        ("semicolon", "binding.cpp", "#include <registration.h>\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME);\n".to_owned()),
        ("python-first", "binding.cpp", format!("#include <Python.h>\n{BINDING}{user}")),
        ("python-last", "binding.cpp", format!("{BINDING}#include <Python.h>\n{user}")),
        (
            "python-around",
            "binding.cpp",
            format!("#include <registration.h>\n#include <Python.h>\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME)\n{user}"),
        ),
        ("in-namespace", "binding.cpp", "#include <registration.h>\nnamespace { REGISTER_EXTENSION(TORCH_EXTENSION_NAME) }\n".to_owned()),
        ("c", "binding.c", BINDING.to_owned()),
    ] {
        let project = ProjectBuilder::new().torch(&strict).file("plain.cpp", "int tiny_plain;\n").kernel("plain", &[], &["plain.cpp"], "");
        let dir = project.file("python/Python.h", &python).file(file, &binding).write(&sandbox.path(name));
        if file != "binding.cpp" {
            let text = std::fs::read_to_string(dir.join("build.toml")).unwrap();
            std::fs::write(dir.join("build.toml"), text.replace("binding.cpp", file)).unwrap();
            std::fs::remove_file(dir.join("binding.cpp")).unwrap();
        }
        let extension = built(&sandbox, &dir);
        assert_eq!(output("nm", &["-D", "--defined-only", "--format=just-symbols", extension.to_str().unwrap()]).lines().count(), 1);
        import(&extension);
    }
}

#[test]
fn the_registration_header_compiles_without_warnings() {
    let sandbox = Sandbox::new();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-backend/src");
    let dir = sandbox.path("units");
    let compile = |program: &str, file: &str, text: &str, flags: &[&str]| {
        support::project::write(&dir, file, text);
        let file = dir.join(file);
        let include = format!("-I{}", header.display());
        let args = ["-c", "-o", "/dev/null", "-DTORCH_EXTENSION_NAME=_tiny_cpu_1", &include, file.to_str().unwrap()];
        assert_eq!(output(program, &[&args[..], flags].concat()), "", "{flags:?}");
    };
    let (bare, closed) = (BINDING.to_owned(), BINDING.replace(")\n", ");\n"));
    for text in [&bare, &closed] {
        for std in ["-std=c++11", "-std=c++17", "-std=gnu++20", "-std=c++20"] {
            compile("g++", "unit.cpp", text, &[&STRICT[..], &[std]].concat());
        }
        // In C a semicolon of the author's outside of a function is pedantry's to refuse, whatever is before it.
        for std in ["-std=c99", "-std=c11", "-std=gnu17"] {
            let strict = if *text == bare { &STRICT[..] } else { &["-Wall", "-Wextra", "-Werror"] };
            compile("gcc", "unit.c", text, &[strict, &[std]].concat());
        }
    }
}
