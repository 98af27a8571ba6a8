//! Builds that a signal ends or suspends, and readers that go away: with a compiler that runs until the test lets it end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Place, real_program};

/// Longer than two signals may be apart that are one wish.
const ANOTHER_WISH: Duration = Duration::from_millis(150);

/// A place that needs no floor, which would take longer than all else.
fn quick() -> Place {
    let place = Place::with_project();
    place.write("relu/kiln.toml", "[build]\nfloor = \"host\"\n");
    place
}

/// A place whose compiler waits at one unit: it writes its id to `pid`, makes `ready`, and goes on when somebody writes to `go`.
fn place(before: &str) -> Place {
    let place = quick();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("go"), rustix::fs::Mode::RWXU).unwrap();
    let dir = place.path(".").display().to_string();
    place.compiler(&format!(
        "case \"$*\" in *' -c '*cpu/relu.cpp*) if ! test -e '{dir}/free'; then {before}\n\
         echo $$ > '{dir}/pid'; : > '{dir}/ready'; read go < '{dir}/go'; fi;; esac\n"
    ));
    place
}

/// A build that runs.
struct Build<'a> {
    place: &'a Place,
    child: Child,
    stderr: BufReader<ChildStderr>,
    told: String,
    start: Instant,
}

impl<'a> Build<'a> {
    /// Starts a build and waits until its compiler waits.
    fn start(place: &'a Place, mut command: Command) -> Self {
        let _none_before = fs::remove_file(place.path("ready"));
        let mut child = command.current_dir(place.path("relu")).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut build = Self { place, child, stderr, told: String::new(), start: Instant::now() };
        build.until(|build| build.place.path("ready").exists());
        build
    }

    /// Waits; whatever does not come within a minute does not come.
    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            if self.start.elapsed() > Duration::from_secs(60) {
                let _ended = self.child.kill();
                panic!("this takes too long; so far:\n{}", self.told);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// The process id of the compiler that waits.
    fn compiler(&self) -> i32 {
        fs::read_to_string(self.place.path("pid")).unwrap().trim().parse().unwrap()
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads standard error to a line that has `text`.
    fn hear(&mut self, text: &str) {
        loop {
            let at = self.told.len();
            assert!(self.stderr.read_line(&mut self.told).unwrap() > 0, "no `{text}` in:\n{}", self.told);
            if self.told[at..].contains(text) {
                return;
            }
        }
    }

    /// Lets the compiler go on.
    fn go(&self) {
        fs::write(self.place.path("go"), "go\n").unwrap();
    }

    /// Waits for the end. Gives the exit code and all of standard error.
    fn end(mut self) -> (Option<i32>, String) {
        self.stderr.read_to_string(&mut self.told).unwrap();
        (self.child.wait().unwrap().code(), self.told)
    }
}

/// The state of a process as one letter; a dead one has X.
fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).unwrap_or('X')
}

fn assert_clean(place: &Place, compiler: i32) {
    let start = Instant::now();
    while !"XZ".contains(state(compiler)) {
        assert!(start.elapsed() < Duration::from_secs(60), "the compiler lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(fs::read_dir(place.path("relu/.kiln/tmp")).unwrap().count(), 0);
    assert!(!place.path("relu/build/torch215-cxx11-cpu-x86_64-linux").exists());
}

const BUILD: [&str; 2] = ["build", "-j1"];

#[test]
fn the_first_interrupt_lets_what_runs_end() {
    let place = place("");
    let mut build = Build::start(&place, place.command(&BUILD));
    let compiler = build.compiler();
    build.send(Signal::INT);
    build.hear("warning: interrupted: waiting for 1 step that runs; interrupt once more to stop it\n");
    assert!(!"XZ".contains(state(compiler)));
    build.go();
    let (code, told) = build.end();
    assert_eq!(code, Some(130), "{told}");
    assert!(told.ends_with("error[interrupted]: the build was interrupted: 0 of 1 variant stand\n"), "{told}");
    assert_clean(&place, compiler);
    // What ended is kept, and the rest follows.
    place.write("free", "");
    let again = place.run(&BUILD).errors();
    assert!(!again.contains("Compiling cpu/relu.cpp") && again.contains("Finished 1 of 1 variant"), "{again}");
}

#[test]
fn the_second_interrupt_ends_what_runs() {
    let place = place("");
    let mut build = Build::start(&place, place.command(&BUILD));
    let compiler = build.compiler();
    build.send(Signal::INT);
    build.hear("interrupt once more");
    std::thread::sleep(ANOTHER_WISH);
    build.send(Signal::INT);
    let (code, told) = build.end();
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("Stopping 1 step that runs\n"), "{told}");
    assert_clean(&place, compiler);
}

#[test]
fn signals_that_end_a_build_at_once() {
    let place = place("");
    for (signal, expected) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let build = Build::start(&place, place.command(&BUILD));
        let compiler = build.compiler();
        build.send(signal);
        let (code, told) = build.end();
        assert_eq!(code, Some(expected), "{told}");
        assert_clean(&place, compiler);
    }
}

