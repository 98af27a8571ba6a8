//! Asking a compiler what it is. The only place where processes are started to find something out.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use data_encoding::HEXLOWER;
use kiln_format::Version;
use kiln_object::elf::Machine;

use super::choice::{self, Resolved};
use super::runtime::{self, HostRuntime, RuntimeFile};
use super::{Family, HostCompiler, HostError, HostSearch, machine};
use crate::file_state::FileState;
use crate::process::{self, NoAnswer};
use crate::system::ANSWER_LIMIT;

/// A compiler that answered.
pub(super) struct Probed {
    /// What it is.
    pub(super) compiler: HostCompiler,
    /// The files that the answer holds for, as they were when they were read.
    pub(super) files: Vec<FileState>,
    /// Parts that were found by their name on PATH.
    pub(super) lookups: Vec<(String, PathBuf)>,
    /// How many questions were asked.
    pub(super) probes: u32,
}

/// The parts of a compiler, in the words of `-print-prog-name`, that decide what it makes.
const GNU_PARTS: &[&str] = &["cc1plus", "as", "collect2", "ld"];
/// Clang is one program but for the linker.
const CLANG_PARTS: &[&str] = &["ld"];

/// Asks everything. `dir` is for temporary files, or that of the search where it cannot be written to.
pub(super) fn probe(resolved: &Resolved, search: &HostSearch, dir: &Path) -> Result<Probed, HostError> {
    let scratch = std::fs::create_dir_all(dir).and_then(|()| tempfile::tempdir_in(dir));
    let scratch = scratch.or_else(|cause| search.scratch.as_ref().map_or(Err(cause), tempfile::tempdir_in));
    // The error as it comes names a directory that nobody knows.
    let scratch = scratch.map_err(|cause| HostError::io("write to", dir)(cause.kind().into()))?;
    let (program, mut args, family) = identify(resolved, search, scratch.path())?;
    let ask_target =
        |args: &[String]| Asker { program: &program, args, search, resolved, scratch: scratch.path(), probes: 0 }.ask(&["-dumpmachine"]);
    let mut target = ask_target(&args)?;
    let mut probes = 3;
    if let Some(wanted) = search.machine.or_else(machine::native).filter(|wanted| machine::of_triple(&target) != Some(*wanted)) {
        let told = args.iter().any(|arg| arg.starts_with("--target") || arg == "-target");
        if family == Family::Clang && !told {
            args.push(format!("--target={}", machine::triple(wanted)));
            target = ask_target(&args)?;
            probes += 1;
        }
        if machine::of_triple(&target) != Some(wanted) {
            return Err(HostError::OtherMachine { path: resolved.compiler.clone(), compiles_for: target, wanted });
        }
    }
    let width = args.iter().rfind(|arg| matches!(arg.as_str(), "-m64" | "-m32" | "-mx32"));
    if let (Some(width), Some(wanted)) = (width.filter(|width| *width != "-m64"), search.machine.or_else(machine::native)) {
        // No variant is for such a processor, and the name of the target stays the same.
        let compiles_for = format!("{target} {width}");
        return Err(HostError::OtherMachine { path: resolved.compiler.clone(), compiles_for, wanted });
    }
    let mut asker = Asker { program: &program, args: &args, search, resolved, scratch: scratch.path(), probes };

    let version = asker.ask(match family {
        // Since GCC 7 the first alone may give just the major number.
        Family::Gnu => &["-dumpfullversion", "-dumpversion"],
        Family::Clang => &["-dumpversion"],
    })?;
    let version = Version::parse(&version).map_err(|_| asker.broken(format!("it says that its version is `{version}`")))?;

    let mut programs = vec![resolved.compiler.clone()];
    programs.extend(resolved.launcher.clone());
    let mut lookups = Vec::new();
    for part in if family == Family::Gnu { GNU_PARTS } else { CLANG_PARTS } {
        programs.push(asker.part(part, &mut lookups)?);
    }
    let mut files = Vec::new();
    let mut identity = blake3::Hasher::new();
    for text in [target.as_str(), version.as_str()].into_iter().chain(resolved.args.iter().map(String::as_str)) {
        identity.update(text.as_bytes()).update(b"\0");
    }
    for program in &programs {
        identity.update(digest(program, &mut files)?.as_bytes());
    }
    let runtime = find_runtime(&mut asker, machine::of_triple(&target), &mut files)?;
    see_headers(&mut asker, &mut files)?;
    let probes = asker.probes;
    let compiler = HostCompiler {
        accepts_no_gnu_unique: family == Family::Gnu,
        identity: HEXLOWER.encode(identity.finalize().as_bytes()),
        path: program,
        args,
        family,
        version,
        target,
        runtime,
    };
    Ok(Probed { compiler, files, lookups, probes })
}

