//! A directory with everything that a run of the binary needs, and the run as text that is the same on every machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use kiln_format::Version;
use kiln_toolchain::{Catalog, CudaUse, Part, ProvisionOptions, Provisioner, RetryPolicy, WheelPin};
use regex::Regex;

/// The platform of the tests in the catalog.
pub(crate) const PLATFORM: &str = "linux-x86_64";

/// A directory of a test. The command's directory is `relu` in it, its `PATH` is `bin`.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    environment: Vec<(String, String)>,
    program: PathBuf,
    user: Option<u32>,
}

impl Place {
    /// A place with a compiler, the places of torch and tvm-ffi in the store, and an empty project directory.
    pub(crate) fn new() -> Self {
        let this = Self::without_torch();
        let catalog = Catalog::embedded().unwrap();
        let torch = catalog.releases().iter().map(|release| ("torch", this.torch(&release.version), "torch/include"));
        let here = catalog.tvm_ffi_releases().iter().filter(|release| release.platform == PLATFORM);
        let tvm_ffi = here.map(|release| ("tvm-ffi", this.tvm_ffi(&release.version), "tvm_ffi/include"));
        for release in catalog.tvm_ffi_releases().iter().filter(|release| release.platform == PLATFORM) {
            let (name, parts) = kiln::call::runtime::wheel_tree(release);
            put_tree(&name, &this.provided(|provisioner| provisioner.planned_tree(&name, &parts).dir));
        }
        for (name, files, include) in torch.chain(tvm_ffi) {
            fs::create_dir_all(files.join(include)).unwrap();
            put_tree(name, &files);
        }
        this
    }

    /// A place with a compiler, an empty store and an empty project directory.
    pub(crate) fn without_torch() -> Self {
        let dir = tempfile::Builder::new().prefix("kiln-messages-").tempdir().unwrap();
        for name in ["home", "bin", "cache", "relu"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["g++", "as", "ld"] {
            std::os::unix::fs::symlink(real_program(name), dir.path().join("bin").join(name)).unwrap();
        }
        let program = PathBuf::from(env!("CARGO_BIN_EXE_kiln"));
        Self { dir, environment: Vec::new(), program, user: None }
    }

    /// A place with a small project that compiles.
    pub(crate) fn with_project() -> Self {
        let this = Self::new();
        this.write_project();
        this
    }

    /// Writes a small project that compiles into `relu`.
    pub(crate) fn write_project(&self) {
        self.write("relu/build.toml", BUILD_TOML);
        self.write("relu/torch-ext/relu/__init__.py", "from ._ops import ops\n");
        self.write("relu/torch-ext/binding.cpp", BINDING);
        self.write("relu/cpu/relu.cpp", "int relu(int x) { return x > 0 ? x : 0; }\n");
    }

    /// The same place with commands run by a user who may write to the store and to the home only.
    pub(crate) fn into_unprivileged(mut self) -> Self {
        self.set_mode(".", 0o755);
        for name in ["home", "cache"] {
            self.set_mode(name, 0o777);
        }
        if rustix::process::geteuid().is_root() {
            // Nobody else may look into the directory that the binary was built in.
            let copy = self.path("kiln");
            fs::copy(&self.program, &copy).unwrap();
            (self.program, self.user) = (copy, Some(65_534));
        }
        self
    }

    /// A path in the place.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if name == "." { self.dir.path().to_owned() } else { self.dir.path().join(name) }
    }

    /// Where the headers of a torch release would be.
    pub(crate) fn torch(&self, version: &Version) -> PathBuf {
        self.provided(|provisioner| provisioner.planned_torch(version, PLATFORM).unwrap().binding.dir)
    }

    /// Where the headers of a tvm-ffi release would be.
    fn tvm_ffi(&self, version: &Version) -> PathBuf {
        self.provided(|provisioner| provisioner.planned_tvm_ffi(version, PLATFORM).unwrap().binding.dir)
    }

    /// The wheels of a CUDA toolkit that kernels with torch are compiled with.
    pub(crate) fn cuda_wheels(&self, release: &str) -> Vec<WheelPin> {
        Self::cuda_tree(release).1.into_iter().map(|part| part.wheel).collect()
    }

    /// Puts the place of a CUDA toolkit into the store.
    pub(crate) fn put_cuda(&self, release: &str) {
        let (name, parts) = Self::cuda_tree(release);
        put_tree(&name, &self.provided(|provisioner| provisioner.planned_tree(&name, &parts).dir));
    }

    fn cuda_tree(release: &str) -> (String, Vec<Part>) {
        let catalog = Catalog::embedded().unwrap();
        kiln_cuda::wheel_tree(&catalog, &Version::parse(release).unwrap(), PLATFORM, &[CudaUse::TorchHeaders]).unwrap()
    }

