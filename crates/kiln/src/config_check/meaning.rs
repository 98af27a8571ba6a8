//! What the file asks for and nothing can give: variants without code, ABI versions without a torch, keys without effect.

use kiln_format::build::{Framework, StableAbi};
use kiln_format::{BackendName, Build, Dependency, Diagnostic, MajorMinor, Spanned, Version};

use super::files::is_translation_unit;
use crate::matrix::Matrix;

pub(super) fn check(build: &Build, matrix: &Matrix) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    if build.general.license.is_none() {
        diagnostics.push(
            Diagnostic::error("missing-key", build.general.name.span, "`general.license` is missing: published metadata need it")
                .with_hint("`kiln update-build --license ID` adds it".to_owned()),
        );
    }
    diagnostics.extend(stable_abi(build, matrix));
    diagnostics.extend(two_releases(build));
    diagnostics.extend(no_unit(build));
    diagnostics.extend(unused_binding(build));
    diagnostics.extend(bounds_without_effect(build));
    diagnostics
}

/// The oldest torch that extensions can be compiled for by the stable ABI: its headers are the first that `TORCH_TARGET_VERSION` can name
/// (`torch/csrc/stable/version.h`).
const OLDEST_STABLE_ABI: MajorMinor = MajorMinor::new(2, 9);

/// The stable ABI of a compiled backend must be one that some torch of the matrix has.
fn stable_abi(build: &Build, matrix: &Matrix) -> Vec<Diagnostic> {
    let Framework::Torch(torch) = &build.framework else { return Vec::new() };
    let compiled = |backend: &BackendName| build.kernels_for(*backend).next().is_some();
    let maxver = torch.maxver.as_ref().map(|maxver| maxver.major_minor());
    let newest_of = |backend: BackendName| matrix.newest_torch(backend, maxver).or_else(|| matrix.newest_torch(backend, None));
    let newest = |backend: BackendName, version: &Spanned<Version>| {
        let newest = newest_of(backend).filter(|newest| *newest < version.major_minor())?;
        let (which, of_which) = match maxver.filter(|maxver| version.major_minor() > *maxver) {
            Some(_) => ("up to `torch.maxver`", format!("for {backend} up to `torch.maxver`")),
            None => ("in the matrix", format!("for {backend}")),
        };
        let message = format!("no torch {which} provides stable ABI {}", version.value);
        let error = Diagnostic::error("stable-abi-too-new", version.span, message)
            .with_note(format!("it needs torch {} or newer; the newest {of_which} is {newest}", version.major_minor()));
        // One that no torch of the matrix has for another reason is not to be advised.
        let advice = (newest >= OLDEST_STABLE_ABI).then(|| format!("write `\"{newest}\"`, or an older version"));
        Some(error.with_hint(advice))
    };
    let oldest = |version: &Spanned<Version>| {
        (version.major_minor() < OLDEST_STABLE_ABI).then(|| {
            Diagnostic::error("stable-abi-too-old", version.span, format!("no torch provides stable ABI {}", version.value))
                .with_note(format!(
                    "torch has a stable ABI from {OLDEST_STABLE_ABI} on: with an older one loaders would take the variant and fail"
                ))
                .with_hint(format!("write `\"{OLDEST_STABLE_ABI}\"` or a newer version"))
        })
    };
    match &torch.stable_abi {
        StableAbi::None => Vec::new(),
        // One place: the backend whose newest torch is the oldest says it for all.
        StableAbi::All(version) => {
            let backends: Vec<BackendName> = build.backends().filter(compiled).collect();
            let known = backends.iter().copied().filter(|backend| newest_of(*backend).is_some());
            let first = known.min_by_key(|backend| newest_of(*backend));
            let too_old = oldest(version).filter(|_| !backends.is_empty());
            too_old.or_else(|| newest(first?, version)).into_iter().collect()
        }
        // Entries for backends that are not listed have no effect, on purpose.
        StableAbi::PerBackend(entries) => entries
            .iter()
            .filter(|(backend, _)| build.backends().any(|listed| listed == backend.value) && compiled(&backend.value))
            .filter_map(|(backend, version)| oldest(version).or_else(|| newest(backend.value, version)))
            .collect(),
    }
}