/// Finds and reads the libraries that the compiler links by itself.
fn find_runtime(asker: &mut Asker<'_>, machine: Option<Machine>, files: &mut Vec<FileState>) -> Result<HostRuntime, HostError> {
    let mut found = HostRuntime::default();
    let libraries = runtime::libraries(machine);
    for (list, names) in
        [(&mut found.libraries, libraries.as_slice()), (&mut found.archives, runtime::ARCHIVES), (&mut found.objects, runtime::OBJECTS)]
    {
        for (name, packages) in names {
            if let Some(path) = asker.file(name)? {
                let digest = HEXLOWER.encode(digest(&path, files)?.as_bytes());
                list.push(RuntimeFile { name: (*name).to_owned(), path, digest });
            } else if let Some(packages) = packages {
                return Err(asker.incomplete(name, packages));
            }
        }
    }
    if let Some(path) = asker.file(runtime::STATIC_CXX)? {
        let digest = HEXLOWER.encode(digest(&path, files)?.as_bytes());
        found.static_cxx = Some(RuntimeFile { name: runtime::STATIC_CXX.to_owned(), path, digest });
    }
    Ok(found)
}

/// Sees that the compiler finds a header of the C++ library and one of the C library. Only it knows where it looks. What it finds
/// counts as long as those headers stay: their state goes to `files`.
fn see_headers(asker: &mut Asker<'_>, files: &mut Vec<FileState>) -> Result<(), HostError> {
    let mut ask = |headers: &[(&str, &str)]| {
        let included: Vec<&str> = headers.iter().flat_map(|(header, _)| ["-include", header]).collect();
        asker.ask(&[&["-E", "-x", "c++"], included.as_slice(), &["/dev/null"]].concat())
    };
    match ask(runtime::HEADERS) {
        Ok(text) => {
            let places = text.lines().filter_map(|line| line.strip_prefix("# ")?.split('"').nth(1));
            for path in places.filter(|path| runtime::HEADERS.iter().any(|(header, _)| Path::new(path).ends_with(header))) {
                if let Ok(state) = FileState::now(Path::new(path))
                    && !files.contains(&state)
                {
                    files.push(state);
                }
            }
            Ok(())
        }
        Err(HostError::Interrupted) => Err(HostError::Interrupted),
        Err(error) => {
            let missing = runtime::HEADERS.iter().find(|header| ask(std::slice::from_ref(header)).is_err());
            Err(missing.map_or(error, |(part, packages)| asker.incomplete(part, packages)))
        }
    }
}

/// Lets the `cc` crate say how the compiler is called and of which family it is.
fn identify(resolved: &Resolved, search: &HostSearch, scratch: &Path) -> Result<(PathBuf, Vec<String>, Family), HostError> {
    let broken = |reason: String| HostError::Broken { path: resolved.compiler.clone(), reason };
    // That crate waits without end, and keeps all that is said: it asks only a compiler that has answered such a question.
    let mut first = Command::new(&resolved.compiler);
    first.args(["-E", "-x", "c++", "/dev/null"]).env_clear().envs(environment(search, scratch));
    answer(&mut first, search, &resolved.compiler)?;
    let native = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let target = machine::foreign(search.machine).map_or(native.clone(), |machine| format!("{machine}-unknown-linux-gnu"));
    // Without the snapshot it would read CC, CFLAGS and two dozen others from this process's environment.
    let mut build = cc::Build::new();
    // Set, if empty, flags of the caller's make it leave out its own (`-Wall -Wextra`).
    build.set_envs_snapshot(environment(search, scratch).into_iter().chain([("CXXFLAGS".into(), OsString::new())]));
    build.cpp(true).target(&target).host(&native).opt_level(0).debug(false).out_dir(scratch);
    build
        .cargo_output(false)
        .cargo_metadata(false)
        .cargo_warnings(false)
        .cargo_debug(false)
        .no_default_flags(true)
        .compiler(&resolved.compiler);
    let tool = build.try_get_compiler().map_err(|cause| broken(cause.to_string()))?;
    let family = if tool.is_like_clang() {
        Family::Clang
    } else if tool.is_like_gnu() {
        Family::Gnu
    } else {
        return Err(broken("it is neither GCC nor Clang".to_owned()));
    };
    let command = tool.to_command();
    let own = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    let compiler = PathBuf::from(command.get_program());
    Ok(match &resolved.launcher {
        Some(launcher) => {
            let first = std::iter::once(compiler.to_string_lossy().into_owned());
            (launcher.clone(), first.chain(own).chain(resolved.args.iter().cloned()).collect(), family)
        }
        None => (compiler, own.chain(resolved.args.iter().cloned()).collect(), family),
    })
}

