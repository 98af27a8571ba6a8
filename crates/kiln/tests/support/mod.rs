//! What the tests of the binary share: a sandbox without the user's environment, small projects, and a count of started processes.
//!
//! Torch headers come from the real index, once per target directory; everything else is made for each test.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this module")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

pub mod drivers;
pub mod index;
pub mod project;
pub mod read_only;
pub mod started;
pub mod tree;
pub mod tvm_ffi;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::Value;

pub use self::started::Started;

/// The torch releases that the shared cache has.
pub const TORCH: [&str; 3] = ["2.11.0", "2.13.0", "2.15.0"];
/// The tvm-ffi release that it has: what variants for 0.1 are compiled against.
pub const TVM_FFI: &str = "0.1.9";

/// The binary under test.
pub fn kiln_program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_kiln"))
}

/// The cache directory that all tests of this target directory share, filled with the headers of [`TORCH`] and [`TVM_FFI`]. Kiln's own locks make
/// it safe for test processes that start together.
pub fn shared_cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kiln-cache");
        // The only command that sees the caller's environment: it may name the index and the way to it.
        let mut command = Command::new(kiln_program());
        command.args(["toolchain", "fetch"]).args(TORCH.map(|version| format!("torch=={version}"))).arg(format!("tvm-ffi=={TVM_FFI}"));
        let output = command.env("KILN_CACHE_DIR", &cache).stdin(Stdio::null()).output().expect("kiln starts");
        assert!(output.status.success(), "the tests need torch's headers: {}", text(&output.stderr));
        cache
    })
}

/// A directory with a home, a cache and a `PATH` of its own, in which every start of a compiler, of git or of Python is counted.
pub struct Sandbox {
    dir: tempfile::TempDir,
    cache: PathBuf,
}

impl Sandbox {
    /// A sandbox that has the shared torch headers, and the shared floor of the usual compiler.
    pub fn new() -> Self {
        static MADE: OnceLock<()> = OnceLock::new();
        MADE.get_or_init(|| {
            // What is made once for all projects is made before anything is counted.
            fs::create_dir_all(shared_cache().join("floors-v1")).unwrap();
            let first = Self::with_shared_links();
            let dir = project::ProjectBuilder::new().write(&first.path("first"));
            first.build(&dir, &[]);
        });
        Self::with_shared_links()
    }

    fn with_shared_links() -> Self {
        let this = Self::without_torch();
        fs::create_dir_all(&this.cache).unwrap();
        for name in ["toolchains-v1", "floors-v1"] {
            std::os::unix::fs::symlink(shared_cache().join(name), this.cache.join(name)).unwrap();
        }
        this
    }

    /// A sandbox whose cache is empty.
    pub fn without_torch() -> Self {
        let dir = tempfile::Builder::new().prefix("kiln-e2e-").tempdir().unwrap();
        for name in ["home", "bin"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        started::write_wrappers(&dir.path().join("bin"));
        let cache = dir.path().join("cache");
        Self { dir, cache }
    }

    /// The same sandbox with the cache elsewhere.
    pub fn with_cache(mut self, cache: PathBuf) -> Self {
        self.cache = cache;
        self
    }

    /// A path in the sandbox.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The cache directory.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Any program in the sandbox's environment, and nothing of the caller's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", self.path("bin")).env("HOME", self.path("home")).env("KILN_CACHE_DIR", &self.cache);
        // Git reads no settings of the machine or of the user.
        command.env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
        command
    }

    /// `kiln`, started in `dir`.
    pub fn kiln(&self, dir: &Path, args: &[&str]) -> Command {
        let mut command = self.command(kiln_program());
        command.args(args).current_dir(dir);
        command
    }

    /// Runs `kiln` in `dir` and collects what it says.
    pub fn run(&self, dir: &Path, args: &[&str]) -> Run {
        Run::of(&mut self.kiln(dir, args))
    }

    /// Runs `kiln build` with JSON messages; it must succeed.
    pub fn build(&self, dir: &Path, args: &[&str]) -> Run {
        let run = self.run(dir, &[&["build", "--message-format", "json"], args].concat());
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run
    }

    /// What was started since the last call, Kiln itself apart.
    pub fn started(&self) -> Started {
        Started::take(&self.path("bin"))
    }
}

/// A command that ended.
pub struct Run {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("the command starts"))
    }

    /// The JSON messages on standard output: every line must be an object with a `reason`.
    pub fn messages(&self) -> Vec<Value> {
        self.stdout.lines().map(message).collect()
    }

    /// The messages of one kind.
    pub fn reason(&self, reason: &str) -> Vec<Value> {
        self.messages().into_iter().filter(|message| message["reason"] == reason).collect()
    }

    /// How many steps ran, were up to date, failed and were skipped, by the last message.
    pub fn steps(&self) -> (u64, u64, u64, u64) {
        let last = self.reason("build-finished").pop().unwrap_or_else(|| panic!("no last message: {}{}", self.stdout, self.stderr));
        let count = |name: &str| last["steps"][name].as_u64().unwrap();
        (count("ran"), count("up_to_date"), count("failed"), count("skipped"))
    }

    /// Labels of the steps that ran with this verb, sorted.
    pub fn ran(&self, verb: &str) -> Vec<String> {
        let started = self.reason("step-started");
        let with_verb = started.iter().filter(|message| message["verb"] == verb);
        let mut labels: Vec<String> = with_verb.map(|message| message["label"].as_str().unwrap().to_owned()).collect();
        labels.sort();
        labels
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Kills a process that still runs after a minute, so that a test which waits for it fails instead of waiting for ever.
pub struct Deadline(std::sync::mpsc::Sender<()>);

impl Deadline {
    /// Watches `child` until the value is dropped.
    pub fn of(child: &Child) -> Self {
        let (alive, ended) = std::sync::mpsc::channel::<()>();
        let pid = rustix::process::Pid::from_child(child);
        std::thread::spawn(move || {
            if ended.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
                let _ended = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        });
        Self(alive)
    }
}

/// Whether a process ends, now or in a moment.
pub fn is_gone(process: &str) -> bool {
    let status = format!("/proc/{process}/status");
    (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !fs::read_to_string(&status).is_ok_and(|status| !status.contains("State:\tZ"))
    })
}

/// Reads one JSON message.
pub fn message(line: &str) -> Value {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|cause| panic!("no JSON: {cause}: {line}"));
    assert!(value.is_object() && value["reason"].is_string(), "no message: {line}");
    value
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