/// Every unit of a variant sees the headers of all libraries, and two releases of one have equal names.
fn two_releases(build: &Build) -> Option<Diagnostic> {
    let mut first: Option<(Dependency, String)> = None;
    for kernel in build.kernels_for(BackendName::Cuda) {
        for listed in kernel.depends.iter().filter(|listed| listed.value.cutlass_release().is_some()) {
            match &first {
                None => first = Some((listed.value, kernel.name.value.clone())),
                Some((known, _)) if *known == listed.value => {}
                Some((known, other)) => {
                    let message =
                        format!("`{}` cannot stand beside `{known}` of [kernel.{other}]: a variant has one CUTLASS", listed.value);
                    return Some(Diagnostic::error("two-releases", listed.span, message));
                }
            }
        }
    }
    None
}

/// A compiled variant needs something to compile.
fn no_unit(build: &Build) -> Vec<Diagnostic> {
    if build.framework.src().iter().any(|source| is_translation_unit(source.file_name(), None)) {
        return Vec::new();
    }
    let mut diagnostics = Vec::new();
    for listed in &build.general.backends {
        let backend = listed.value;
        let units = |kernel: &kiln_format::build::Kernel| kernel.src.iter().any(|s| is_translation_unit(s.file_name(), Some(backend)));
        let Some(first) = build.kernels_for(backend).next() else { continue };
        if !build.kernels_for(backend).any(units) {
            let message = format!("there is nothing to compile for {backend}: no `src` lists a translation unit");
            diagnostics.push(
                Diagnostic::error("no-translation-unit", first.name.span, message)
                    .with_hint(format!("list a source such as a `.cpp`, or remove the kernels of {backend} to ship Python only for it")),
            );
        }
    }
    diagnostics
}

/// A binding is compiled with the kernels of a backend, and never without one.
fn unused_binding(build: &Build) -> Option<Diagnostic> {
    let Framework::Torch(torch) = &build.framework else { return None };
    let unit = torch.src.iter().find(|source| is_translation_unit(source.file_name(), None))?;
    if build.backends().any(|backend| build.kernels_for(backend).next().is_some()) {
        return None;
    }
    let backend = build.backends().next()?;
    let message = "nothing compiles the sources of `[torch]`: no kernel is for a listed backend, so every variant is Python only";
    let hint = format!("add a `[kernel.*]` with `backend = \"{backend}\"`, whose `src` may be empty, or use `[torch-noarch]`");
    Some(Diagnostic::warning("unused-source", unit.span, message).with_hint(hint))
}

