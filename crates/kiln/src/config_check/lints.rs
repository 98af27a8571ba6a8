//! What an author would want to know although the project builds: sources that stand twice, devices that no toolkit knows, a license
//! that nobody knows by that name.

use std::collections::{BTreeMap, BTreeSet};

use kiln_format::build::{Framework, Kernel, KernelOptions, StableAbi};
use kiln_format::{BackendName, Build, CudaCapability, Diagnostic, RocmArch, Spanned};

use super::files::is_translation_unit;

/// Every remark that is no error, by its code: what `[checks]` in `kiln.toml` can silence. A file of an old edition is told by every
/// command, whatever that says.
pub const LINTS: &[&str] = &[
    "arch-flag",
    "capability-coverage",
    "default-stream",
    "duplicate-backend",
    "duplicate-source",
    "duplicate-value",
    "layout",
    "leading-dot",
    "license-id",
    "machine-flag",
    "noarch-backend",
    "not-loadable",
    "not-portable",
    "own-registration",
    "unknown-arch",
    "unused-dependency",
    "unused-exclude",
    "unused-flag",
    "unused-kernel",
    "unused-key",
    "unused-source",
    "unused-stable-abi",
    "wide-include",
];

/// AMD's devices from the first that ROCm knows.
///
/// Source: the processors that clang names when it is asked for an unknown one of `amdgcn-amd-amdhsa`, 19.1.7 (which still has gfx940 and
/// gfx941) and 23.1.4 together.
const ROCM: &[&str] = &[
    "gfx700", "gfx701", "gfx702", "gfx703", "gfx704", "gfx705", "gfx801", "gfx802", "gfx803", "gfx805", "gfx810", "gfx900", "gfx902",
    "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c", "gfx940", "gfx941", "gfx942", "gfx950", "gfx1010", "gfx1011", "gfx1012",
    "gfx1013", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154", "gfx1170", "gfx1171", "gfx1172", "gfx1200", "gfx1201", "gfx1250", "gfx1251",
    "gfx1310",
];

/// Licenses that the Hub knows beside those of SPDX.
///
/// Source: the type `License` of the Hub's JavaScript client (`@huggingface/hub`, `src/types/public.ts`), and what the Hub's page of
/// licenses has had since: h-research, intel-research, apple-*, openmdw-1.0, llama3.3, llama4, grok2-community, fair-*.
const HUB_LICENSES: &[&str] = &[
    "apple-amlr",
    "apple-ascl",
    "bigcode-openrail-m",
    "bigscience-bloom-rail-1.0",
    "bigscience-openrail-m",
    "bsd",
    "c-uda",
    "cc",
    "creativeml-openrail-m",
    "deepfloyd-if-license",
    "fair-noncommercial-research-license",
    "gemma",
    "gfdl",
    "gpl",
    "grok2-community",
    "h-research",
    "intel-research",
    "lgpl",
    "lgpl-lr",
    "llama2",
    "llama3",
    "llama3.1",
    "llama3.2",
    "llama3.3",
    "llama4",
    "odbl",
    "odc-by",
    "openmdw-1.0",
    "openrail",
    "openrail++",
    "other",
    "pddl",
    "unknown",
];

pub(super) fn check(build: &Build) -> Vec<Diagnostic> {
    let mut diagnostics = duplicate_sources(build);
    diagnostics.extend(duplicate_values(build));
    diagnostics.extend(unknown_archs(build));
    diagnostics.extend(license(build));
    diagnostics.extend(unused_stable_abi(build));
    diagnostics
}

