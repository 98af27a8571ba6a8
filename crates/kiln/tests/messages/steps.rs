//! Steps that fail: compilers, linkers, and what they say.

use std::fs;
use std::process::Command;

use crate::place::{Place, real_program};

/// A unit that no compiler takes, with a message that all of them word alike.
const BAD: &str = "#error this unit is meant to fail\n";

/// The lines that show a command.
fn commands(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("  command: ")).collect()
}

#[test]
fn a_compile_error() {
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", BAD);
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @"
    exit code 1
    --- stderr ---
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
    [dir]/relu/cpu/relu.cpp:1:2: error: #error this unit is meant to fail
        1 | #error this unit is meant to fail
          |  ^~~~~
    error[step-failed]: failed to compile `cpu/relu.cpp`: exit code 1
      command: [dir]/bin/g++ [flags] -c [dir]/relu/cpu/relu.cpp [..]
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 4 skipped
    ");
}

/// Runs the command that `run` shows in a shell; gives what it writes.
fn by_hand(place: &Place, run: &crate::Run, directory: &str) -> String {
    let text = String::from_utf8(run.stderr.clone()).unwrap();
    let [command] = commands(&text)[..] else { panic!("one command should be shown:\n{text}") };
    let mut shell = Command::new(real_program("sh"));
    shell.args(["-c", command]).current_dir(place.path(directory)).env_clear().env("PATH", place.path("bin")).env("LC_ALL", "C.UTF-8");
    let output = shell.output().unwrap();
    assert!(!output.status.success(), "{command}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn the_shown_command_fails_in_the_same_way_by_hand() {
    let place = Place::with_project();
    // A header that is only found from within the project, and a flag that a shell would take apart.
    place.edit(
        "relu/build.toml",
        "depends = []",
        "depends = []\ncxx-flags = [\"-include\", \"on the side/found.h\", \"-DTEXT=\\\"it's $HOME\\\"\"]",
    );
    place.write("relu/on the side/found.h", "#define FOUND 1\n");
    place.write("relu/cpu/relu.cpp", "static_assert(sizeof(TEXT) == 10 + FOUND);\n#error found and meant to fail\n");
    for (run, directory) in [(place.run(&["build", "-j1"]), "relu"), (place.run_in("home", &["build", "-j1", "../relu"]), "home")] {
        let said = by_hand(&place, &run, directory);
        assert!(said.contains("#error found and meant to fail"), "{said}");
        assert!(String::from_utf8(run.stderr.clone()).unwrap().contains(&said), "{run}\n{said}");
    }
}

#[test]
fn the_shown_link_command_fails_in_the_same_way_by_hand() {
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", "int relu;\n");
    place.write("relu/cpu/again.cpp", "int relu;\n");
    place.edit("relu/build.toml", "\"cpu/relu.cpp\"", "\"cpu/relu.cpp\", \"cpu/again.cpp\"");
    let run = place.run(&["build", "-j1"]);
    let said = by_hand(&place, &run, "relu");
    assert!(said.contains("multiple definition of `relu'"), "{said}");
    assert!(String::from_utf8(run.stderr.clone()).unwrap().contains(&said), "{run}\n{said}");
    let [.., head] = &run.errors().lines().filter(|line| line.starts_with("error[step-failed]")).map(str::to_owned).collect::<Vec<_>>()[..]
    else {
        panic!("{run}")
    };
    insta::assert_snapshot!(head, @"error[step-failed]: failed to link `_relu_cpu_[id].abi3.so`: exit code 1");
}

#[test]
fn what_a_compiler_writes_is_passed_on_byte_by_byte() {
    let place = Place::with_project();
    let said = b"\x1b[31mred\x1b[0m \xff\xfe no text\r\n\ttab, and no line break at the end";
    place.write("said", said);
    place.compiler("case \"$*\" in *' -c '*cpu/relu.cpp*) cat \"${0%/*}/../said\"; echo ' err' >&2; exit 3;; esac\n");
    place.link("bin/cat", real_program("cat"));
    let run = place.run(&["build", "-j1"]);
    let whole = [&said[..], b" err\n"].concat();
    assert!(run.stderr.windows(whole.len()).any(|window| window == whole), "{run}");
    assert!(run.errors().contains("error[step-failed]: failed to compile `cpu/relu.cpp`: exit code 3\n"), "{run}");
}

#[test]
fn warnings_of_compilers_are_shown_too() {
    let place = Place::with_project();
    place.compiler("case \"$*\" in *' -c '*cpu/relu.cpp*) echo 'relu.cpp: warning: too fast' >&2;; esac\n");
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @"
    exit code 0
    --- stderr ---
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
    relu.cpp: warning: too fast
       Compiling module_init.c
         Linking _relu_cpu_[id].abi3.so
        Packaged [dir]/relu/build/torch215-cxx11-cpu-x86_64-linux
        Finished 1 of 1 variant (1 changed), 8 steps ran, 0 up to date, in [n] s
    ");
}

#[test]
fn two_failures_with_keep_going() {
    let place = Place::with_project();
    place.write("relu/torch-ext/binding.cpp", BAD);
    place.write("relu/cpu/relu.cpp", BAD);
    place.write("relu/cpu/good.cpp", "#warning good but talkative\n");
    place.edit("relu/build.toml", "\"cpu/relu.cpp\"", "\"cpu/good.cpp\", \"cpu/relu.cpp\"");
    insta::assert_snapshot!(place.say(&["build", "-j1", "--keep-going"]), @"
    exit code 1
    --- stderr ---
       Compiling torch-ext/binding.cpp
    [dir]/relu/torch-ext/binding.cpp:1:2: error: #error this unit is meant to fail
        1 | #error this unit is meant to fail
          |  ^~~~~
    error[step-failed]: failed to compile `torch-ext/binding.cpp`: exit code 1
      command: [dir]/bin/g++ [flags] -c [dir]/relu/torch-ext/binding.cpp [..]
       Compiling cpu/good.cpp
    [dir]/relu/cpu/good.cpp:1:2: warning: #warning good but talkative [-Wcpp]
        1 | #warning good but talkative
          |  ^~~~~~~
       Compiling cpu/relu.cpp
    [dir]/relu/cpu/relu.cpp:1:2: error: #error this unit is meant to fail
        1 | #error this unit is meant to fail
          |  ^~~~~
    error[step-failed]: failed to compile `cpu/relu.cpp`: exit code 1
      command: [dir]/bin/g++ [flags] -c [dir]/relu/cpu/relu.cpp [..]
       Compiling module_init.c
    error[build-failed]: 1 of 1 variant could not be made: 2 steps failed, 2 skipped
    ");
    // However many run at once, what is said comes in the same order, progress apart.
    let said = |place: &Place, jobs: &str| {
        let _nothing_known = fs::remove_dir_all(place.path("relu/.kiln"));
        let errors = place.run(&["build", jobs, "--keep-going", "--quiet"]).errors();
        assert_eq!(commands(&errors).len(), 2, "{errors}");
        errors
    };
    let alone = said(&place, "-j1");
    // Now the first failure is the last to end.
    place.compiler("case \"$*\" in *' -c '*binding.cpp*) sleep 0.2;; esac\n");
    place.link("bin/sleep", real_program("sleep"));
    for _ in 0..3 {
        assert_eq!(said(&place, "-j8"), alone);
    }
}

#[test]
fn a_failure_stops_the_build() {
    let place = Place::with_project();
    place.write("relu/torch-ext/binding.cpp", BAD);
    let run = place.run(&["build", "-j1", "--quiet"]);
    assert_eq!(commands(&run.errors()).len(), 1, "{run}");
    let last = run.errors().lines().last().unwrap().to_owned();
    assert!(last.starts_with("error[build-failed]: 1 of 1 variant could not be made: 1 step failed, "), "{run}");
    assert!(!place.path("relu/build/torch215-cxx11-cpu-x86_64-linux").exists());
}

#[test]
fn a_link_error() {
    let place = Place::with_project();
    place.compiler("case \"$*\" in *-shared*) echo 'ld: final link failed: bad value' >&2; exit 1;; esac\n");
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @"
    exit code 1
    --- stderr ---
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
       Compiling module_init.c
         Linking _relu_cpu_[id].abi3.so
    ld: final link failed: bad value
    error[step-failed]: failed to link `_relu_cpu_[id].abi3.so`: exit code 1
      command: [dir]/bin/g++ [flags] -o [dir]/relu/.kiln/out/[step]/_relu_cpu_[id].abi3.so [..]
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 0 skipped
    ");
}

#[test]
fn a_full_file_system() {
    let place = Place::with_project();
    // The real words, from a device that is always full.
    let cat = real_program("cat");
    place.compiler(&format!("case \"$*\" in *' -c '*cpu/relu.cpp*) '{}' \"$0\" > /dev/full || exit 1;; esac\n", cat.display()));
    let text = place.say(&["build", "-j1"]);
    let words = text.lines().find(|line| line.contains("No space left on device")).unwrap_or_else(|| panic!("{text}"));
    let told = text.lines().find(|line| line.starts_with("error[disk-full]: ")).unwrap_or_else(|| panic!("{text}"));
    assert!(told.contains("the file system of `[dir]/relu/.kiln` has too little space: "), "{told}");
    assert!(text.find(words) < text.find(told) && text.find(told) < text.find("error[build-failed]"), "{text}");
    assert!(text.contains("MB are left\nhint: free some space\n"), "{text}");
}

#[test]
fn compilers_that_are_killed() {
    let place = Place::with_project();
    for (signal, name) in [("KILL", "signal 9 (SIGKILL)"), ("SEGV", "signal 11 (SIGSEGV)"), ("USR1", "signal 10")] {
        place.compiler(&format!("case \"$*\" in *' -c '*cpu/relu.cpp*) kill -{signal} $$;; esac\n"));
        let errors = place.run(&["build", "-j1"]).errors();
        assert!(errors.contains(&format!("error[step-killed]: failed to compile `cpu/relu.cpp`: killed by {name}\n")), "{errors}");
        assert_eq!(errors.contains("hint: the system kills programs when memory runs out"), signal == "KILL", "{errors}");
    }
}

#[test]
fn compilers_that_say_nothing() {
    let place = Place::with_project();
    place.compiler("case \"$*\" in *' -c '*cpu/relu.cpp*) exit 1;; esac\n");
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @"
    exit code 1
    --- stderr ---
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
    error[step-failed]: failed to compile `cpu/relu.cpp`: exit code 1, and the program wrote nothing
      command: [dir]/bin/g++ [flags] -c [dir]/relu/cpu/relu.cpp [..]
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 4 skipped
    ");
    // Worse: one that says that all is well.
    place.compiler("case \"$*\" in *' -c '*cpu/relu.cpp*) exit 0;; esac\n");
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @"
    exit code 1
    --- stderr ---
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
    error[step-failed]: failed to compile `cpu/relu.cpp`: the program ended well but did not write `unit.d`
      command: [dir]/bin/g++ [flags] -c [dir]/relu/cpu/relu.cpp [..]
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 4 skipped
    ");
}

#[test]
fn commands_shown_before_they_run_are_not_shown_again() {
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", BAD);
    let errors = place.run(&["build", "-j1", "--print-commands"]).errors();
    assert_eq!(errors.matches("-c [dir]/relu/cpu/relu.cpp").count(), 1, "{errors}");
    assert!(commands(&errors).is_empty(), "{errors}");
}
