//! `kiln doctor`, and that it agrees with `kiln build`.

use std::path::Path;
use std::process::Command;

use kiln_test_server::FixtureServer;

use crate::place::{Place, Run, real_program};

/// What doctor says, without what differs from machine to machine.
fn say(place: &Place, args: &[&str]) -> String {
    masked(&place.run_in("home", &[&["doctor"], args].concat()))
}

fn masked(run: &Run) -> String {
    let masks = [
        (r"(?m)^[^\n]+, x86_64-linux$", "[system], x86_64-linux"),
        (r"\d+\.\d+ GiB free|\d+ MiB free, which is little", "[room] free"),
        (r"(g\+\+|clang\+\+|Python|git) \d+(\.\d+)+", "$1 [version]"),
        (r"run `(apt|dnf|apk|pacman|zypper) [^`]*`", "run `[install]`"),
        (r"identity [0-9a-f]{64}", "identity [digest]"),
    ];
    masks.iter().fold(run.to_string(), |text, (mask, shown)| regex::Regex::new(mask).unwrap().replace_all(&text, *shown).into_owned())
}

/// The error that a run ends with: its code and message.
fn error_of(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| Some(line[line.find("error[")?..].to_owned()))
}

/// Doctor and build on the same place: where one says no the other fails with the same words, where one says yes the other starts.
fn agree(place: &Place, args: &[&str]) -> bool {
    let asked = place.run(&[&["doctor"], args].concat());
    let built = place.run(&[&["build", "-j1"], args].concat());
    let (asked_text, built_text) = (asked.to_string(), built.errors());
    let starts = built_text.contains("Compiling ") || built.code == Some(0);
    assert_eq!(asked.code, Some(if starts { 0 } else { 1 }), "{asked_text}\n{built_text}");
    if !starts {
        let report = asked_text.split("--- stderr ---").next().unwrap();
        assert_eq!(error_of(report), error_of(&built_text), "{asked_text}\n{built_text}");
    }
    starts
}