/// A unit that one library would get twice, compiled alike: its names clash when it is linked. With other flags it may be meant.
fn duplicate_sources(build: &Build) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut told: BTreeSet<(usize, &str)> = BTreeSet::new();
    for backend in build.backends() {
        let kernels: Vec<&Kernel> = build.kernels_for(backend).collect();
        if kernels.is_empty() {
            continue;
        }
        let binding_flags = build.framework.cxx_flags().iter().map(|flag| flag.as_str()).collect();
        let binding = (build.framework.src(), format!("`[{}]`", build.framework.table_name()), None, binding_flags);
        let mut seen: BTreeMap<(&str, Vec<&str>), String> = BTreeMap::new();
        let kernels =
            kernels.into_iter().map(|kernel| (kernel.src.as_slice(), format!("`[kernel.{}]`", kernel.name), Some(backend), flags(kernel)));
        for (list, owner, backend, flags) in std::iter::once(binding).chain(kernels) {
            let mut here: BTreeSet<&str> = BTreeSet::new();
            for source in list {
                // Headers may be inputs of several components.
                let unit = is_translation_unit(source.file_name(), backend);
                let twice_here = !here.insert(source.as_str());
                let key = (source.as_str(), flags.clone());
                let before = if twice_here { Some(&owner) } else { seen.get(&key).filter(|_| unit) };
                if let Some(before) = before
                    && told.insert((source.span.start, source.as_str()))
                {
                    let message = format!("`{}` is listed in {before} already", source.value);
                    let hint = if twice_here { "remove one of the two" } else { "list it once: both go into one library" };
                    diagnostics.push(Diagnostic::warning("duplicate-source", source.span, message).with_hint(hint.to_owned()));
                }
                if unit {
                    seen.entry(key).or_insert_with(|| owner.clone());
                }
            }
        }
    }
    diagnostics
}

/// Values that stand twice in one list.
fn duplicate_values(build: &Build) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for kernel in &build.kernels {
        twice("depends", &kernel.depends, &mut diagnostics);
        match &kernel.options {
            KernelOptions::Cuda { capabilities: Some(list), .. } => twice("cuda-capabilities", list, &mut diagnostics),
            KernelOptions::Rocm { archs: Some(list), .. } => twice("rocm-archs", list, &mut diagnostics),
            KernelOptions::Cann { archs: Some(list), .. } => twice("npu-archs", list, &mut diagnostics),
            _ => {}
        }
    }
    if let Framework::TorchNoarch(noarch) = &build.framework {
        twice("cuda-capabilities", noarch.cuda_capabilities.as_deref().unwrap_or_default(), &mut diagnostics);
        twice("rocm-archs", noarch.rocm_archs.as_deref().unwrap_or_default(), &mut diagnostics);
    }
    diagnostics
}

fn twice<T: std::fmt::Display>(key: &str, list: &[Spanned<T>], diagnostics: &mut Vec<Diagnostic>) {
    let mut seen = BTreeSet::new();
    for value in list {
        let shown = value.value.to_string();
        let message = format!("`{shown}` is listed in `{key}` already");
        if !seen.insert(shown) {
            diagnostics.push(Diagnostic::warning("duplicate-value", value.span, message).with_hint("remove one of the two".to_owned()));
        }
    }
}

/// What may make one source two things: every flag of a kernel.
fn flags(kernel: &Kernel) -> Vec<&str> {
    kernel.cxx_flags.iter().chain(kernel.options.device_flags()).map(|flag| flag.as_str()).collect()
}