/// Bounds say which builds of a torch or toolkit are compiled for; where nothing is compiled they say nothing.
fn bounds_without_effect(build: &Build) -> Vec<Diagnostic> {
    let noarch = matches!(build.framework, Framework::TorchNoarch(_));
    let listed = build.backends().any(|backend| backend == BackendName::Cuda);
    if !noarch && listed {
        return Vec::new();
    }
    let why = if noarch { "the kernel is Python only" } else { "`general.backends` does not list cuda" };
    let bounds = [("minver", &build.general.cuda_minver), ("maxver", &build.general.cuda_maxver)];
    bounds
        .into_iter()
        .filter_map(|(key, bound)| bound.as_ref().map(|bound| (key, bound.span)))
        .map(|(key, span)| Diagnostic::warning("unused-key", span, format!("`general.cuda.{key}` has no effect: {why}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use kiln_format::render;

    use super::super::testing::Project;
    use crate::matrix::Matrix;

    const CPU: &str = "[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\"]\n";

    fn messages(rest: &str) -> String {
        let project = Project::new(rest, &[]);
        render(&project.build.source, &super::check(&project.build, &Matrix::builtin().unwrap()))
    }

    #[test]
    fn stable_abi_beyond_the_matrix() {
        assert_eq!(messages(&format!("[torch]\nstable-abi = \"2.15\"\n{CPU}")), "");
        insta::assert_snapshot!(messages(&format!("[torch]\nstable-abi = \"2.16\"\n{CPU}")), @r#"
        error[stable-abi-too-new]: no torch in the matrix provides stable ABI 2.16
          --> build.toml:8:14
          |
        8 | stable-abi = "2.16"
          |              ^^^^^^
          = it needs torch 2.16 or newer; the newest for cpu is 2.15
        hint: write `"2.15"`, or an older version
        "#);
        insta::assert_snapshot!(messages(&format!("[torch.stable-abi]\ncpu = \"9.9\"\ncuda = \"9.9\"\nxpu = \"9.9\"\n{CPU}")), @r#"
        error[stable-abi-too-new]: no torch in the matrix provides stable ABI 9.9
          --> build.toml:8:7
          |
        8 | cpu = "9.9"
          |       ^^^^^
          = it needs torch 9.9 or newer; the newest for cpu is 2.15
        hint: write `"2.15"`, or an older version
        "#);
    }

    #[test]
    fn stable_abi_beyond_the_bound() {
        let with = |abi: &str, maxver: &str| messages(&format!("[torch]\nstable-abi = \"{abi}\"\nmaxver = \"{maxver}\"\n{CPU}"));
        insta::assert_snapshot!(with("2.14", "2.13"), @r#"
        error[stable-abi-too-new]: no torch up to `torch.maxver` provides stable ABI 2.14
          --> build.toml:8:14
          |
        8 | stable-abi = "2.14"
          |              ^^^^^^
          = it needs torch 2.14 or newer; the newest for cpu up to `torch.maxver` is 2.13
        hint: write `"2.13"`, or an older version
        "#);
        assert_eq!(with("2.13", "2.13"), "");
        assert_eq!(with("2.12.5", "2.13.1"), "");
        assert!(with("2.16", "2.99").starts_with("error[stable-abi-too-new]: no torch in the matrix provides"));
    }

    #[test]
    fn stable_abi_before_there_was_one() {
        insta::assert_snapshot!(messages(&format!("[torch]\nstable-abi = {{ cpu = \"1.0\", cuda = \"0\" }}\n{CPU}")), @r#"
        error[stable-abi-too-old]: no torch provides stable ABI 1.0
          --> build.toml:8:22
          |
        8 | stable-abi = { cpu = "1.0", cuda = "0" }
          |                      ^^^^^
          = torch has a stable ABI from 2.9 on: with an older one loaders would take the variant and fail
        hint: write `"2.9"` or a newer version
        "#);
        for version in ["0", "0.0", "1.0", "1.99999", "2", "2.8", "2.8.99", "00002.000008"] {
            for written in [format!("\"{version}\""), format!("{{ cpu = \"{version}\" }}")] {
                let said = messages(&format!("[torch]\nstable-abi = {written}\n{CPU}"));
                assert!(said.starts_with(&format!("error[stable-abi-too-old]: no torch provides stable ABI {version}\n")), "{said}");
                assert_eq!(said.matches("error[").count(), 1, "{said}");
            }
        }
        for version in ["2.9", "2.9.0", "2.10", "2.11"] {
            assert_eq!(messages(&format!("[torch]\nstable-abi = \"{version}\"\n{CPU}")), "", "{version}");
        }
        // Without effect, and for a quick test on purpose.
        assert_eq!(messages(&format!("[torch]\nstable-abi = {{ rocm = \"1.0\" }}\n{CPU}")), "");
        assert_eq!(messages("[torch]\nstable-abi = \"1.0\"\n"), "");
    }

    /// Whatever the version, what the error says to write is accepted.
    #[test]
    fn the_advised_stable_abi_is_one() {
        for version in ["0", "1.0", "2.8", "2.16", "3", "10.0", "999999999999999.1", "18446744073709551615.18446744073709551615"] {
            for form in ["\"@\"", "{ cpu = \"@\" }"] {
                let with = |version: &str| messages(&format!("[torch]\nstable-abi = {}\n{CPU}", form.replace('@', version)));
                let said = with(version);
                let advised = said.split("hint: write `\"").nth(1).and_then(|rest| rest.split('"').next());
                assert_eq!(with(advised.unwrap()), "", "{said}");
            }
        }
    }

    /// A variant has one CUTLASS; kernels that agree on it may be many, and those of other backends do not count.
    #[test]
    fn two_releases_of_cutlass() {
        let kernel = |name: &str, backend: &str, depends: &str| {
            format!("[kernel.{name}]\nbackend = \"{backend}\"\ndepends = [{depends}]\nsrc = [\"{name}.cu\"]\n")
        };
        let with = |second: &str| messages(&format!("[torch]\n{}{second}", kernel("a", "cuda", "\"cutlass_3_8\"")));
        insta::assert_snapshot!(with(&kernel("b", "cuda", "\"torch\", \"cutlass_3_6\"")), @r#"
        error[two-releases]: `cutlass_3_6` cannot stand beside `cutlass_3_8` of [kernel.a]: a variant has one CUTLASS
           --> build.toml:14:21
           |
        14 | depends = ["torch", "cutlass_3_6"]
           |                     ^^^^^^^^^^^^^
        "#);
        assert_eq!(with(&kernel("b", "cuda", "\"cutlass_3_8\"")), "");
        assert_eq!(with(&kernel("b", "cuda", "\"torch\"")), "");
        let one = messages(&format!("[torch]\n{}", kernel("a", "cuda", "\"cutlass_3_8\", \"cutlass_3_6\"")));
        assert!(one.starts_with("error[two-releases]: `cutlass_3_6` cannot stand beside `cutlass_3_8` of [kernel.a]"), "{one}");
    }

    #[test]
    fn nothing_to_compile() {
        let headers = CPU.replace("k.cpp", "k.h");
        insta::assert_snapshot!(messages(&format!("[torch]\nsrc = [\"b.h\"]\n{headers}")), @r"
        error[no-translation-unit]: there is nothing to compile for cpu: no `src` lists a translation unit
          --> build.toml:9:9
          |
        9 | [kernel.k]
          |         ^
        hint: list a source such as a `.cpp`, or remove the kernels of cpu to ship Python only for it
        ");
        assert_eq!(messages(&format!("[torch]\nsrc = [\"b.cpp\"]\n{headers}")), "");
        assert_eq!(messages("[torch]\n"), "");
        assert!(messages(&format!("[torch]\n{}", CPU.replace("\"k.cpp\"", ""))).contains("nothing to compile for cpu"));
    }

    #[test]
    fn a_binding_that_nothing_compiles() {
        insta::assert_snapshot!(messages("[torch]\nsrc = [\"b.h\", \"b.cpp\"]\n"), @r#"
        warning[unused-source]: nothing compiles the sources of `[torch]`: no kernel is for a listed backend, so every variant is Python only
          --> build.toml:8:15
          |
        8 | src = ["b.h", "b.cpp"]
          |               ^^^^^^^
        hint: add a `[kernel.*]` with `backend = "cpu"`, whose `src` may be empty, or use `[torch-noarch]`
        "#);
        let elsewhere = CPU.replace("\"cpu\"", "\"rocm\"");
        assert!(messages(&format!("[torch]\nsrc = [\"b.cpp\"]\n{elsewhere}")).contains("nothing compiles"));
        assert_eq!(messages(&format!("[torch]\nsrc = [\"b.cpp\"]\n{CPU}")), "");
        assert_eq!(messages("[torch]\nsrc = []\n"), "");
    }

    #[test]
    fn bounds_that_say_nothing() {
        insta::assert_snapshot!(messages("[torch-noarch]\n[general.cuda]\nminver = \"13.0\"\nmaxver = \"13.2\"\n"), @r#"
        warning[unused-key]: `general.cuda.minver` has no effect: the kernel is Python only
          --> build.toml:9:10
          |
        9 | minver = "13.0"
          |          ^^^^^^

        warning[unused-key]: `general.cuda.maxver` has no effect: the kernel is Python only
           --> build.toml:10:10
           |
        10 | maxver = "13.2"
           |          ^^^^^^
        "#);
        assert_eq!(messages(&format!("[torch]\n[general.cuda]\nminver = \"13.0\"\n{CPU}")), "");
    }
}
