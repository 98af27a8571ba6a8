//! Goes through the flags of a component before anything is compiled.
//!
//! A compiler takes many flags that leave a step without its object, or an object without a part of its inputs: it then fails late, in
//! words about something else, or it is not run again when it should be. They are refused where they stand.

use super::table::{Class, Form, HOST, Known, NATIVE, NVCC, PASS, TO_HOST};

/// The compiler that a list of flags is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagList {
    /// A host compiler, or a device compiler that is made of one and takes its flags.
    Host,
    /// nvcc.
    Nvcc,
}

/// What is wrong with a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagFault {
    /// It can never be used.
    Refused {
        /// Which flag, and why.
        message: String,
        /// What to do instead.
        hint: String,
    },
    /// It makes code for the machine that compiles, or code that differs from machine to machine.
    MachineBound {
        /// Which flag, and what it leads to.
        message: String,
        /// What to do instead.
        hint: String,
    },
    /// It does nothing.
    NoEffect {
        /// Which flag, and why.
        message: String,
        /// What to do instead.
        hint: String,
    },
    /// It names a file that is read before the source. Compilers look for it in the project's directory first: a path of the project
    /// always means the same file, and any other name does not.
    Reads {
        /// The flag.
        flag: String,
        /// The path as written.
        path: String,
    },
}

/// Something to say about one entry of a list of flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagRemark {
    /// The index of the entry.
    pub at: usize,
    /// What is wrong with it.
    pub fault: FlagFault,
}

/// What there is to say about `flags`, in their order.
pub fn audit_flags<T: AsRef<str>>(list: FlagList, flags: &[T]) -> Vec<FlagRemark> {
    let flags: Vec<&str> = flags.iter().map(AsRef::as_ref).collect();
    let mut remarks = Vec::new();
    let mut at = 0;
    while let Some(flag) = flags.get(at) {
        let next = flags.get(at + 1).copied();
        let mut say = |at: usize, fault: FlagFault| remarks.push(FlagRemark { at, fault });
        at += 1 + usize::from(entry(list, at, flag, next, &mut say));
    }
    remarks
}

/// The first of `flags` that makes code for the machine that compiles, as it would be shown.
pub(crate) fn machine_flag<T: AsRef<str>>(list: FlagList, flags: &[T]) -> Option<String> {
    let remarks = audit_flags(list, flags);
    let found = remarks.iter().find(|remark| matches!(remark.fault, FlagFault::MachineBound { .. }))?;
    Some(flags.get(found.at)?.as_ref().to_owned())
}

/// Looks at one entry. True when `next` is its value.
fn entry(list: FlagList, at: usize, flag: &str, next: Option<&str>, say: &mut dyn FnMut(usize, FlagFault)) -> bool {
    if let Some(fault) = shape(flag) {
        say(at, fault);
        return false;
    }
    if let Some((to_host, joined)) = handed_on(list, flag) {
        let value = joined.or(next);
        for part in value.unwrap_or_default().split(if to_host { ',' } else { '\0' }) {
            if let Some(fault) = inner(part) {
                say(if joined.is_some() { at } else { at + 1 }, fault);
            }
        }
        if value.is_none() {
            say(at, missing_value(flag));
        }
        return joined.is_none();
    }
    if let Some(rest) = flag.strip_prefix("-Wp,") {
        for fault in rest.split(',').filter_map(inner) {
            say(at, fault);
        }
        return false;
    }
    if let Some(value) = native(flag, next) {
        let joined = flag.len() > value.len();
        say(at, machine_bound(if joined { flag.to_owned() } else { format!("{flag} native") }.as_str()));
        return !joined;
    }
    let Some((known, value)) = find(list, flag) else {
        // nvcc takes the value of every flag from the next argument too.
        return list == FlagList::Nvcc && !flag.contains('=') && next.is_some_and(|next| !next.starts_with('-') && !is_file(next));
    };
    let takes_next = match known.form {
        Form::Next => true,
        Form::Either | Form::EqualsOrNext | Form::NumberOrNext => value.is_none(),
        Form::Alone | Form::Starts | Form::Equals => false,
    };
    if takes_next && next.is_none() {
        say(at, missing_value(flag));
        return false;
    }
    if let Some(class) = known.class {
        let value = value.or(if takes_next { next } else { None }).unwrap_or_default();
        say(if class == Class::PreInclude && takes_next { at + 1 } else { at }, fault_of(class, known.flag, flag, value));
    }
    takes_next
}