fn unknown_archs(build: &Build) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut cuda = |list: &[Spanned<CudaCapability>]| {
        for capability in list.iter().filter(|capability| !kiln_cuda::is_known_capability(&capability.value)) {
            let message = format!("no CUDA toolkit compiles for capability `{}`", capability.value);
            let known = kiln_cuda::known_capabilities().map(|(major, minor)| format!("{major}.{minor}")).collect::<Vec<_>>().join(", ");
            diagnostics
                .push(Diagnostic::warning("unknown-arch", capability.span, message).with_note(format!("known capabilities: {known}")));
        }
    };
    let mut rocm_lists: Vec<&[Spanned<RocmArch>]> = Vec::new();
    for kernel in &build.kernels {
        match &kernel.options {
            KernelOptions::Cuda { capabilities: Some(list), .. } => cuda(list),
            KernelOptions::Rocm { archs: Some(list), .. } => rocm_lists.push(list),
            _ => {}
        }
    }
    if let Framework::TorchNoarch(noarch) = &build.framework {
        cuda(noarch.cuda_capabilities.as_deref().unwrap_or_default());
        rocm_lists.extend(noarch.rocm_archs.as_deref());
    }
    for arch in rocm_lists.into_iter().flatten().filter(|arch| !ROCM.contains(&arch.to_string().as_str())) {
        let message = format!("no ROCm compiles for architecture `{}`", arch.value);
        diagnostics.push(Diagnostic::warning("unknown-arch", arch.span, message));
    }
    diagnostics
}

fn license(build: &Build) -> Option<Diagnostic> {
    let license = build.general.license.as_ref()?;
    let known = || spdx::identifiers::LICENSES.iter().map(|license| license.name).chain(HUB_LICENSES.iter().copied());
    if known().any(|known| known.eq_ignore_ascii_case(&license.value)) || spdx::Expression::parse(&license.value).is_ok() {
        return None;
    }
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let wanted = plain(&license.value);
    let near = known().find(|known| plain(known) == wanted || plain(known).trim_end_matches('0') == wanted);
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write the id of the SPDX list, or `other`".to_owned(),
    };
    let message = format!("license `{}` is neither an SPDX id nor one that the Hub knows", license.value.escape_debug());
    Some(Diagnostic::warning("license-id", license.span, message).with_hint(hint))
}