    fn provided(&self, ask: impl FnOnce(&Provisioner<'_>) -> PathBuf) -> PathBuf {
        let options = ProvisionOptions { cache_dir: self.path("cache"), lower: Vec::new(), offline: true, retry: RetryPolicy::default() };
        let catalog = Catalog::embedded().unwrap();
        let provisioner = Provisioner::new(&catalog, options, &|| unreachable!("nothing is fetched"), &|_| {});
        ask(&provisioner)
    }

    /// Writes a file with its directories.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Replaces a text that the file has.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.write(name, text.replace(from, to));
    }

    /// Writes a shell script and makes it a program.
    pub(crate) fn script(&self, name: &str, text: &str) {
        let path = self.path(name);
        let _none_before = fs::remove_file(&path);
        self.write(name, format!("#!/bin/sh\n{text}"));
        self.set_mode(name, 0o755);
    }

    /// Puts a script in the place of the compiler. It may go on to the real one as `"$CXX"`.
    pub(crate) fn compiler(&self, text: &str) {
        self.script("bin/g++", &format!("CXX='{}'\n{text}exec \"$CXX\" \"$@\"\n", real_program("g++").display()));
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes a link.
    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    /// Sets a variable of the commands.
    pub(crate) fn env(&mut self, name: &str, value: &str) -> &mut Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The command, in the caller's working directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().stdin(Stdio::null());
        command.env("PATH", self.path("bin")).env("HOME", self.path("home")).env("KILN_CACHE_DIR", self.path("cache"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(user) = self.user {
            std::os::unix::process::CommandExt::uid(&mut command, user);
        }
        command
    }

    /// Runs the command.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_in("relu", args)
    }

    /// Runs the command in another directory of the place.
    pub(crate) fn run_in(&self, directory: &str, args: &[&str]) -> Run {
        let output = self.command(args).current_dir(self.path(directory)).output().unwrap();
        Run { code: output.status.code(), stdout: output.stdout, stderr: output.stderr, dir: self.dir.path().to_owned() }
    }

    /// Runs the command; the whole of what it says.
    pub(crate) fn say(&self, args: &[&str]) -> String {
        self.run(args).to_string()
    }
}

/// What a store says of a tree that it has made and that is whole.
fn put_tree(name: &str, files: &Path) {
    let tree = serde_json::json!({
        "schema": 1, "name": name, "digest": "0", "parts": [], "terms": [], "redistributable": false,
    });
    fs::create_dir_all(files).unwrap();
    fs::write(files.with_file_name("tree.json"), tree.to_string()).unwrap();
    fs::write(files.with_file_name("settled"), "").unwrap();
}

/// A command that ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    dir: PathBuf,
}

impl Run {
    /// Standard error, masked.
    pub(crate) fn errors(&self) -> String {
        self.masked(&self.stderr)
    }

    /// The JSON objects on standard output.
    pub(crate) fn objects(&self) -> Vec<serde_json::Value> {
        let text = String::from_utf8(self.stdout.clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|cause| panic!("{cause}: {line}"))).collect()
    }

    /// Text without what differs from run to run and from machine to machine.
    fn masked(&self, bytes: &[u8]) -> String {
        // Compiled once: a mask is a few patterns, but there are hundreds of runs.
        static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
            [
                (r"\b[0-9a-f]{32}\b", "[step]"),
                (r"\b\d+\.\d s\b", "[n] s"),
                (r"\b\d+ ms\b", "[n] ms"),
                (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
                (r"\(process \d+\)", "(process [n])"),
                (r"_relu_cpu_[a-z2-7]{13}", "_relu_cpu_[id]"),
                // The first build of each place makes what all builds of a user share.
                (r"(?m)^ +Preparing .*\n", ""),
                // Which flags there are is the business of other tests.
                (r"(?m)^(  command: .*g\+\+) .* (-c \S+|-o \S+\.so) .*$", "$1 [flags] $2 [..]"),
            ]
            .map(|(pattern, mask)| (Regex::new(pattern).unwrap(), mask))
            .into()
        });
        let text = String::from_utf8_lossy(bytes).replace(&self.dir.display().to_string(), "[dir]");
        MASKS.iter().fold(text, |text, (pattern, mask)| pattern.replace_all(&text, *mask).into_owned())
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit code {code}")?,
            None => writeln!(f, "ended by a signal")?,
        }
        for (name, bytes) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !bytes.is_empty() {
                write!(f, "--- {name} ---\n{}", self.masked(bytes))?;
            }
        }
        Ok(())
    }
}

/// The project file of [`Place::write_project`].
pub(crate) const BUILD_TOML: &str = r#"[general]
name = "relu"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[torch]
src = ["torch-ext/binding.cpp"]

[kernel.relu_cpu]
backend = "cpu"
depends = []
src = ["cpu/relu.cpp"]
"#;

/// A binding that needs no header but the generated one.
pub(crate) const BINDING: &str = "#include \"registration.h\"\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME)\n";

/// Where the machine has a program.
pub(crate) fn real_program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("the tests need `{name}`"))
}
