//! `cuda-flags`: whose each flag is, and how nvcc must be given it.
//!
//! nvcc knows its own options and stops at any other; flags of the host compiler go through `-Xcompiler`. Two readers stand between a flag
//! and its compiler: nvcc takes away a backslash before each letter and splits at commas, and a shell reads what nvcc pastes into a command,
//! in double quotes. So a letter that means something to either is escaped for both.

use kiln_backend::{BackendError, MajorMinor, user_cxx_level};

/// nvcc's own options that begin like one of the host compiler's (`nvcc --help` of 12.6 to 13.5), without a value behind `=`.
const OWN: &[&str] = &[
    "-Wdefault-stream-launch",
    "-Werror",
    "-Wext-lambda-captures-this",
    "-Wmissing-launch-bounds",
    "-Wno-deprecated-declarations",
    "-Wno-deprecated-gpu-targets",
    "-Wreorder",
    "-fatbin",
    "-fdevice-sanitize",
    "-fdevice-syntax-only",
    "-fdevice-time-trace",
    "-fmad",
    "-force-cl-env-setup",
    "-forward-unknown-opts",
    "-forward-unknown-to-host-compiler",
    "-forward-unknown-to-host-linker",
    "-ftemplate-backtrace-limit",
    "-ftemplate-depth",
    "-ftz",
    "-m",
    "-m64",
    "-maxrregcount",
];

/// Options whose value is the next argument when it is not joined to them.
const TAKE_VALUE: &[&str] = &[
    "-D",
    "-I",
    "-L",
    "-U",
    "-Xarchive",
    "-Xcicc",
    "-Xcompiler",
    "-Xcudafe",
    "-Xfatbin",
    "-Xlinker",
    "-Xnvlink",
    "-Xptxas",
    "-arch",
    "-code",
    "-default-stream",
    "-diag-error",
    "-diag-suppress",
    "-diag-warn",
    "-gencode",
    "-include",
    "-isystem",
    "-l",
    "-maxrregcount",
    "-opt-info",
    "-std",
    "-compress-mode",
    "--archive-options",
    "--compiler-options",
    "--compress-mode",
    "--default-stream",
    "--define-macro",
    "--diag-error",
    "--diag-suppress",
    "--diag-warn",
    "--fatbin-options",
    "--generate-code",
    "--gpu-architecture",
    "--gpu-code",
    "--include-path",
    "--linker-options",
    "--maxrregcount",
    "--nvlink-options",
    "--optimization-info",
    "--pre-include",
    "--ptxas-options",
    "--std",
    "--system-include",
];

/// Beginnings of flags that only a host compiler takes, unless they are in [`OWN`].
const OF_HOST: &[&str] =
    &["-W", "-f", "-m", "-pthread", "-pipe", "-pedantic", "-ansi", "-nostdinc", "-ggdb", "-gdwarf", "-gsplit-dwarf", "-gz"];

/// Options that are looked at here and answered with `true` or `false`.
const ANSWERED: [&str; 4] = ["-rdc", "--relocatable-device-code", "-static-global-template-stub", "--static-global-template-stub"];

/// The first toolkit that knows `-static-global-template-stub`.
const TEMPLATE_STUB: MajorMinor = MajorMinor::new(12, 8);
/// The first toolkit all of whose drivers unpack what `-compress-mode` makes.
const COMPRESS_MODE: MajorMinor = MajorMinor::new(13, 0);

/// The flags of a component, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserFlags {
    /// What nvcc is given, in order.
    pub(crate) args: Vec<String>,
    /// Whether they say which C++ level to use.
    pub(crate) has_std: bool,
    /// Whether device code is relocatable and needs a link of its own.
    pub(crate) relocatable: bool,
    /// Whether they name architectures beside the capability list.
    pub(crate) names_architectures: bool,
}

