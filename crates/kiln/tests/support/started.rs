//! Which programs were started: a directory of wrappers that write down their own start and become the real program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is wrapped: every program that Kiln, a compiler driver or git could look for on `PATH` during a build.
const WRAPPED: &[&str] = &[
    "g++", "gcc", "c++", "cc", "cpp", "clang++", "clang", "as", "ld", "ld.bfd", "ld.gold", "collect2", "ar", "nm", "objdump", "readelf",
    "git", "python3", "python", "sh", "uname", "ccache",
];
/// What is there without being counted, for the tests themselves.
const PLAIN: &[&str] = &["env", "sleep", "cat", "rm"];

/// Writes a wrapper for each program of the machine into `dir`.
///
/// The wrappers say nothing of `dir`, so that the compiler, which is identified by its content, is the same one in all sandboxes.
pub(super) fn write_wrappers(dir: &Path) {
    for name in WRAPPED {
        let Some(real) = real_program(name) else { continue };
        let script = format!(
            "#!/bin/sh\nIFS='\x1f'\nprintf '%s\\n' \"{name}\x1f$*\" >> \"${{0%/*}}/started.log\"\nexec '{}' \"$@\"\n",
            real.display()
        );
        let path = dir.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in PLAIN {
        std::os::unix::fs::symlink(real_program(name).unwrap(), dir.join(name)).unwrap();
    }
}

/// Where the machine has a program. Python is asked for itself: what is on `PATH` may be a script that chooses one by settings in
/// the user's home.
pub fn real_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())?;
    if name != "python3" && name != "python" {
        return Some(found);
    }
    let output = std::process::Command::new(found).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    Some(PathBuf::from(super::text(&output.stdout).trim())).filter(|python| python.is_file())
}

/// The programs that were started, with their arguments, in order.
#[derive(Clone, Debug, Default)]
pub struct Started(pub Vec<Vec<String>>);

impl Started {
    /// Reads and empties the log of the wrappers in `dir`.
    pub(super) fn take(dir: &Path) -> Self {
        let log = dir.join("started.log");
        let text = fs::read(&log).unwrap_or_default();
        let _missing = fs::remove_file(&log);
        let lines = String::from_utf8_lossy(&text).lines().map(|line| line.split('\x1f').map(str::to_owned).collect()).collect();
        Self(lines)
    }

    /// How many compiles of a unit: compiler drivers with `-c`.
    pub fn compiles(&self) -> usize {
        self.drivers().filter(|words| words.iter().any(|word| word == "-c")).count()
    }

    /// How many links of a library: compiler drivers with `-shared`.
    pub fn links(&self) -> usize {
        self.drivers().filter(|words| words.iter().any(|word| word == "-shared")).count()
    }

    /// Compiler drivers that were started to find something out.
    pub fn probes(&self) -> usize {
        self.drivers().filter(|words| !words.iter().any(|word| word == "-c" || word == "-shared")).count()
    }

    /// Starts of one program.
    pub fn of(&self, program: &str) -> Vec<&[String]> {
        self.0.iter().filter(|words| words.first().is_some_and(|word| word == program)).map(Vec::as_slice).collect()
    }

    /// Everything but git.
    pub fn beside_git(&self) -> Vec<&[String]> {
        self.0.iter().filter(|words| words.first().is_some_and(|word| word != "git")).map(Vec::as_slice).collect()
    }

    fn drivers(&self) -> impl Iterator<Item = &Vec<String>> {
        const DRIVERS: [&str; 7] = ["g++", "gcc", "c++", "cc", "cpp", "clang++", "clang"];
        self.0.iter().filter(|words| words.first().is_some_and(|word| DRIVERS.contains(&word.as_str())))
    }
}