#[test]
fn a_compiler_that_hears_nothing_is_killed_when_asked_once_more() {
    let place = place("trap '' TERM");
    let mut build = Build::start(&place, place.command(&BUILD));
    let compiler = build.compiler();
    build.send(Signal::TERM);
    build.hear("Stopping 1 step that runs");
    // Another signal is another wish, however soon it comes.
    build.send(Signal::INT);
    let (code, told) = build.end();
    assert_eq!(code, Some(143), "{told}");
    let start = Instant::now();
    while !"XZ".contains(state(compiler)) {
        assert!(start.elapsed() < Duration::from_secs(60), "the compiler lives on");
    }
    // What the process could not put away, the next one does.
    place.write("free", "");
    let again = place.run(&BUILD);
    assert_eq!(again.code, Some(0), "{again}");
    assert_eq!(fs::read_dir(place.path("relu/.kiln/tmp")).unwrap().count(), 0);
}

#[test]
fn a_suspended_build_suspends_its_compilers() {
    let place = place("");
    let mut build = Build::start(&place, place.command(&BUILD));
    let (kiln, compiler) = (build.pid(), build.compiler());
    for _ in 0..2 {
        build.send(Signal::TSTP);
        build.until(|_| state(kiln) == 'T' && state(compiler) == 'T');
        build.send(Signal::CONT);
        build.until(|_| state(kiln) != 'T' && state(compiler) != 'T');
    }
    // A signal that ends the build reaches what is suspended.
    build.send(Signal::TSTP);
    build.until(|_| state(kiln) == 'T' && state(compiler) == 'T');
    build.send(Signal::TERM);
    build.send(Signal::CONT);
    let (code, told) = build.end();
    assert_eq!(code, Some(143), "{told}");
    assert_clean(&place, compiler);
}

#[test]
fn signals_that_the_caller_ignores_stay_ignored() {
    let place = place("");
    let mut command = place.command(&BUILD);
    let mut shell = Command::new(real_program("sh"));
    shell.args(["-c", "trap '' HUP INT; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    command = shell;
    let build = Build::start(&place, command);
    build.send(Signal::HUP);
    build.send(Signal::INT);
    build.go();
    let (code, told) = build.end();
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn a_reader_that_takes_one_line_does_no_harm() {
    let place = quick();
    let head = real_program("head");
    for (at, args) in ["build -j1 --message-format json", "build -j1 2>&1", "build --plan", "list-variants"].iter().enumerate() {
        let _nothing_known = fs::remove_dir_all(place.path("relu/.kiln"));
        let _nothing_built = fs::remove_dir_all(place.path("relu/build"));
        let kiln = place.command(&[]);
        let script = format!("(\"$0\" {args}; echo $? > ../code) 2> ../errors | '{}' -n 1", head.display());
        let mut shell = Command::new(real_program("sh"));
        shell.args(["-c", &script]).arg(kiln.get_program()).env_clear().current_dir(place.path("relu"));
        shell.envs(kiln.get_envs().filter_map(|(name, value)| Some((name, value?)))).process_group(0);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let (code, errors) = (fs::read_to_string(place.path("code")).unwrap(), fs::read_to_string(place.path("errors")).unwrap());
        assert_eq!((code.trim(), output.stdout.iter().filter(|byte| **byte == b'\n').count()), ("0", 1), "{args}: {errors}");
        assert!(!errors.contains("panicked"), "{args}: {errors}");
        // A build goes on to its end.
        assert_eq!(place.path("relu/build/torch215-cxx11-cpu-x86_64-linux/metadata.json").exists(), at < 2, "{args}");
    }
}

/// What the first questions are put to may hang too: the compiler, and git.
#[test]
fn a_program_that_hangs_when_it_is_asked_does_not_hold_a_build() {
    let hang = |place: &Place, name: &str| {
        let dir = place.path(".").display().to_string();
        place.script(
            &format!("bin/{name}"),
            &format!("echo $$ > '{dir}/pid'; : > '{dir}/ready'\nexec '{}' 1000\n", real_program("sleep").display()),
        );
    };
    let with_git = quick();
    fs::create_dir(with_git.path("relu/.git")).unwrap();
    hang(&with_git, "git");
    let with_compiler = quick();
    hang(&with_compiler, "g++");
    for place in [with_git, with_compiler] {
        let scratch = place.path("tmp");
        fs::create_dir(&scratch).unwrap();
        for args in [&BUILD[..], &["lint"], &["doctor", "--offline", "cpu"]] {
            let mut command = place.command(args);
            command.env("TMPDIR", &scratch);
            let build = Build::start(&place, command);
            let hanging = build.compiler();
            build.send(Signal::INT);
            let (code, told) = build.end();
            assert_eq!(code, Some(130), "{args:?}: {told}");
            assert!(told.contains("error[interrupted]: ") && !told.contains("server"), "{args:?}: {told}");
            assert!("XZ".contains(state(hanging)), "{args:?}: {told}");
            let left: Vec<_> = fs::read_dir(&scratch).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(left.is_empty(), "{args:?} left {left:?}");
        }
    }
}

/// A server that says nothing is not waited for when somebody wants to stop; what a command has for this time is removed all the same.
#[test]
fn nothing_is_left_when_a_command_ends_without_its_end() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::without_torch();
    let scratch = place.path("tmp");
    fs::create_dir(&scratch).unwrap();
    let index = format!("http://{}/simple", server.local_addr().unwrap());
    let mut command = place.command(&["--index", &index, "doctor", "cpu"]);
    command.env("TMPDIR", &scratch).current_dir(place.path("home")).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // It asks, so it has its directory.
    let _silent = server.accept().unwrap();
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("interrupted while a server was waited for"), "{told}");
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}