/// What is wrong with an entry whatever flag it is.
fn shape(flag: &str) -> Option<FlagFault> {
    let refused = |message: String, hint: String| Some(FlagFault::Refused { message, hint });
    if flag.trim().is_empty() {
        return refused("an empty flag cannot be used: compilers take it for the name of a file".to_owned(), "remove it".to_owned());
    }
    if flag.contains('\0') {
        return refused("a flag holds a zero byte, which no program can be given".to_owned(), "remove it".to_owned());
    }
    if flag.starts_with('@') {
        let message = format!("`{flag}` cannot be used: flags in a file are not looked at, and an edit of it would not be noticed");
        return refused(message, "write the flags here".to_owned());
    }
    if flag == "-" {
        return refused("`-` cannot be used: it makes the compiler read from its input".to_owned(), "remove it".to_owned());
    }
    if !flag.starts_with('-') {
        let hint = if is_file(flag) { "list sources in `src`" } else { "flags begin with `-`" };
        return refused(format!("`{flag}` cannot be used: compilers take it for the name of a file"), hint.to_owned());
    }
    // Two flags in one text; a define may hold anything.
    let mut words = flag.split_whitespace();
    let first = words.next().unwrap_or_default();
    let second = words.clone().next();
    if !first.starts_with("-D") && !first.starts_with("-Wp,") && second.is_some_and(|word| word.starts_with('-')) {
        let each = flag.split_whitespace().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        return refused(format!("`{flag}` cannot be used: it is several flags in one text"), format!("write {each}"));
    }
    None
}

/// The flag that hands its value to another part of the compiler: whether that is the host compiler, and the value if it is joined.
fn handed_on(list: FlagList, flag: &str) -> Option<(bool, Option<&str>)> {
    if list == FlagList::Nvcc {
        for name in TO_HOST {
            match flag.strip_prefix(name) {
                Some("") => return Some((true, None)),
                Some(rest) if rest.starts_with('=') => return Some((true, rest.get(1..))),
                _ => {}
            }
        }
    }
    PASS.contains(&flag).then_some((false, None))
}

/// What is wrong with a flag that another one hands on. Its own values stand elsewhere.
fn inner(flag: &str) -> Option<FlagFault> {
    if native(flag, None).is_some() {
        return Some(machine_bound(flag));
    }
    let (known, value) = find(FlagList::Host, flag)?;
    let class = known.class.filter(|class| *class != Class::Linker)?;
    // Where the name of the file stands is not known.
    let class = if class == Class::PreInclude { Class::HiddenInput } else { class };
    Some(fault_of(class, known.flag, flag, value.unwrap_or_default()))
}

/// The value `native` of a flag that asks for the machine that compiles.
fn native<'a>(flag: &'a str, next: Option<&'a str>) -> Option<&'a str> {
    let of = |value: &&str| value.split([',', '=']).any(|part| part == "native");
    match flag.split_once('=') {
        Some((name, value)) if NATIVE.contains(&name) => Some(value).filter(of),
        None if NATIVE.contains(&flag) => next.filter(of),
        _ => None,
    }
}

/// What is known of a flag, and the value that is joined to it.
fn find(list: FlagList, flag: &str) -> Option<(&'static Known, Option<&str>)> {
    let own: &[Known] = if list == FlagList::Nvcc { NVCC } else { &[] };
    own.iter().chain(HOST).find_map(|known| {
        let rest = flag.strip_prefix(known.flag)?;
        let joined = rest.strip_prefix('=');
        match known.form {
            Form::Alone | Form::Next if rest.is_empty() => Some((known, None)),
            Form::Alone | Form::Next => None,
            Form::Starts => Some((known, Some(rest))),
            Form::Either => Some((known, if rest.is_empty() { None } else { joined.or(Some(rest)) })),
            Form::Equals | Form::EqualsOrNext | Form::NumberOrNext if rest.is_empty() => Some((known, None)),
            Form::NumberOrNext => {
                let number = joined.unwrap_or(rest);
                number.bytes().all(|digit| digit.is_ascii_digit()).then_some((known, Some(number)))
            }
            Form::Equals | Form::EqualsOrNext => joined.map(|value| (known, Some(value))),
        }
    })
}

