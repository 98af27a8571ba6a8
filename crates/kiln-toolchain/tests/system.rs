//! An installed torch as a toolchain. The Pythons are real; the torch in them is a small one that g++ made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kiln_graph::{Interrupt, RootKind};
use kiln_toolchain::system::{ANSWER_LIMIT, SystemError, SystemSearch, SystemTorch, torch_from};
use kiln_toolchain::{CxxLevel, Provider};

struct Place {
    dir: tempfile::TempDir,
    path: OsString,
}

impl Place {
    /// A virtual environment without torch.
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap(), path: "/usr/local/bin:/usr/bin:/bin".into() };
        run(place.dir.path(), "python3", &["-m", "venv", "--without-pip", "venv"]);
        place
    }

    /// One that has a torch.
    fn with_torch(version: &str) -> Self {
        let place = Self::new();
        place.write("torch/version.py", &format!("__version__ = '{version}'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"));
        place.write("torch/include/torch/csrc/api/include/torch/all.h", "");
        place.write("torch-2.13.0.dist-info/RECORD", "torch/version.py,sha256=x,1\n");
        std::fs::create_dir_all(place.site().join("torch/lib")).unwrap();
        place.library("libc10.so", "namespace c10 { void present(int) {} }");
        place.library("libtorch_cpu.so", "namespace at { void relu() {} }");
        place
    }

    fn library(&self, soname: &str, source: &str) {
        std::fs::write(self.dir.path().join("in.cpp"), source).unwrap();
        let output = self.site().join("torch/lib").join(soname);
        run(self.dir.path(), "g++", &["-shared", "-fPIC", &format!("-Wl,-soname,{soname}"), "in.cpp", "-o", output.to_str().unwrap()]);
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.site().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn python(&self) -> PathBuf {
        self.dir.path().join("venv/bin/python")
    }

    fn site(&self) -> PathBuf {
        let lib = self.dir.path().join("venv/lib");
        let python = std::fs::read_dir(&lib).unwrap().next().unwrap().unwrap();
        python.path().join("site-packages")
    }

    fn find(&self, python: &Path) -> Result<SystemTorch, SystemError> {
        self.find_within(python, ANSWER_LIMIT)
    }

    fn find_within(&self, python: &Path, limit: Duration) -> Result<SystemTorch, SystemError> {
        let (cache_dir, interrupt) = (self.dir.path().join("cache"), Interrupt::new());
        torch_from(&SystemSearch { python, path: &self.path, ambient: &[], cache_dir: &cache_dir, limit, interrupt: &interrupt })
    }
}