#[test]
fn a_machine_that_is_well() {
    let place = Place::new();
    place.link("bin/git", real_program("git"));
    insta::assert_snapshot!(say(&place, &["--offline", "cpu"]), @"
    exit code 0
    --- stdout ---
    [system], x86_64-linux

    C++ compilers
      taken    g++ [version] at [dir]/bin/g++

    Python and torch
      none     nothing was found
               hint: run `[install]`

    Git
      taken    git [version] at [dir]/bin/git

    Store
      taken    directory at [dir]/cache: [room] free

    Package index
      none     no package index is configured
               hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
                 `--index`
                 `kiln.toml`
                 `KILN_INDEX_URL`
                 `UV_DEFAULT_INDEX`
                 `PIP_INDEX_URL`
                 pip's configuration files
                 the installed Python's pip: there is no `python3` on PATH

    Would a build of a kernel start?
      yes      cpu: torch215-cxx11-cpu-x86_64-linux with g++ [version], torch 2.15.0 of the store
    ");
}

#[test]
fn a_bare_machine() {
    let place = Place::without_torch();
    for name in ["g++", "as", "ld"] {
        std::fs::remove_file(place.path("bin").join(name)).unwrap();
    }
    insta::assert_snapshot!(say(&place, &["--offline", "cpu"]), @"
    exit code 1
    --- stdout ---
    [system], x86_64-linux

    C++ compilers
      none     nothing was found
               hint: run `[install]`

    Python and torch
      none     nothing was found
               hint: run `[install]`

    Git
      none     `git` is not installed; builds take the content of a project for its state
               hint: run `[install]`

    Store
      taken    directory at [dir]/cache: [room] free

    Package index
      none     no package index is configured
               hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
                 `--index`
                 `kiln.toml`
                 `KILN_INDEX_URL`
                 `UV_DEFAULT_INDEX`
                 `PIP_INDEX_URL`
                 pip's configuration files
                 the installed Python's pip: there is no `python3` on PATH

    Would a build of a kernel start?
      no       cpu: error[no-compiler]: no C++ compiler found: PATH has none of `g++`, `c++`, `clang++`, `g++-N`, `clang++-N`
               hint: run `[install]`
    ");
    place.write_project();
    assert!(!agree(&place, &["--offline"]));
}

#[test]
fn a_compiler_without_its_headers() {
    let mut place = Place::with_project();
    place.env("CXX", "g++ -nostdinc++");
    insta::assert_snapshot!(say(&place, &["--offline", "cpu", "-v"]), @"
    exit code 1
    --- stdout ---
    [system], x86_64-linux

    C++ compilers
      lacks    C++ compiler at [dir]/bin/g++: `cstddef`
               hint: run `[install]`
               looked at --cxx, kiln.toml, CXX, CC, PATH

    Python and torch
      none     nothing was found
               hint: run `[install]`
               looked at --torch-from, VIRTUAL_ENV, CONDA_PREFIX, `python3` and `python` on PATH

    Git
      none     `git` is not installed; builds take the content of a project for its state
               hint: run `[install]`
               looked at PATH

    Store
      taken    directory at [dir]/cache: [room] free

    Package index
      none     no package index is configured
               hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
                 `--index`
                 `kiln.toml`
                 `KILN_INDEX_URL`
                 `UV_DEFAULT_INDEX`
                 `PIP_INDEX_URL`
                 pip's configuration files
                 the installed Python's pip: there is no `python3` on PATH

    Would a build of a kernel start?
      no       cpu: error[host-compiler]: the C++ compiler `[dir]/bin/g++` lacks `cstddef`
               hint: run `[install]`
    ");
    assert!(!agree(&place, &["--offline"]));
    place.env("CXX", "g++");
    assert!(agree(&place, &["--offline"]));
}

#[test]
fn torch_that_would_have_to_be_fetched() {
    let place = Place::without_torch();
    place.write_project();
    assert!(!agree(&place, &["--offline"]));
    // No index at all.
    assert!(!agree(&place, &[]));
    // One that does not answer, with a password that nobody shows.
    let index = "http://user:secret@127.0.0.1:1/simple/";
    assert!(!agree(&place, &["--index", index]));
    let text = say(&place, &["--index", index, "cpu"]);
    assert!(text.contains("http://127.0.0.1:[port], from the value of `--index`") && !text.contains("secret"), "{text}");
}

#[test]
fn a_python_without_torch_and_one_that_is_none() {
    let mut place = Place::with_project();
    let made = Command::new(real_program("python3")).args(["-m", "venv", "--without-pip"]).arg(place.path("bare")).status().unwrap();
    assert!(made.success());
    let bare = place.path("bare/bin/python").display().to_string();
    assert!(!agree(&place, &["--offline", "--torch-from", &bare]));
    place.script("bin/python3", &format!("exec '{bare}' \"$@\"\n"));
    assert!(!agree(&place, &["--offline", "--torch-from", "python3"]));
    assert!(!agree(&place, &["--offline", "--torch-from", "nowhere/python"]));
    place.script("venv/bin/python", "echo 'this is not Python' >&2\nexit 7\n");
    let venv = place.path("venv").display().to_string();
    place.env("VIRTUAL_ENV", &venv).env("CONDA_PREFIX", "/nowhere");
    let text = say(&place, &["--offline", "cpu"]);
    let section: Vec<&str> = text.lines().skip_while(|line| *line != "Python and torch").take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(section.join("\n"), @"
    Python and torch
      unusable Python at [dir]/venv/bin/python, from VIRTUAL_ENV: `[dir]/venv/bin/python` does not work as a Python: it ended with exit code 7: this is not Python
      found    Python [version] at [dir]/bin/python3, from `python3` on PATH: no torch
      unusable Python, from CONDA_PREFIX: `/nowhere` does not exist
    ");
    assert!(agree(&place, &["--offline"]));
}

/// The line of a verdict, without the name of its variant and the compiler.
fn verdict(text: &str, backend: &str) -> String {
    let lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with("Would a build"));
    let mut lines = lines.skip_while(|line| !line.contains(&format!(" {backend}: ")));
    let first = lines.next().unwrap_or_else(|| panic!("{text}")).split_whitespace().collect::<Vec<_>>().join(" ");
    [first].into_iter().chain(lines.take_while(|line| line.starts_with("hint: ")).map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

#[test]
fn cuda_whose_wheels_would_have_to_be_fetched() {
    let place = Place::new();
    // Nothing of CUDA is in the store, and nothing may be fetched.
    let text = say(&place, &["--offline", "cuda"]);
    assert!(text.starts_with("exit code 1\n"), "{text}");
    insta::assert_snapshot!(verdict(&text, "cuda"));
    // The processor's kernels would be built all the same, and one is enough where none was named.
    let text = say(&place, &["--offline"]);
    assert!(text.starts_with("exit code 0\n") && verdict(&text, "cpu").starts_with("yes cpu: "), "{text}");
    assert!(verdict(&text, "cuda").starts_with("no cuda: error[offline]: "), "{text}");
    // The command that is named knows what it is to fetch.
    let fetched = place.say(&["toolchain", "fetch", "cuda==13.2", "--offline"]);
    assert!(fetched.contains("error[offline]: cuda-13.2.2-linux-x86_64 (nvidia-"), "{fetched}");
    assert!(
        place.say(&["toolchain", "fetch", "cuda==9.0"]).contains("error[unknown-cuda]: CUDA 9.0 for linux-x86_64 is not in the catalog")
    );
    assert!(place.say(&["toolchain", "path", "cuda==13.2"]).contains("fetch it with `kiln toolchain fetch cuda==13.2`"));

    place.write_project();
    place.edit("relu/build.toml", "backends = [\"cpu\"]", "backends = [\"cuda\"]");
    place.edit("relu/build.toml", "backend = \"cpu\"", "backend = \"cuda\"");
    place.edit("relu/build.toml", "cpu/relu.cpp", "cuda/relu.cu");
    place.write("relu/cuda/relu.cu", "int relu(int x) { return x; }\n");
    assert!(!agree(&place, &["--offline"]));

    // An index that has the wheels, all but one of them, and none.
    let server = FixtureServer::start().unwrap();
    let wheels = place.cuda_wheels("13.2");
    assert!(wheels.len() >= 5, "{wheels:?}");
    for wheel in &wheels {
        server.add_file(&wheel.project, &wheel.file, b"wheel".to_vec(), Some(wheel.sha256.clone()));
    }
    let index = server.index();
    let text = say(&place, &["--index", &index, "cuda"]);
    assert!(text.starts_with("exit code 0\n"), "{text}");
    assert!(verdict(&text, "cuda").ends_with("torch 2.15.0 of the store, CUDA 13.2.2 of the index"), "{text}");
    server.remove(&wheels[0].file);
    assert!(!agree(&place, &["--index", &index]));
    // Once they are in the store, nothing is fetched.
    place.put_cuda("13.2");
    let text = say(&place, &["--offline", "cuda"]);
    assert!(text.starts_with("exit code 0\n"), "{text}");
    assert!(verdict(&text, "cuda").ends_with("torch 2.15.0 of the store, CUDA 13.2.2 of the store"), "{text}");
    let run = place.run_in("home", &["doctor", "--offline", "--format", "json", "cuda"]);
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["verdicts"][0]["toolkits"], serde_json::json!([{"name": "CUDA", "release": "13.2.2", "from": "store"}]));
}

#[test]
fn a_rocm_that_is_there_and_one_that_lacks_parts() {
    let mut place = Place::new();
    for name in ["bin/hipcc", "llvm/bin/clang++", "llvm/bin/ld.lld"] {
        place.script(&format!("rocm/{name}"), "exit 1\n");
    }
    for name in ["include/hip/hip_runtime.h", "amdgcn/bitcode/ocml.bc", "lib/libamdhip64.so"] {
        place.write(&format!("rocm/{name}"), "");
    }
    place.write("rocm/.info/version", "6.4.1-83\n");
    let rocm = place.path("rocm").display().to_string();
    place.env("ROCM_PATH", &rocm);
    let section = |text: &str| text.lines().skip_while(|line| *line != "ROCm").nth(1).unwrap_or_default().trim().to_owned();
    let text = say(&place, &["--offline", "rocm"]);
    assert_eq!(section(&text), "found    ROCm 6.4.1 at [dir]/rocm, from ROCM_PATH");
    // A toolkit is found; whether a build starts is another question, and its answer is that of a build.
    assert!(text.starts_with("exit code 1\n"), "{text}");
    std::fs::remove_file(place.path("rocm/lib/libamdhip64.so")).unwrap();
    let text = say(&place, &["--offline", "rocm"]);
    assert_eq!(section(&text), "lacks    ROCm 6.4.1 at [dir]/rocm, from ROCM_PATH: `libamdhip64.so`");
}

/// Conda keeps headers and libraries of all packages together, in the prefix. The Python of this one is that of an environment, which is
/// what it says its prefix is.
#[test]
fn a_torch_of_conda() {
    let mut place = Place::with_project();
    let python = real_program("python3");
    let made = Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(place.path("env")).status().unwrap();
    assert!(made.success());
    let lib = std::fs::read_dir(place.path("env/lib")).unwrap().next().unwrap().unwrap().file_name();
    let site = format!("env/lib/{}/site-packages", lib.to_str().unwrap());
    place.write("conda/conda-meta/history", "");
    place.script("conda/bin/python", &format!("exec '{}/env/bin/python' \"$@\"\n", place.path(".").display()));
    place.write(&format!("{site}/torch/version.py"), "__version__ = '2.13.0'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n");
    place.write(&format!("{site}/torch-2.13.0.dist-info/RECORD"), "torch/version.py,sha256=x,1\n");
    place.write("env/include/torch/csrc/api/include/torch/all.h", "");
    place.write("env/in.cpp", "namespace c10 { void present(int) {} }");
    let library = place.path("env/lib/libc10.so");
    let mut compile = Command::new(real_program("g++"));
    compile.args(["-shared", "-fPIC", "-Wl,-soname,libc10.so", "-o"]).arg(library).arg(place.path("env/in.cpp"));
    assert!(compile.status().unwrap().success());
    let conda = place.path("conda").display().to_string();
    place.env("CONDA_PREFIX", &conda);
    let text = say(&place, &["--offline", "cpu"]);
    assert!(
        text.contains("  found    Python [version] at [dir]/conda/bin/python, from CONDA_PREFIX: conda environment, torch 2.13.0\n"),
        "{text}"
    );
    let python = format!("{conda}/bin/python");
    assert!(agree(&place, &["--offline", "--torch-from", &python]));
    let text = say(&place, &["--offline", "--torch-from", &python, "cpu"]);
    assert!(verdict(&text, "cpu").contains("torch213-") && verdict(&text, "cpu").ends_with("torch 2.13.0 of the python"), "{text}");
    // Variants would be named after one torch and compiled with the other, and units measured with it.
    for command in ["build", "lint"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(place.say(&[command, "--offline", "--torch-from", &python, "--torch", "2.15"]), @"
            exit code 2
            --- stderr ---
            error[usage]: `--torch 2.15`: the Python of `--torch-from` has torch 2.13.0
            hint: leave out one of the two options
            ");
        }
    }
    // Without its library nothing can be linked: both say so.
    std::fs::remove_file(place.path("env/lib/libc10.so")).unwrap();
    assert!(!agree(&place, &["--offline", "--torch-from", &python]));
}

/// With the programs and the environment that the tests themselves have, whatever they are.
#[test]
fn this_machine() {
    let mut place = Place::with_project();
    for name in ["PATH", "CXX", "CC", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "ROCM_PATH"] {
        if let Ok(value) = std::env::var(name) {
            place.env(name, &value);
        }
    }
    // What is on the real PATH can build, or the tests could not.
    assert!(agree(&place, &["--offline"]));
    let text = say(&place, &["--offline", "-v"]);
    let system = std::fs::read_to_string("/etc/os-release").unwrap();
    let name = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap().trim_matches('"');
    let run = place.run(&["doctor", "--offline"]);
    assert!(String::from_utf8_lossy(&run.stdout).starts_with(&format!("{name}, ")), "{run}");
    // Its compiler and its Python are those that the shell would run.
    let compiler = Command::new("sh").args(["-c", "command -v ${CXX:-g++}"]).output().unwrap();
    let compiler = String::from_utf8(compiler.stdout).unwrap();
    assert!(text.contains(&format!(" at {}\n", compiler.trim())), "{compiler}{text}");
    assert!(text.contains(&format!(" at {}, from ", real_program("python3").display())), "{text}");
}

#[test]
fn places_that_cannot_be_written_to() {
    // The project: work goes to the cache, the output cannot be made.
    let place = Place::with_project().into_unprivileged();
    assert!(!agree(&place, &["--offline"]));
    // The cache: nothing can be kept there.
    place.set_mode("relu", 0o777);
    assert!(agree(&place, &["--offline"]));
    place.set_mode("cache", 0o555);
    std::fs::remove_file(place.path("cache/host-compilers-v1.json")).unwrap();
    // What is known of the compiler is not kept then; everything else is there.
    assert!(agree(&place, &["--offline"]));
    let text = say(&place, &["--offline", "cpu"]);
    assert!(text.contains("unusable directory at [dir]/cache: cannot write to `[dir]/cache`: permission denied"), "{text}");
}

#[test]
fn a_project_with_faults() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "depends = []", "depend = []");
    assert!(!agree(&place, &["--offline"]));
    place.write_project();
    place.edit("relu/build.toml", "backends = [\"cpu\"]", "backends = [\"cpu\", \"xpu\"]");
    assert!(agree(&place, &["--offline"]));
    // What the project has no kernel for, and what it has only Python for.
    for (backend, starts) in [("cuda", false), ("xpu", true)] {
        let (asked, built) = (place.run(&["doctor", "--offline", backend]), place.run(&["build", "--offline", "--backend", backend]));
        assert_eq!((asked.code == Some(0), built.code == Some(0)), (starts, starts), "{asked}{built}");
        assert_eq!(error_of(&asked.to_string()), error_of(&built.errors()), "{asked}{built}");
    }
}

#[test]
fn programs_read_it_too() {
    let place = Place::with_project();
    let run = place.run(&["doctor", "--offline", "--format", "json", "cpu"]);
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let names: Vec<&str> = report["sections"].as_array().unwrap().iter().map(|section| section["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cxx", "python", "git", "store", "index"]);
    let cxx = &report["sections"][0]["items"][0];
    assert_eq!((cxx["state"].as_str(), cxx["name"].as_str()), (Some("taken"), Some("g++")));
    assert_eq!(Path::new(cxx["path"].as_str().unwrap()), place.path("bin/g++"));
    assert_eq!(report["project"].as_str().map(Path::new), Some(place.path("relu").canonicalize().unwrap().as_path()));
    assert_eq!(report["verdicts"][0]["starts"], true);
    assert_eq!(report["verdicts"][0]["frameworks"][0]["from"], "store");
    // Nothing is left behind in the project.
    assert!(!place.path("relu/build").exists() && !place.path("relu/.kiln").exists());
}

#[test]
fn what_is_no_backend() {
    let place = Place::with_project();
    for (name, said) in [
        ("gpu", "`gpu`: unknown backend `gpu`\nhint: did you mean `cuda`? there is "),
        ("cdua", "`cdua`: unknown backend `cdua`\nhint: did you mean `cuda`? there is "),
        ("everything", "`everything`: unknown backend `everything`\nhint: there is "),
        ("", "`''`: unknown backend ``\nhint: there is "),
        (".", "`.` is a path, "),
        ("..", "`..` is a path, "),
        ("relu", "`relu` is a path, "),
        ("relu/build.toml", "`relu/build.toml` is a path, "),
        ("/nowhere", "`/nowhere` is a path, "),
    ] {
        let run = place.run_in("", &["doctor", name]);
        assert_eq!((run.code, run.stdout.is_empty()), (Some(2), true), "{run}");
        assert!(run.errors().starts_with(&format!("error[usage]: {said}")), "{name}: {run}");
    }
    insta::assert_snapshot!(place.run_in("", &["doctor", "relu"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `relu` is a path, and `kiln doctor` takes names of backends
    hint: for the backends of a project run `kiln doctor` in its directory; else there is `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    ");
    insta::assert_snapshot!(place.run_in("", &["doctor", "cpu", "cudaa"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `cudaa`: unknown backend `cudaa`
    hint: did you mean `cuda`? there is `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    ");
}

/// Runs `script` as `sh` in a mount namespace of its own, in which it may mount small file systems. `$1` is the place, `$2` is `kiln`.
fn with_mounts(place: &Place, directory: &str, script: &str) -> (Option<i32>, String) {
    let kiln = place.command(&[]);
    let mut command = Command::new(real_program("unshare"));
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--", "/bin/sh", "-c", script, "sh"]).arg(place.path(".")).arg(kiln.get_program());
    command.env_clear().envs(kiln.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(place.path(directory));
    let output = command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::inherit()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_store_on_a_full_disk() {
    let server = FixtureServer::start().unwrap();
    let catalog = kiln_toolchain::Catalog::embedded().unwrap();
    for release in catalog.releases().iter().filter(|release| release.platform == "linux-x86_64") {
        server.add_file("torch", &release.wheel.file, b"wheel".to_vec(), Some(release.wheel.sha256.clone()));
    }
    let mut place = Place::without_torch();
    place.write_project();
    place.env("KILN_INDEX_URL", &server.index());
    // Where the wheel is gets known while there is room, then there is none, then only too little.
    let script = "/usr/bin/mount -t tmpfs -o size=64m tmpfs \"$1/cache\" || exit 99
        \"$2\" doctor cpu >/dev/null || exit 98
        /usr/bin/dd if=/dev/zero of=\"$1/cache/filling\" bs=64k 2>/dev/null
        \"$2\" doctor cpu; echo \"exit code $?\"
        /usr/bin/truncate -s 60m \"$1/cache/filling\"; \"$2\" doctor cpu >/dev/null; echo \"exit code $?\"
        /bin/rm \"$1/cache/filling\"; exec \"$2\" doctor cpu";
    let (code, said) = with_mounts(&place, "relu", script);
    assert_eq!(code, Some(0), "{said}");
    let codes: Vec<&str> = said.lines().filter(|line| line.starts_with("exit code ")).collect();
    assert_eq!(codes, ["exit code 1", "exit code 1"], "{said}");
    assert!(said.contains("  unusable directory at ") && said.contains("the file system is full"), "{said}");
    let refusal =
        format!("no       cpu: error[store]: cannot write to `{}/cache/toolchains-v1`: no storage space", place.path(".").display());
    assert!(said.contains(&refusal), "{said}");
}

#[test]
fn a_project_on_a_full_disk() {
    let place = Place::with_project();
    std::fs::create_dir(place.path("relu/.kiln")).unwrap();
    let script = "/usr/bin/mount -t tmpfs -o size=1m tmpfs \"$1/relu/.kiln\" || exit 99
        /usr/bin/dd if=/dev/zero of=\"$1/relu/.kiln/filling\" bs=64k 2>/dev/null
        \"$2\" doctor --offline cpu; echo \"exit code $?\"
        /usr/bin/mount -o remount,size=64m \"$1/relu/.kiln\" || exit 98; exec \"$2\" doctor --offline cpu";
    let (code, said) = with_mounts(&place, "relu", script);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("error[work-directory]: cannot use `") && said.contains("\nexit code 1\n"), "{said}");
}

/// Whoever has no home has no place for what all projects share; the directory of this one run is none.
#[test]
fn a_user_without_a_home() {
    let mut place = Place::without_torch();
    place.write_project();
    let temporary = place.path("home").display().to_string();
    place.env("HOME", "").env("KILN_CACHE_DIR", "").env("TMPDIR", &temporary);
    let text = say(&place, &["--offline", "cpu"]);
    let section: Vec<&str> = text.lines().skip_while(|line| *line != "Store").take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(section.join("\n"), @"
    Store
      none     none of KILN_CACHE_DIR, XDG_CACHE_HOME and HOME is set: each project keeps what it needs in `.kiln/cache`
               hint: a directory for all projects can be given with `--cache-dir DIR`
    ");
    assert!(!text.contains("kiln-doctor-"), "{text}");
    assert_eq!(std::fs::read_dir(place.path("home")).unwrap().count(), 0, "nothing is left");
    // A project has one.
    let text = place.say(&["doctor", "--offline", "cpu"]);
    assert!(text.contains("  taken    directory at [dir]/relu/.kiln/cache: "), "{text}");
}