/// Whether a word looks like a source or an object.
fn is_file(word: &str) -> bool {
    const KINDS: [&str; 14] = ["a", "asc", "c", "cc", "cpp", "cu", "cxx", "h", "hip", "hpp", "o", "obj", "s", "so"];
    word.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && KINDS.contains(&extension.to_ascii_lowercase().as_str()))
}

fn missing_value(flag: &str) -> FlagFault {
    FlagFault::Refused {
        message: format!("`{flag}` has no value: it would take the next flag of the command for it"),
        hint: "add the value as the next entry, or remove the flag".to_owned(),
    }
}

fn machine_bound(flag: &str) -> FlagFault {
    FlagFault::MachineBound {
        message: format!("`{flag}` compiles for the processor of the machine that builds: others may not run it, and no two agree on it"),
        hint: "name the processor, as in `-march=x86-64-v3`, in a kernel that is called only where it runs".to_owned(),
    }
}

/// What a known flag would do. `name` is the flag without its value.
fn fault_of(class: Class, name: &str, flag: &str, value: &str) -> FlagFault {
    let refused = |reason: &str, hint: String| FlagFault::Refused { message: format!("`{flag}` cannot be used: {reason}"), hint };
    match class {
        Class::Mode => refused("it makes the compiler do something else than to write an object", remove()),
        Class::Depfile => refused("Kiln asks the compiler itself which files it reads", remove()),
        Class::Output => {
            let hint = if flag.starts_with("-openmp") { "write `-fopenmp`".to_owned() } else { remove() };
            refused("Kiln says where the object goes", hint)
        }
        Class::Language => refused(
            "the language of a source follows from its name",
            "rename the source: `.cpp` is C++, `.c` is C, and each backend has its own".to_owned(),
        ),
        Class::Beside => refused(
            "what it writes beside the object is thrown away",
            "use it with the command that `kiln build --print-commands` shows".to_owned(),
        ),
        Class::IncludeDir => {
            let dir = value.trim().trim_start_matches("./");
            let dir = if dir.is_empty() || dir.starts_with('/') { String::new() } else { format!(" as `include = [\"{dir}\"]`") };
            refused(
                "directories that only flags name are not watched, and need not exist elsewhere",
                format!("list the directory, which must lie in the project, in `include`{dir}"),
            )
        }
        Class::PreInclude => FlagFault::Reads { flag: name.to_owned(), path: value.trim().to_owned() },
        Class::HiddenInput => refused("it makes the compiler read a file whose edits would not be noticed", remove()),
        Class::Parts => refused(
            "which compiler runs, and where it finds its parts and the system's headers, is not for one kernel to say",
            "`--cxx`, or `[build] cxx` in `kiln.toml`, chooses another compiler".to_owned(),
        ),
        Class::Platform => refused("the platform is the one of the variant", remove()),
        Class::LinkTime => {
            refused("the names that an object wants are looked up before it is linked, and such objects do not show them", remove())
        }
        Class::StaticRuntime => {
            refused("a second C++ runtime in the process breaks exceptions and locales that cross the extension's border", remove())
        }
        Class::StaticUnwinder => refused("the first exception that leaves the extension would end the process", remove()),
        Class::Jobs => FlagFault::NoEffect {
            message: format!("`{flag}` has no effect: the parts of a unit are steps, and Kiln says how many run at once"),
            hint: "remove it; `-j` says how many steps may run".to_owned(),
        },
        Class::Linker => FlagFault::NoEffect {
            message: format!("`{flag}` has no effect: it is for links, and these flags are for compiling"),
            hint: remove(),
        },
    }
}