fn run(dir: &Path, program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_installed_torch_is_a_toolchain() {
    let place = Place::with_torch("2.13.0+cu130");
    let SystemTorch { toolchain, python_version, python_include, probes } = place.find(&place.python()).unwrap();
    assert_eq!(probes, 1);
    assert!(python_version.starts_with("3."), "{python_version}");
    assert!(python_include.is_absolute() && python_include.to_str().unwrap().contains("python3"), "{python_include:?}");
    assert_eq!((toolchain.version.as_str(), toolchain.cuda.as_ref().unwrap().as_str()), ("2.13.0", "13.0"));
    assert_eq!(toolchain.cxx_level, CxxLevel::Gnu20);
    assert_eq!(toolchain.binding.dir, place.site());
    assert_eq!(toolchain.binding.kind, RootKind::Mutable);
    assert_eq!(toolchain.provider, Provider::System { python: place.python(), site_packages: place.site() });
    assert!(toolchain.root.as_str().starts_with("torch-2.13.0-system-"), "{}", toolchain.root);
    let dirs: Vec<&str> = toolchain.include_dirs.iter().map(|dir| dir.path.as_str()).collect();
    assert_eq!(dirs, ["torch/include", "torch/include/torch/csrc/api/include"]);
    assert!(toolchain.include_dirs.iter().all(|dir| dir.root == toolchain.root));
    let sonames: Vec<&str> = toolchain.exports.iter().map(|library| library.soname.as_str()).collect();
    assert_eq!(sonames, ["libc10.so", "libtorch_cpu.so"]);
    assert!(toolchain.exports[0].offers("_ZN3c107presentEi"));
    assert!(!toolchain.exports[0].offers("_ZN2at4reluEv"));
    assert!(toolchain.exports[1].offers("_ZN2at4reluEv"));
}

#[test]
fn a_second_call_starts_no_process_and_gives_the_same() {
    let place = Place::with_torch("2.13.0");
    // The interpreter of a virtual environment is a link to a program; a copy shows that no process runs.
    let first = place.find(&place.python()).unwrap();
    let again = place.find(&place.python()).unwrap();
    assert_eq!((first.probes, again.probes), (1, 0));
    assert_eq!(again.toolchain.identity, first.toolchain.identity);
    assert_eq!(again.toolchain.exports, first.toolchain.exports);

    // Damaged lists are made anew.
    for entry in std::fs::read_dir(place.dir.path().join("cache")).unwrap() {
        std::fs::write(entry.unwrap().path(), "kiln exports 1\nnot what it was\n").unwrap();
    }
    let anew = place.find(&place.python()).unwrap();
    assert_eq!((anew.probes, anew.toolchain.exports), (1, first.toolchain.exports));

    // A script may start another Python each time: it is asked each time.
    let script = place.dir.path().join("python");
    std::fs::write(&script, format!("#!/bin/sh\nexec '{}' \"$@\"\n", place.python().display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.find(&script).unwrap().probes, 1);
    assert_eq!(place.find(&script).unwrap().probes, 1);
}

#[test]
fn the_identity_follows_version_record_and_libraries() {
    let place = Place::with_torch("2.13.0");
    let identity = || {
        let toolchain = place.find(&place.python()).unwrap().toolchain;
        (toolchain.identity, toolchain.root)
    };
    let mut seen = vec![identity()];
    assert_eq!(seen[0], identity());
    place.write("torch-2.13.0.dist-info/RECORD", "torch/version.py,sha256=y,1\n");
    seen.push(identity());
    place.library("libc10.so", "namespace c10 { void present(int) {} void more() {} }");
    seen.push(identity());
    place.write("torch/version.py", "__version__ = '2.13.0'\ncuda = None\n");
    seen.push(identity());
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[test]
fn a_name_on_path_is_enough() {
    let place = Place::with_torch("2.11.0");
    let bin = place.dir.path().join("venv/bin");
    let found = torch_from(&SystemSearch {
        python: Path::new("python"),
        path: bin.as_os_str(),
        ambient: &[],
        cache_dir: &place.dir.path().join("cache"),
        limit: ANSWER_LIMIT,
        interrupt: &Interrupt::new(),
    });
    let toolchain = found.unwrap().toolchain;
    assert_eq!((toolchain.version.as_str(), toolchain.cxx_level), ("2.11.0", CxxLevel::Gnu17));
    assert_eq!(toolchain.provider, Provider::System { python: place.python(), site_packages: place.site() });
}

#[test]
fn what_cannot_provide_torch_says_why() {
    let place = Place::new();
    let python = place.python();
    let version = place.site().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let error = |python: &Path| {
        let error = place.find(python).unwrap_err();
        let text = format!("{error}\n{}", error.hint().unwrap_or_default());
        text.replace(place.dir.path().to_str().unwrap(), "DIR").replace(&version, "pythonX")
    };
    insta::assert_snapshot!(error(Path::new("no-such-python")), @r"
    there is no Python `no-such-python`
    give the path of a Python interpreter, such as `.venv/bin/python`
    ");
    insta::assert_snapshot!(error(OsStr::new("/nowhere/python").as_ref()), @r"
    there is no Python `/nowhere/python`
    give the path of a Python interpreter, such as `.venv/bin/python`
    ");
    insta::assert_snapshot!(error(Path::new("/bin/false")), @"`/bin/false` does not work as a Python: it ended with exit code 1 and said nothing");
    insta::assert_snapshot!(error(Path::new("/bin/true")), @"`/bin/true` does not work as a Python: it does not say where its packages are");
    insta::assert_snapshot!(error(&python), @r"
    the Python `DIR/venv/bin/python` has no torch: no `torch/version.py` in `DIR/venv/lib/pythonX/site-packages`
    install torch into it, or leave out `--torch-from`: wheels of torch are read without being installed
    ");
    place.write("torch/version.py", "__version__ = '2.4.1+cpu'\ncuda = None\n");
    insta::assert_snapshot!(error(&python), @r"
    the Python `DIR/venv/bin/python` has torch 2.4.1, which is older than 2.9
    install a newer torch into it, or leave out `--torch-from`
    ");
    place.write("torch/version.py", "no version\n");
    insta::assert_snapshot!(error(&python), @r"
    the torch in `DIR/venv/lib/pythonX/site-packages` cannot be used: `torch/version.py` does not say `__version__`
    install torch again
    ");
    place.write("torch/version.py", "__version__ = '2.13.0'\n");
    insta::assert_snapshot!(error(&python), @r"
    the torch in `DIR/venv/lib/pythonX/site-packages` cannot be used: it has no `torch/include`
    install torch again
    ");
    place.write("torch/include/torch/csrc/api/include/torch/all.h", "");
    insta::assert_snapshot!(error(&python), @r"
    the torch in `DIR/venv/lib/pythonX/site-packages` cannot be used: `torch/lib` has none of libc10.so, libtorch.so, libtorch_cpu.so, libc10_cuda.so, libtorch_cuda.so
    install torch again
    ");
    place.write("torch/lib/libc10.so", "text");
    insta::assert_snapshot!(error(&python), @r"
    the torch in `DIR/venv/lib/pythonX/site-packages` cannot be used: `DIR/venv/lib/pythonX/site-packages/torch/lib/libc10.so`: not an ELF file
    install torch again
    ");
}

/// A program of the place's `bin` that starts the environment's Python after `before`.
fn wrapper(place: &Place, before: &str) -> PathBuf {
    let script = place.dir.path().join("python-wrapper");
    std::fs::write(&script, format!("#!/bin/sh\n{before}\nexec '{}' \"$@\"\n", place.python().display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[test]
fn start_up_code_may_print_and_replace_what_it_likes() {
    let place = Place::with_torch("2.13.0");
    place.write("sitecustomize.py", "import atexit, io, sys\nprint('welcome\\0to >kiln\\0 this\\0kiln')\nsys.stdout.flush()\nsys.stdout = io.StringIO()\natexit.register(lambda: sys.__stdout__.write('bye'))\n");
    assert_eq!(place.find(&place.python()).unwrap().toolchain.version.as_str(), "2.13.0");
    // A Python that fails on its way out has answered.
    let failing = wrapper(&place, &format!("'{}' \"$@\"\nexit 3", place.python().display()));
    assert_eq!(place.find(&failing).unwrap().toolchain.version.as_str(), "2.13.0");
}

#[test]
fn a_python_that_hangs_is_ended() {
    let place = Place::with_torch("2.13.0");
    place.write("sitecustomize.py", "import time\ntime.sleep(1000)\n");
    let error = place.find_within(&place.python(), Duration::from_secs(3)).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` does not work as a Python: it gave no answer in 3 s", place.python().display()));
    // A slow one is waited for.
    place.write("sitecustomize.py", "import time\ntime.sleep(1)\n");
    assert_eq!(place.find(&place.python()).unwrap().probes, 1);
}

#[test]
fn an_old_python_is_named() {
    let place = Place::new();
    let old = wrapper(&place, "printf '\\000kiln<2.7.18\\000/usr\\000/usr>kiln\\000'\nexit 0");
    assert_eq!(place.find(&old).unwrap_err().to_string(), format!("`{}` does not work as a Python: it is Python 2.7.18", old.display()));
}

#[test]
fn torch_of_the_users_packages_and_of_path_files() {
    let place = Place::with_torch("2.13.0");
    // Elsewhere, and named by a `.pth` file, as an installation in place of older tools leaves it.
    let elsewhere = place.dir.path().join("src/pytorch");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::rename(place.site().join("torch"), elsewhere.join("torch")).unwrap();
    assert!(matches!(place.find(&place.python()), Err(SystemError::NoTorch { .. })));
    place.write("easy-install.pth", &format!("{}\n", elsewhere.display()));
    let found = place.find(&place.python()).unwrap();
    assert_eq!((found.toolchain.binding.dir, found.probes), (elsewhere.clone(), 1));
    assert_eq!(place.find(&place.python()).unwrap().probes, 0);
    std::fs::remove_file(place.site().join("easy-install.pth")).unwrap();
    assert!(matches!(place.find(&place.python()), Err(SystemError::NoTorch { .. })));
    // The newer way: a module that maps names.
    let mapping = format!(
        "from __future__ import annotations\nMAPPING: dict[str, str] = {{'functorch': '/f', 'torch': '{}/torch'}}\n",
        elsewhere.display()
    );
    place.write("__editable___torch_2_13_0_finder.py", &mapping);
    assert_eq!(place.find(&place.python()).unwrap().toolchain.binding.dir, elsewhere);
}

#[test]
fn torch_as_conda_packages_it() {
    let place = Place::with_torch("2.13.0");
    let (prefix, site) = (place.dir.path().join("venv"), place.site());
    // Headers and libraries stand with those of all packages.
    std::fs::remove_dir_all(prefix.join("include")).unwrap();
    std::fs::rename(site.join("torch/include"), prefix.join("include")).unwrap();
    for name in ["libc10.so", "libtorch_cpu.so"] {
        std::fs::rename(site.join("torch/lib").join(name), prefix.join("lib").join(name)).unwrap();
    }
    let toolchain = place.find(&place.python()).unwrap().toolchain;
    assert_eq!(toolchain.binding.dir, prefix);
    let dirs: Vec<&str> = toolchain.include_dirs.iter().map(|dir| dir.path.as_str()).collect();
    assert_eq!(dirs, ["include", "include/torch/csrc/api/include"]);
    let sonames: Vec<&str> = toolchain.exports.iter().map(|library| library.soname.as_str()).collect();
    assert_eq!(sonames, ["libc10.so", "libtorch_cpu.so"]);
}

#[test]
fn the_users_own_packages_count_where_python_sees_them() {
    let place = Place::with_torch("2.13.0");
    let (home, version) = (place.dir.path().join("home"), place.site().parent().unwrap().file_name().unwrap().to_owned());
    let own = home.join(".local/lib").join(version).join("site-packages");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::rename(place.site().join("torch"), own.join("torch")).unwrap();
    run(place.dir.path(), "python3", &["-m", "venv", "--without-pip", "--system-site-packages", "shared"]);
    let find = |python: &Path| {
        let (cache_dir, interrupt, ambient) = (place.dir.path().join("cache"), Interrupt::new(), [("HOME".into(), home.clone().into())]);
        torch_from(&SystemSearch {
            python,
            path: &place.path,
            ambient: &ambient,
            cache_dir: &cache_dir,
            limit: ANSWER_LIMIT,
            interrupt: &interrupt,
        })
    };
    assert_eq!(find(&place.dir.path().join("shared/bin/python")).unwrap().toolchain.binding.dir, own);
    let Err(SystemError::NoTorch { directories, .. }) = find(&place.python()) else { panic!("an environment of its own") };
    assert_eq!(directories, [place.site()]);
}
