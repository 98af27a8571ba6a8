//! Command lines for Metal, written by hand from the rules for it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::collections::BTreeSet;

use kiln_backend::KernelOptions;
use support::{Made, OPS, component, settings};

/// Two kernels that have shaders of one name, headers among their sources, and hosts in every language.
fn planned() -> Made {
    let mut first =
        component("kernel.first", &["first/k.metal", "first/shared.h", "first/k.mm", "first/plain.cpp", "first/old.m", "first/c.c"]);
    first.include_dirs = vec![support::path("first/include"), support::path("csrc")];
    first.cxx_flags = vec!["-DFIRST".to_owned()];
    let mut second = component("kernel.second", &["second/k.metal", "second/more.metal", "second/k.mm"]);
    second.include_dirs = vec![support::path("csrc")];
    second.cxx_flags = vec!["-std=c++20".to_owned(), "-fobjc-arc".to_owned()];
    second.uses_framework = false;
    Made::plan(&[component("torch", &["binding.cpp"]), first, second], settings(None, None))
}

/// `metal -std=metal4.0 -O2 -I… -c X.metal -o <unique>.air`, each shader with the directories of its own kernel.
#[test]
fn shaders_are_compiled_by_the_rules() {
    let plan = planned();
    for (source, dirs) in [
        ("first/k.metal", &["-I{project}/first/include", "-I{project}/csrc"][..]),
        ("second/k.metal", &["-I{project}/csrc"]),
        ("second/more.metal", &["-I{project}/csrc"]),
    ] {
        let argv = plan.argv(source);
        assert_eq!(argv[0], "metal");
        assert_eq!(argv[1..4], ["-std=metal4.0", "-O2", "-mmacosx-version-min=26.0"]);
        let (dirs_end, rest) = (4 + dirs.len(), &argv[4 + dirs.len()..]);
        assert_eq!(argv[4..dirs_end], *dirs, "{source}");
        assert_eq!([rest[0], rest[1], rest[3], rest[4], rest[5]], ["-MD", "-MF", "-c", &format!("./{source}"), "-o"]);
        assert!(rest[6].ends_with("/unit.air") && rest.len() == 7, "{rest:?}");
    }
    // Of nothing else are shaders made.
    assert_eq!(plan.labels("metal"), ["first/k.metal", "second/k.metal", "second/more.metal"]);
}

/// All `.air` are one library, in file order; shaders of one name in two folders do not meet.
#[test]
fn all_shaders_are_in_one_library() {
    let plan = planned();
    let argv = plan.argv(&format!("{OPS}.metallib"));
    assert_eq!(argv[..2], ["metallib", "-o"]);
    assert!(argv[2].ends_with(&format!("/{OPS}.metallib")), "{argv:?}");
    let made = ["first/k.metal", "second/k.metal", "second/more.metal"].map(|source| format!("{}/unit.air", plan.output_dir(source)));
    assert_eq!(argv[3..], made);
    assert_eq!(made.iter().collect::<BTreeSet<_>>().len(), 3, "{made:?}");
}

/// Every host source sees the header and both defines, also those of components without a shader and without torch; flags of a kernel
/// reach its own C++ and Objective-C++ alone.
#[test]
fn hosts_see_the_library() {
    let plan = planned();
    let header = plan.output_dir(&format!("{OPS}_metallib.h"));
    for source in ["binding.cpp", "first/k.mm", "first/plain.cpp", "first/old.m", "first/c.c", "second/k.mm"] {
        let argv = plan.argv(source);
        for wanted in [
            format!("-DEMBEDDED_METALLIB_HEADER=\"{OPS}_metallib.h\""),
            format!("-DEMBEDDED_METALLIB_NAMESPACE={OPS}_metal"),
            "-DMETAL_KERNEL".to_owned(),
            format!("-I{header}"),
        ] {
            assert!(argv.contains(&wanted.as_str()), "{source}: {wanted}: {argv:?}");
        }
        // The compiler's own arguments come first: what it is for.
        assert_eq!(argv[..4], ["clang++", "-arch", "arm64", "-mmacosx-version-min=26.0"], "{source}");
        let (language, standard) = match source.rsplit('.').next().unwrap() {
            "mm" => (Some("objective-c++"), true),
            "m" => (Some("objective-c"), false),
            "c" => (Some("c"), false),
            _ => (None, true),
        };
        let told = argv.iter().position(|arg| *arg == "-x").map(|at| argv[at + 1]);
        assert_eq!(told, language, "{source}");
        assert_eq!(argv.iter().any(|arg| arg.starts_with("-std=gnu++")), standard, "{source}: {argv:?}");
        let of_first = matches!(source, "first/k.mm" | "first/plain.cpp");
        assert_eq!(argv.contains(&"-DFIRST"), of_first, "{source}");
        assert_eq!(argv.contains(&"-fobjc-arc"), source == "second/k.mm", "{source}");
    }
    // The author's level comes last, and wins.
    let argv = plan.argv("second/k.mm");
    let levels: Vec<&&str> = argv.iter().filter(|arg| arg.starts_with("-std=")).collect();
    assert_eq!(levels, [&"-std=gnu++20", &"-std=c++20"]);
    assert!(!plan.argv("first/k.mm").contains(&"-fobjc-arc"));
}