impl UserFlags {
    /// Reads `cuda-flags` for a toolkit.
    ///
    /// # Errors
    /// [`BackendError::ToolkitFlag`] for a flag that this toolkit cannot do and that cannot be left out.
    pub(crate) fn read(flags: &[String], toolkit: MajorMinor) -> Result<Self, BackendError> {
        let mut read = Self { has_std: user_cxx_level(flags).is_some(), ..Self::default() };
        let joined = with_answers(flags);
        let mut flags = joined.iter();
        while let Some(flag) = flags.next() {
            let (name, value) = flag.split_once('=').map_or((flag.as_str(), None), |(name, value)| (name, Some(value)));
            match name {
                // The default is what older toolkits do anyway.
                "-static-global-template-stub" | "--static-global-template-stub" if toolkit < TEMPLATE_STUB => continue,
                "-compress-mode" | "--compress-mode" if toolkit < COMPRESS_MODE => return Err(refused_compression(flag, toolkit)),
                // How many processors a step may use is the scheduler's decision, and never a part of its result.
                "-t" | "--threads" | "-split-compile" | "--split-compile" => {
                    if value.is_none() {
                        flags.next();
                    }
                    continue;
                }
                "-dlto" | "--dlink-time-opt" => {
                    let reason = "what it makes is no code before a link of its own, which extensions do not have";
                    return Err(BackendError::ToolkitFlag { flag: flag.clone(), reason: reason.to_owned() });
                }
                "-rdc" | "--relocatable-device-code" => read.relocatable = is_relocatable(flag),
                "-dc" | "--device-c" => {
                    // Compiles and stops, as every step does here; what is left of it is that code is relocatable.
                    read.relocatable = true;
                    read.args.push("-rdc=true".to_owned());
                    continue;
                }
                "-gencode" | "--generate-code" | "-arch" | "--gpu-architecture" | "-code" | "--gpu-code" => read.names_architectures = true,
                "-D" | "--define-macro" => {
                    let define = value.map(str::to_owned).or_else(|| flags.next().cloned()).unwrap_or_default();
                    read.args.push(define_arg(&define));
                    continue;
                }
                _ => {}
            }
            // Joined as well.
            if flag.strip_prefix("-t").is_some_and(|count| !count.is_empty() && count.bytes().all(|digit| digit.is_ascii_digit())) {
                continue;
            }
            if let Some(define) = flag.strip_prefix("-D") {
                read.args.push(define_arg(define));
            } else if is_of_host(flag) {
                read.args.extend(to_host(flag));
            } else {
                let with_value = value.is_none() && TAKE_VALUE.contains(&flag.as_str());
                let own = [Some(flag), with_value.then(|| flags.next()).flatten()];
                if let Some(odd) = own.iter().flatten().find(|text| is_for_shells(text)) {
                    return Err(replaced_by_shells(odd));
                }
                read.args.extend(own.into_iter().flatten().cloned());
            }
        }
        Ok(read)
    }
}

/// The flags, with the answer of one that is asked yes or no joined to it: nvcc takes it as an argument of its own too.
fn with_answers(flags: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for flag in flags {
        match joined.last_mut().filter(|last| ANSWERED.contains(&last.as_str()) && matches!(flag.as_str(), "true" | "false")) {
            Some(last) => *last = format!("{last}={flag}"),
            None => joined.push(flag.clone()),
        }
    }
    joined
}

/// Whether a flag, with its value, asks for relocatable device code.
pub fn is_relocatable(flag: &str) -> bool {
    let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
    matches!(name, "-rdc" | "--relocatable-device-code" | "-dc" | "--device-c") && value != "false"
}

fn refused_compression(flag: &str, toolkit: MajorMinor) -> BackendError {
    let reason = format!("not every driver that CUDA {toolkit} code runs with can unpack what it makes; it can be used from CUDA 13 on");
    BackendError::ToolkitFlag { flag: flag.to_owned(), reason }
}

/// Whether a shell would put something else in the place of a part of a text.
fn is_for_shells(text: &str) -> bool {
    let escaped = |at: usize| text.get(..at).is_some_and(|before| before.ends_with('\\'));
    text.match_indices(['$', '`']).any(|(at, _)| !escaped(at))
}

fn replaced_by_shells(text: &str) -> BackendError {
    let reason =
        "nvcc gives it to a shell, which puts something else in the place of what begins with `$` or stands in backticks".to_owned();
    BackendError::ToolkitFlag { flag: text.to_owned(), reason }
}

fn is_of_host(flag: &str) -> bool {
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    !OWN.contains(&name) && OF_HOST.iter().any(|prefix| flag.starts_with(prefix))
}

/// A flag of the host compiler.
pub(crate) fn to_host(flag: &str) -> [String; 2] {
    let plain = flag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=./+:@%".contains(&byte));
    // Between quotes nvcc splits nothing, and it leaves quotes for the shell as they are.
    let quoted = || format!("\"{}\"", escaped(flag, &[('"', "\\\\\\\"")]));
    ["-Xcompiler".to_owned(), if plain { flag.to_owned() } else { quoted() }]
}

/// A define, `NAME` or `NAME=VALUE`: nvcc takes several in one argument, separated by commas, and escapes quotes for the shell.
pub(crate) fn define_arg(define: &str) -> String {
    format!("-D{}", escaped(define, &[('"', "\\\""), (',', "\\,")]))
}