/// The whole environment of a probe.
fn environment(search: &HostSearch, scratch: &Path) -> Vec<(OsString, OsString)> {
    let fixed = [("PATH", search.path.clone()), ("LC_ALL", "C".into()), ("TMPDIR", scratch.into())];
    let fixed = fixed.into_iter().map(|(name, value)| (OsString::from(name), value));
    search.ambient.iter().cloned().chain(fixed).collect()
}

/// What a program says that is asked as, or on behalf of, the compiler.
fn answer(command: &mut Command, search: &HostSearch, compiler: &Path) -> Result<process::Answer, HostError> {
    process::ask(command, search.limit.unwrap_or(ANSWER_LIMIT), &search.interrupt).map_err(|failure| match failure {
        NoAnswer::Interrupted => HostError::Interrupted,
        failure => HostError::Broken { path: compiler.to_owned(), reason: failure.to_string() },
    })
}

struct Asker<'a> {
    program: &'a Path,
    args: &'a [String],
    search: &'a HostSearch,
    resolved: &'a Resolved,
    scratch: &'a Path,
    probes: u32,
}

impl Asker<'_> {
    /// The compiler's answer, trimmed.
    fn ask(&mut self, question: &[&str]) -> Result<String, HostError> {
        self.probes += 1;
        let mut command = Command::new(self.program);
        command.args(self.args).args(question).env_clear().envs(environment(self.search, self.scratch));
        let output = answer(&mut command, self.search, &self.resolved.compiler)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let said = match stderr.lines().map(str::trim).find(|line| !line.is_empty()) {
                Some(first) => format!(": {first}"),
                None => " and said nothing".to_owned(),
            };
            return Err(self.broken(format!("asked for `{}` it ended with {}{said}", question.join(" "), ending(output.status))));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The program that the compiler uses as `name`.
    fn part(&mut self, name: &'static str, lookups: &mut Vec<(String, PathBuf)>) -> Result<PathBuf, HostError> {
        let answer = self.ask(&[&format!("-print-prog-name={name}")])?;
        let mut found = Some(PathBuf::from(&answer));
        // A bare name means that the compiler looks on PATH, or that there is none.
        if !answer.contains('/') {
            found = choice::on_path(&answer, &self.search.path);
            lookups.extend(found.clone().map(|path| (answer, path)));
        }
        let packages = match name {
            "cc1plus" => "the C++ compiler proper: `g++` on Debian and Ubuntu, `gcc-c++` on Fedora and RHEL",
            _ => "`binutils`",
        };
        found.filter(|path| path.is_file()).ok_or_else(|| self.incomplete(name, packages))
    }

    /// The error for a part that is not there; `packages` have it for this machine.
    fn incomplete(&self, part: &str, packages: &'static str) -> HostError {
        let packages = machine::foreign(self.search.machine).map_or(packages, machine::packages);
        HostError::Incomplete { path: self.resolved.compiler.clone(), part: part.to_owned(), packages }
    }

    /// The file of the compiler's library directories that is called `name`.
    fn file(&mut self, name: &str) -> Result<Option<PathBuf>, HostError> {
        let answer = PathBuf::from(self.ask(&[&format!("-print-file-name={name}")])?);
        Ok(Some(answer).filter(|path| path.is_absolute() && path.is_file()))
    }

    fn broken(&self, reason: String) -> HostError {
        HostError::Broken { path: self.resolved.compiler.clone(), reason }
    }
}

/// How a process ended, in the words of all messages.
fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

/// Digest of a file's content; its state before it was read goes to `files`.
fn digest(path: &Path, files: &mut Vec<FileState>) -> Result<blake3::Hash, HostError> {
    files.push(FileState::now(path).map_err(HostError::io("read", path))?);
    let mut hasher = blake3::Hasher::new();
    let mut file = std::fs::File::open(path).map_err(HostError::io("read", path))?;
    std::io::copy(&mut file, &mut hasher).map_err(HostError::io("read", path))?;
    Ok(hasher.finalize())
}