/// Entries of `stable-abi` that change nothing now; they are there on purpose when a backend is taken out for a while.
fn unused_stable_abi(build: &Build) -> Vec<Diagnostic> {
    let Framework::Torch(torch) = &build.framework else { return Vec::new() };
    let StableAbi::PerBackend(entries) = &torch.stable_abi else { return Vec::new() };
    let why = |backend: BackendName| {
        if !build.backends().any(|listed| listed == backend) {
            Some(format!("`stable-abi` for {backend} has no effect: `backends` does not list it"))
        } else if build.kernels_for(backend).next().is_none() {
            Some(format!("`stable-abi` for {backend} has no effect: there is no kernel for it"))
        } else {
            None
        }
    };
    let remark = |(backend, _): &(Spanned<BackendName>, _)| {
        why(backend.value).map(|message| Diagnostic::note("unused-stable-abi", backend.span, message))
    };
    entries.iter().filter_map(remark).collect()
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use kiln_format::render;

    use super::super::testing::Project;
    use super::*;

    fn said(rest: &str) -> String {
        let project = Project::new(rest, &[]);
        render(&project.build.source, &check(&project.build))
    }

    #[test]
    fn values_that_stand_twice() {
        let said = said(
            "[torch]\n[kernel.a]\nbackend = \"cuda\"\ndepends = [\"torch\", \"torch\"]\nsrc = []\n\
             cuda-capabilities = [\"9.0\", \"8.0\", \"9.0\"]\n[kernel.b]\nbackend = \"cpu\"\ndepends = [\"torch\"]\nsrc = []\n\
             [kernel.r]\nbackend = \"rocm\"\ndepends = []\nsrc = []\nrocm-archs = [\"gfx90a\", \"gfx90a\", \"gfx942\"]\n",
        );
        let twice: Vec<&str> = said.lines().filter(|line| line.starts_with("warning[duplicate-value]")).collect();
        insta::assert_snapshot!(twice.join("\n"), @r"
        warning[duplicate-value]: `torch` is listed in `depends` already
        warning[duplicate-value]: `9.0` is listed in `cuda-capabilities` already
        warning[duplicate-value]: `gfx90a` is listed in `rocm-archs` already
        ");
    }

    #[test]
    fn sources_that_stand_twice() {
        insta::assert_snapshot!(
            said("[torch]\nsrc = [\"b.cpp\", \"b.cpp\", \"x.h\"]\n[kernel.a]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"k.cu\", \"x.h\", \"b.cpp\"]\n[kernel.b]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"k.cu\", \"x.h\"]\n[kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"c.cpp\", \"./c.cpp\"]\n"),
            @r#"
        warning[duplicate-source]: `b.cpp` is listed in `[torch]` already
          --> build.toml:8:17
          |
        8 | src = ["b.cpp", "b.cpp", "x.h"]
          |                 ^^^^^^^
        hint: remove one of the two

        warning[duplicate-source]: `c.cpp` is listed in `[kernel.c]` already
           --> build.toml:20:17
           |
        20 | src = ["c.cpp", "./c.cpp"]
           |                 ^^^^^^^^^
        hint: remove one of the two

        warning[duplicate-source]: `b.cpp` is listed in `[torch]` already
           --> build.toml:12:23
           |
        12 | src = ["k.cu", "x.h", "b.cpp"]
           |                       ^^^^^^^
        hint: list it once: both go into one library

        warning[duplicate-source]: `k.cu` is listed in `[kernel.a]` already
           --> build.toml:16:8
           |
        16 | src = ["k.cu", "x.h"]
           |        ^^^^^^
        hint: list it once: both go into one library
        "#
        );
        // The libraries of two backends are two.
        let two = "[torch]\n[kernel.a]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"k.cpp\"]\n[kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\"]\n";
        assert_eq!(said(two), "");
        // With other flags it is another unit.
        let flags = "[torch]\n[kernel.a]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"k.cu\"]\ncuda-flags = [\"-DA\"]\n[kernel.b]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"k.cu\"]\n";
        assert_eq!(said(flags), "");
    }

    #[test]
    fn devices_that_no_toolkit_knows() {
        insta::assert_snapshot!(
            said("[torch]\n[kernel.a]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"k.cu\"]\ncuda-capabilities = [\"8.0\", \"8.0a\", \"9.0a\", \"9.0f\", \"9.9\", \"12.0+PTX\"]\n[kernel.r]\nbackend = \"rocm\"\ndepends = []\nsrc = []\nrocm-archs = [\"gfx942\", \"gfx999\"]\n"),
            @r#"
        warning[unknown-arch]: no CUDA toolkit compiles for capability `8.0a`
           --> build.toml:12:29
           |
        12 | cuda-capabilities = ["8.0", "8.0a", "9.0a", "9.0f", "9.9", "12.0+PTX"]
           |                             ^^^^^^
           = known capabilities: 3.5, 3.7, 5.0, 5.2, 5.3, 6.0, 6.1, 6.2, 7.0, 7.2, 7.5, 8.0, 8.6, 8.7, 8.8, 8.9, 9.0, 10.0, 10.1, 10.3, 10.7, 11.0, 12.0, 12.1

        warning[unknown-arch]: no CUDA toolkit compiles for capability `9.0f`
           --> build.toml:12:45
           |
        12 | cuda-capabilities = ["8.0", "8.0a", "9.0a", "9.0f", "9.9", "12.0+PTX"]
           |                                             ^^^^^^
           = known capabilities: 3.5, 3.7, 5.0, 5.2, 5.3, 6.0, 6.1, 6.2, 7.0, 7.2, 7.5, 8.0, 8.6, 8.7, 8.8, 8.9, 9.0, 10.0, 10.1, 10.3, 10.7, 11.0, 12.0, 12.1

        warning[unknown-arch]: no CUDA toolkit compiles for capability `9.9`
           --> build.toml:12:53
           |
        12 | cuda-capabilities = ["8.0", "8.0a", "9.0a", "9.0f", "9.9", "12.0+PTX"]
           |                                                     ^^^^^
           = known capabilities: 3.5, 3.7, 5.0, 5.2, 5.3, 6.0, 6.1, 6.2, 7.0, 7.2, 7.5, 8.0, 8.6, 8.7, 8.8, 8.9, 9.0, 10.0, 10.1, 10.3, 10.7, 11.0, 12.0, 12.1

        warning[unknown-arch]: no ROCm compiles for architecture `gfx999`
           --> build.toml:17:25
           |
        17 | rocm-archs = ["gfx942", "gfx999"]
           |                         ^^^^^^^^
        "#
        );
        let noarch = said("[torch-noarch]\ncuda_capabilities = [\"1.0\"]\nrocm_archs = [\"gfx111\"]\n");
        assert_eq!(noarch.matches("unknown-arch").count(), 2, "{noarch}");
    }

    #[test]
    fn every_license_of_the_hub_is_known() {
        let hub = "apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 \
             bigcode-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc \
             cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 \
             cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 \
             cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 \
             eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc h-research intel-research lppl-1.3c \
             ms-pl apple-ascl apple-amlr mpl-2.0 odc-by odbl openmdw-1.0 openrail++ osl-3.0 postgresql ofl-1.1 ncsa \
             unlicense zlib pddl lgpl-lr deepfloyd-if-license fair-noncommercial-research-license llama2 llama3 llama3.1 \
             llama3.2 llama3.3 llama4 grok2-community gemma unknown other";
        for license in hub.split_whitespace() {
            let build = format!(
                "[general]\nname = \"ab\"\nversion = 1\nedition = 5\nlicense = \"{license}\"\nbackends = [\"cpu\"]\n[torch-noarch]\n"
            );
            assert_eq!(license_remark(&build), None, "{license}");
        }
        assert!(
            HUB_LICENSES.is_sorted()
                && ROCM.is_sorted_by_key(|name| kiln_format::RocmArch::from_str(name).unwrap())
                && kiln_cuda::known_capabilities().is_sorted()
        );
    }

    #[test]
    fn licenses() {
        let with = |license: &str| {
            let head = format!(
                "[general]\nname = \"ab\"\nversion = 1\nedition = 5\nlicense = \"{license}\"\nbackends = [\"cpu\"]\n[torch-noarch]\n"
            );
            license_remark(&head)
        };
        for known in ["Apache-2.0", "apache-2.0", "MIT", "mit", "other", "openrail++", "BSD-3-Clause", "MIT OR Apache-2.0", "llama3.1"] {
            assert_eq!(with(known), None, "{known}");
        }
        assert_eq!(with("Apache 2.0").unwrap(), "did you mean `Apache-2.0`?");
        assert_eq!(with("Apache 2").unwrap(), "did you mean `Apache-2.0`?");
        assert_eq!(with("mine, all mine").unwrap(), "write the id of the SPDX list, or `other`");
    }

    fn license_remark(text: &str) -> Option<String> {
        let build = kiln_format::build::parse("build.toml", text).build.unwrap();
        license(&build).and_then(|remark| remark.hint)
    }

    #[test]
    fn stable_abi_without_effect_is_a_note() {
        let rest = "[torch]\nstable-abi = { cpu = \"2.11\", cuda = \"2.11\", rocm = \"2.11\" }\n[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\"]\n";
        insta::assert_snapshot!(said(rest), @r#"
        note[unused-stable-abi]: `stable-abi` for cuda has no effect: there is no kernel for it
          --> build.toml:8:30
          |
        8 | stable-abi = { cpu = "2.11", cuda = "2.11", rocm = "2.11" }
          |                              ^^^^

        note[unused-stable-abi]: `stable-abi` for rocm has no effect: `backends` does not list it
          --> build.toml:8:45
          |
        8 | stable-abi = { cpu = "2.11", cuda = "2.11", rocm = "2.11" }
          |                                             ^^^^
        "#);
        assert!(LINTS.is_sorted());
    }
}
