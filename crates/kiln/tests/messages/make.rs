//! Builds under GNU make: together they run no more compilers than it has jobs for.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::place::{Place, real_program};

/// A place with two projects and a compiler that notes its starts and ends. None ends before as many have started as the file `wait`
/// says, for a while: so many run at once then. The place needs no floor.
fn place() -> Place {
    let place = Place::with_project();
    for name in ["cat", "grep", "sleep"] {
        place.link(&format!("bin/{name}"), real_program(name));
    }
    place.write("relu/kiln.toml", "[build]\nfloor = \"host\"\n");
    for name in ["one.cpp", "two.cpp", "three.cpp"] {
        place.write(&format!("relu/cpu/{name}"), "");
    }
    place.edit("relu/build.toml", "\"cpu/relu.cpp\"", "\"cpu/*.cpp\"");
    for file in ["build.toml", "kiln.toml", "torch-ext/relu/__init__.py", "torch-ext/binding.cpp"] {
        place.write(&format!("other/{file}"), fs::read(place.path("relu").join(file)).unwrap());
    }
    for name in ["relu.cpp", "one.cpp", "two.cpp", "three.cpp"] {
        // Not the same as in the other project, whose results would be taken.
        place.write(&format!("other/cpu/{name}"), format!("namespace other {{ int {}; }}\n", name.trim_end_matches(".cpp")));
    }
    let dir = place.path(".").display().to_string();
    place.compiler(&format!(
        "log='{dir}/log'; case \"$*\" in *' -c '*) echo start >> \"$log\"; n=0\n\
         while test $(grep -c start \"$log\") -lt $(cat '{dir}/wait') && test $n -lt 400; do sleep 0.05; n=$((n+1)); done\n\
         \"$CXX\" \"$@\"; code=$?; echo end >> \"$log\"; exit $code;; esac\n"
    ));
    place
}

/// How many compilers ran at once at most, and how many there were.
fn most(log: &Path) -> (usize, usize) {
    let (mut now, mut most, mut all) = (0_usize, 0, 0);
    for line in fs::read_to_string(log).unwrap_or_default().lines() {
        match line {
            "start" => (now, all) = (now + 1, all + 1),
            _ => now -= 1,
        }
        most = most.max(now);
    }
    let _next_time_anew = fs::remove_file(log);
    (most, all)
}

/// Runs make with this makefile, in which `KILN` stands for the command.
fn make(place: &Place, args: &[&str], makefile: &str) -> Output {
    let kiln = place.command(&[]);
    for project in ["relu", "other"] {
        for name in [".kiln", "build"] {
            let _none = fs::remove_dir_all(place.path(project).join(name));
        }
    }
    place.write(
        "makefile",
        makefile.replace("KILN", &kiln.get_program().to_string_lossy()).replace("$DIR", &place.path(".").display().to_string()),
    );
    let mut make = Command::new(real_program("make"));
    make.args(args).env_clear().envs(kiln.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(place.path("."));
    make.env("PATH", format!("{}:/usr/bin:/bin", place.path("bin").display())).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn two_builds_under_a_make_with_two_jobs() {
    let place = place();
    let makefile = "all: relu other\nrelu other:\n\t+KILN build --no-cache -j8 $DIR/$@\n.PHONY: all relu other\n";
    place.write("wait", "2");
    let output = make(&place, &["-j2"], makefile);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!((most(&place.path("log")), errors.contains("warning")), ((2, 12), false), "{errors}");

    // Without make each runs as many as it likes: that is what the count is worth.
    place.write("wait", "4");
    let output = make(&place, &["-j2"], &makefile.replace("+KILN", "+MAKEFLAGS= KILN"));
    assert!(output.status.success());
    let (most, all) = most(&place.path("log"));
    assert!(most >= 4 && all == 12, "{most} of {all}");
}

#[test]
fn a_make_that_keeps_its_jobs_to_itself() {
    let place = place();
    place.write("wait", "1");
    let makefile = "all:\n\tKILN build --no-cache $DIR/relu\n";
    let output = make(&place, &["-j2"], makefile);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.contains(
            "warning: the job server of make is closed to this command: one step runs at a time\n\
             hint: write `+` in front of the command in the makefile, or say how many with `-j N`\n"
        ),
        "{errors}"
    );
    assert_eq!(most(&place.path("log")), (1, 6));
    // Who says how many is not asked for more; and a make of one job has no server.
    for (jobs, makefile) in [("-j2", makefile.replace("--no-cache", "--no-cache -j3")), ("-j1", makefile.to_owned())] {
        let output = make(&place, &[jobs], &makefile);
        assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("warning"));
    }
}

#[test]
fn tokens_of_a_named_pipe_are_put_back() {
    let place = place();
    let pipe = place.path("a pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let mut server = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    server.write_all(b"xyz").unwrap();
    let flags = format!(" -j4 --jobserver-auth=fifo:{}", pipe.display().to_string().replace(' ', "\\ "));
    let build = |project: &str| {
        let mut command = place.command(&["build", "--no-cache", "-j8"]);
        command.env("MAKEFLAGS", &flags).current_dir(place.path(project)).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    place.write("wait", "4");
    // Two processes, each with a token of its own, and three bytes.
    let children = [build("relu"), build("other")];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (most, all) = most(&place.path("log"));
    assert!((4..=5).contains(&most) && all == 12, "{most} of {all}");
    let mut left = [0; 3];
    server.read_exact(&mut left).unwrap();
    left.sort_unstable();
    assert_eq!(&left, b"xyz");

    // A pipe that is not there.
    fs::remove_file(&pipe).unwrap();
    let output = build("relu").wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("warning"));
}