fn remove() -> String {
    "remove it".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per remark: the entry, a letter for the kind, and what is said.
    fn said(list: FlagList, flags: &[&str]) -> String {
        let line = |remark: &FlagRemark| {
            let text = match &remark.fault {
                FlagFault::Refused { message, hint } => format!("E {message} [{hint}]"),
                FlagFault::MachineBound { message, .. } => format!("M {message}"),
                FlagFault::NoEffect { message, .. } => format!("N {message}"),
                FlagFault::Reads { flag, path } => format!("R {flag} {path}"),
            };
            format!("{} {text}\n", remark.at)
        };
        audit_flags(list, flags).iter().map(line).collect()
    }

    /// The entries that something is said about, with the kind.
    fn kinds(list: FlagList, flags: &[&str]) -> Vec<(usize, char)> {
        said(list, flags)
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(at, rest)| (at.parse().unwrap(), rest.chars().next().unwrap()))
            .collect()
    }

    #[test]
    fn flags_that_reach_no_command_of_nvcc_are_told() {
        for flags in
            [&["--threads", "4"][..], &["--threads=4"], &["-t", "4"], &["-t4"], &["-t=0"], &["-split-compile=0"], &["--split-compile", "2"]]
        {
            assert_eq!(kinds(FlagList::Nvcc, flags), [(0, 'N')], "{flags:?}");
        }
        assert_eq!(
            said(FlagList::Nvcc, &["--threads", "4", "-O3"]),
            "0 N `--threads` has no effect: the parts of a unit are steps, and Kiln says how many run at once\n"
        );
        for flags in [&["-time", "x.csv"][..], &["--time=x.csv"], &["-fdevice-time-trace", "x.json"]] {
            assert_eq!(kinds(FlagList::Nvcc, flags), [(0, 'E')], "{flags:?}");
        }
        assert_eq!(kinds(FlagList::Host, &["-traditional", "-trigraphs"]), []);
        assert_eq!(kinds(FlagList::Nvcc, &["-trigraphs"]), []);
    }

    #[test]
    fn flags_that_change_what_a_compiler_makes() {
        let modes = [
            "-c",
            "-S",
            "-E",
            "-M",
            "-MM",
            "-MD",
            "-MMD",
            "-MP",
            "-MG",
            "-MFx.d",
            "-MTx",
            "-MQx",
            "-MJx",
            "-fsyntax-only",
            "-###",
            "-ofile",
            "-openmp",
            "-xc",
            "-xc++",
            "--version",
            "--help",
            "--help=target",
            "-dumpmachine",
            "-print-search-dirs",
            "-dM",
            "-emit-llvm",
            "--output=x",
            "-save-temps",
            "-save-temps=obj",
            "-fdump-tree-all",
            "-gsplit-dwarf",
            "--coverage",
            "-I.",
            "-Iinclude",
            "-isystem/usr",
            "-iquotex",
            "-idirafterx",
            "--sysroot=/x",
            "-B/x",
            "-m32",
            "--target=aarch64-linux",
            "-flto",
            "-flto=auto",
            "-fplugin=x.so",
            "-fprofile-use=x",
            "-static-libgcc",
            "@flags",
            "",
            " ",
            "x.o",
            "x",
            "-",
            "-O2 -g",
            "-Wp,-MD,x",
            "-Wp,-include,x.h",
        ];
        for flag in modes {
            assert_eq!(kinds(FlagList::Host, &["-O2", flag, "-g"]), [(1, 'E')], "{flag}: {}", said(FlagList::Host, &[flag]));
        }
        for flag in
            ["-c", "-ptx", "--cubin", "-odir=x", "-keep", "-ccbin=x", "-Xcompiler=-S", "--compiler-options=-g,-MD", "-optf=x", "-dlink"]
        {
            assert_eq!(kinds(FlagList::Nvcc, &["-lineinfo", flag]), [(1, 'E')], "{flag}: {}", said(FlagList::Nvcc, &[flag]));
        }
        // With a value that stands alone, both entries are one flag.
        for flag in ["-o", "-x", "-MF", "-MT", "-I", "-isystem", "-target", "--output", "-wrapper"] {
            assert_eq!(kinds(FlagList::Host, &[flag, "value", "-g"]), [(0, 'E')], "{flag}");
        }
    }

    #[test]
    fn flags_that_are_the_compilers_own_business() {
        let fine = [
            "-O3",
            "-g",
            "-Wall",
            "-Werror",
            "-std=c++20",
            "-fopenmp",
            "-mavx512f",
            "-march=x86-64-v3",
            "-DA",
            "-DA=-c -o x",
            "-D",
            "A",
            "-U",
            "B",
            "--param",
            "x=1",
            "--param=x=1",
            "-ffast-math",
            "-fno-lto",
            "-w",
            "-pipe",
            "-v",
            "-mllvm",
            "-x",
            "-Xclang",
            "-fopenmp-x",
            "-Wp,-D_FORTIFY_SOURCE=2",
            "-fmessage-length=0",
            "-msse4.2",
            "-Wa,-mbranches-within-32B-boundaries",
        ];
        assert_eq!(said(FlagList::Host, &fine), "");
        let nvcc = [
            "-lineinfo",
            "--use_fast_math",
            "-O3",
            "-std",
            "c++17",
            "-gencode",
            "arch=compute_90a,code=sm_90a",
            "-gencode=arch=compute_80,code=sm_80",
            "-Xcompiler",
            "-Wall,-O2",
            "-Xcompiler=-fopenmp",
            "-Xptxas",
            "-v",
            "--ptxas-options=-v",
            "-maxrregcount",
            "64",
            "-DA",
            "-rdc=true",
            "-dc",
            "--diag-suppress",
            "177",
            "-static-global-template-stub=false",
            "--expt-relaxed-constexpr",
            "-U__CUDA_NO_HALF_OPERATORS__",
        ];
        assert_eq!(said(FlagList::Nvcc, &nvcc), "");
    }

    #[test]
    fn what_is_said() {
        insta::assert_snapshot!(said(FlagList::Host, &["-I", "third_party/x", "-I/opt/x", "-include", "cpu/pre.h", "-includecpu/a.h", "--include=b.h"]), @r#"
        0 E `-I` cannot be used: directories that only flags name are not watched, and need not exist elsewhere [list the directory, which must lie in the project, in `include` as `include = ["third_party/x"]`]
        2 E `-I/opt/x` cannot be used: directories that only flags name are not watched, and need not exist elsewhere [list the directory, which must lie in the project, in `include`]
        4 R -include cpu/pre.h
        5 R -include cpu/a.h
        6 R --include b.h
        "#);
        insta::assert_snapshot!(said(FlagList::Host, &["-openmp", "-O2 -g", "-Wl,-z,now", "-lfoo", "-l", "foo", "-D"]), @r#"
        0 E `-openmp` cannot be used: Kiln says where the object goes [write `-fopenmp`]
        1 E `-O2 -g` cannot be used: it is several flags in one text [write "-O2", "-g"]
        2 N `-Wl,-z,now` has no effect: it is for links, and these flags are for compiling
        3 N `-lfoo` has no effect: it is for links, and these flags are for compiling
        4 N `-l` has no effect: it is for links, and these flags are for compiling
        6 E `-D` has no value: it would take the next flag of the command for it [add the value as the next entry, or remove the flag]
        "#);
        insta::assert_snapshot!(said(FlagList::Nvcc, &["-arch=native", "-arch", "native", "-Xcompiler", "-march=native,-O2", "a.cu", "-Xcompiler"]), @"
        0 M `-arch=native` compiles for the processor of the machine that builds: others may not run it, and no two agree on it
        1 M `-arch native` compiles for the processor of the machine that builds: others may not run it, and no two agree on it
        4 M `-march=native` compiles for the processor of the machine that builds: others may not run it, and no two agree on it
        5 E `a.cu` cannot be used: compilers take it for the name of a file [list sources in `src`]
        6 E `-Xcompiler` has no value: it would take the next flag of the command for it [add the value as the next entry, or remove the flag]
        ");
        for flag in ["-march=native", "-mtune=native", "-mcpu=native", "--offload-arch=native"] {
            assert_eq!(kinds(FlagList::Host, &[flag]), [(0, 'M')], "{flag}");
        }
    }
}