/// A text that arrives as it is: what a shell reads between double quotes is escaped for the shell, and that for nvcc.
fn escaped(text: &str, own: &[(char, &'static str)]) -> String {
    const FOR_SHELLS: [(char, &str); 3] = [('\\', "\\\\\\\\"), ('$', "\\\\$"), ('`', "\\\\`")];
    text.chars().fold(String::new(), |mut escaped, letter| {
        match FOR_SHELLS.iter().chain(own).find(|(special, _)| *special == letter) {
            Some((_, written)) => escaped.push_str(written),
            None => escaped.push(letter),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[&str]) -> UserFlags {
        read_for(flags, MajorMinor::new(13, 2)).unwrap()
    }

    fn read_for(flags: &[&str], toolkit: MajorMinor) -> Result<UserFlags, BackendError> {
        UserFlags::read(&flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>(), toolkit)
    }

    #[test]
    fn each_flag_goes_to_its_compiler() {
        let flags = [
            "-Wall",
            "-Wno-unused-variable",
            "-Wreorder",
            "-fopenmp",
            "-ftz=true",
            "-march=native",
            "-maxrregcount",
            "64",
            "-O3",
            "--use_fast_math",
        ];
        assert_eq!(
            read(&flags).args,
            [
                "-Xcompiler",
                "-Wall",
                "-Xcompiler",
                "-Wno-unused-variable",
                "-Wreorder",
                "-Xcompiler",
                "-fopenmp",
                "-ftz=true",
                "-Xcompiler",
                "-march=native",
                "-maxrregcount",
                "64",
                "-O3",
                "--use_fast_math"
            ]
        );
        assert_eq!(
            read(&["-Xcompiler", "-Wall", "-Xptxas=-v", "-Xcompiler=-fopenmp"]).args,
            ["-Xcompiler", "-Wall", "-Xptxas=-v", "-Xcompiler=-fopenmp"]
        );
    }

    #[test]
    fn commas_and_spaces_stay_in_one_flag() {
        assert_eq!(read(&["-DLIST=1,2", "-D", "F(a,b)=a", "-D=X"]).args, ["-DLIST=1\\,2", "-DF(a\\,b)=a", "-DX"]);
        assert_eq!(read(&["-fsanitize=a,b", "-Wa,--x y"]).args, ["-Xcompiler", "\"-fsanitize=a,b\"", "-Xcompiler", "\"-Wa,--x y\""]);
    }

    /// What nvcc 13.2 was seen to hand on to `g++ -E` as it is.
    #[test]
    fn what_shells_read_arrives_as_it_is() {
        assert_eq!(read(&[r#"-DA="q\"u""#]).args, [r#"-DA=\"q\\\\\"u\""#]);
        assert_eq!(read(&["-DA=$x`y`"]).args, [r"-DA=\\$x\\`y\\`"]);
        assert_eq!(read(&[r"-D", r"A=a\b"]).args, [r"-DA=a\\\\b"]);
        assert_eq!(read(&[r#"-fx="a" $b"#]).args, ["-Xcompiler", r#""-fx=\\\"a\\\" \\$b""#]);
        // Nobody knows how each of nvcc's own options is handed on.
        for odd in [&["-Xptxas=-v$x"][..], &["-Xcompiler", "-DA=`x`"], &["-I$HOME"]] {
            let error = read_for(odd, MajorMinor::new(13, 2)).unwrap_err().to_string();
            assert!(error.contains("nvcc gives it to a shell"), "{error}");
        }
        assert_eq!(read(&["-Xcompiler", r"-DA=\$x"]).args, ["-Xcompiler", r"-DA=\$x"]);
    }

    #[test]
    fn what_a_toolkit_does_not_know() {
        let stub = ["-static-global-template-stub=false"];
        assert_eq!(read(&stub).args, stub);
        for apart in [&stub[..], &["-static-global-template-stub", "false"]] {
            assert_eq!(read_for(apart, MajorMinor::new(12, 6)).unwrap().args, Vec::<String>::new());
            assert_eq!(read(apart).args, stub);
        }
        let size = read_for(&["-compress-mode=size"], MajorMinor::new(12, 6)).unwrap_err();
        assert!(size.to_string().contains("not every driver"), "{size}");
        assert!(read_for(&["-compress-mode=size"], MajorMinor::new(13, 0)).is_ok());
    }

    #[test]
    fn what_flags_say_of_the_rest() {
        let read_one = |flag: &str| read(&[flag]);
        assert!(
            read_one("-rdc=true").relocatable
                && read_one("--relocatable-device-code=true").relocatable
                && !read_one("-rdc=false").relocatable
        );
        assert!(read(&["-rdc", "true"]).relocatable && !read(&["-rdc", "false"]).relocatable);
        assert_eq!(read_one("-dc"), UserFlags { args: vec!["-rdc=true".to_owned()], relocatable: true, ..UserFlags::default() });
        assert!(read_one("-std=c++17").has_std && !read_one("-O2").has_std);
        assert!(read_one("-gencode=arch=compute_80,code=sm_80").names_architectures);
        assert_eq!(read(&["--threads=4", "-t", "4", "-t4", "-O3"]).args, ["-O3"]);
        assert!(read_for(&["-dlto"], MajorMinor::new(13, 2)).is_err());
    }
}