/// Only the header's step reads what `metallib` made.
#[test]
fn no_header_where_no_shader_is() {
    let plan = Made::plan(&[component("torch", &["binding.cpp"]), component("kernel.k", &["k.mm", "k.h"])], settings(None, None));
    assert!(plan.labels("metal").is_empty() && plan.labels("metallib").is_empty());
    assert!(!plan.steps().any(|label| label.contains("metallib")));
    for source in ["binding.cpp", "k.mm"] {
        assert!(!plan.argv(source).iter().any(|arg| arg.contains("METALLIB")), "{source}");
    }
}

#[test]
fn settings_reach_every_compiler() {
    let components = [component("torch", &["binding.cpp"]), component("kernel.k", &["k.metal", "k.mm"])];
    let plan = Made::plan(&components, settings(Some("15.4"), Some("metal3.2")));
    assert_eq!(plan.argv("k.metal")[1..4], ["-std=metal3.2", "-O2", "-mmacosx-version-min=15.4"]);
    assert!(plan.argv("k.mm").contains(&"-mmacosx-version-min=15.4"));
}

/// What `metal` would take for an option is the name of a file.
#[test]
fn names_like_options() {
    let plan = Made::plan(&[component("torch", &["binding.cpp"]), component("kernel.k", &["-k.metal", "k.mm"])], settings(None, None));
    assert!(plan.argv("-k.metal").contains(&"./-k.metal"));
}

#[test]
fn the_link() {
    let plan = planned();
    let argv = plan.argv(&format!("{OPS}.abi3.so"));
    assert_eq!(argv[..4], ["clang++", "-arch", "arm64", "-mmacosx-version-min=26.0"]);
    assert_eq!(argv[4..7], ["-shared", "-nostdlib++", "-o"]);
    let from = argv.iter().position(|arg| arg.ends_with(".tbd")).unwrap();
    let names: Vec<&str> = argv[from..].iter().take_while(|arg| arg.ends_with(".tbd")).map(|arg| arg.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["libc10.tbd", "libtorch.tbd", "libtorch_cpu.tbd", "Metal.tbd", "Foundation.tbd", "libc++.1.tbd"]);
    let rest = &argv[from + names.len()..];
    let exports = rest.iter().find(|arg| arg.ends_with("/exports.txt")).unwrap();
    let words = [
        "-install_name",
        &format!("@rpath/{OPS}.abi3.so"),
        "-rpath",
        "@loader_path/lib",
        "-exported_symbols_list",
        exports,
        "-dead_strip_dylibs",
        "-S",
        "-undefined",
        "dynamic_lookup",
    ];
    assert_eq!(rest, words.iter().flat_map(|word| ["-Xlinker", word]).collect::<Vec<_>>());
}

#[test]
fn other_files_are_refused() {
    let refused = |source: &str| {
        let options = Some(KernelOptions::Metal);
        let kernel = kiln_backend::Component { options, ..component("kernel.k", &["k.mm", source]) };
        Made::try_plan(&[component("torch", &["binding.cpp"]), kernel], settings(None, None)).unwrap_err().to_string()
    };
    assert_eq!(refused("k.cu"), "`k.cu` is neither a source nor a header that metal compiles");
    assert_eq!(refused("dir/.metal"), "`dir/.metal` is neither a source nor a header that metal compiles");
}
