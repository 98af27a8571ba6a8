//! Generated files of every edition: they mean what the generator meant, and updating them keeps meaning, comments and lines.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod generate;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use kiln_format::build::{self, ChangeKind, Framework, KernelOptions, Update};
use kiln_format::{Build, Version, render};

use self::generate::{Generated, MUTATIONS, compared, generate, generate_bad};

/// Files of each edition.
const FILES: u64 = 800;

fn all() -> impl Iterator<Item = Generated> {
    (1..=5).flat_map(|edition| (0..FILES).map(move |seed| generate(seed, edition, false)))
}

fn read(text: &str) -> Build {
    let parsed = build::parse("build.toml", text);
    parsed.build.unwrap_or_else(|| panic!("{}\n{text}", render(&parsed.source, &parsed.diagnostics)))
}

fn short(version: &Version) -> &str {
    version.as_str().trim_end_matches(".0").trim_end_matches(".0")
}

fn joined<T: std::fmt::Display>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The facts that the generator knows, read from a model.
fn facts(build: &Build) -> Vec<String> {
    let general = &build.general;
    let mut facts = vec![
        format!("name {}", general.name),
        format!("version {}", general.version),
        format!("backends {}", joined(&build.backends().collect::<Vec<_>>())),
        format!("framework {}", build.framework.table_name()),
    ];
    facts.extend(general.license.iter().map(|license| format!("license {license}")));
    facts.extend(general.upstream.iter().map(|url| format!("upstream {}", url.as_str())));
    facts.extend(general.source.iter().map(|url| format!("source {}", url.as_str())));
    facts.extend(general.cuda_minver.iter().map(|version| format!("cuda minver {}", short(version))));
    facts.extend(general.cuda_maxver.iter().map(|version| format!("cuda maxver {}", short(version))));
    facts.extend(general.python_depends.iter().map(|name| format!("python {name}")));
    for (backend, depends) in &general.backend_depends {
        facts.extend(depends.python_depends.iter().map(|name| format!("python {backend} {name}")));
    }
    facts.extend(general.hub.repo_id.iter().map(|id| format!("repo {}", id.as_str())));
    facts.extend(general.hub.branch.iter().map(|branch| format!("branch {branch}")));
    if build.shipped_extensions() == ["py", "json"] {
        facts.push("ships py json".to_owned());
    }
    match &build.framework {
        Framework::Torch(torch) => {
            facts.extend(torch.minver.iter().map(|version| format!("torch minver {}", short(version))));
            facts.extend(torch.maxver.iter().map(|version| format!("torch maxver {}", short(version))));
        }
        Framework::TorchNoarch(noarch) => {
            facts.extend(noarch.cuda_capabilities.iter().map(|list| format!("noarch cuda {}", joined(list))));
            facts.extend(noarch.rocm_archs.iter().map(|list| format!("noarch rocm {}", joined(list))));
        }
        Framework::TvmFfi(_) => {}
    }
    for backend in build.backends() {
        facts.extend(build.stable_abi_for(backend).map(|version| format!("stable {backend} {version}")));
    }
    for kernel in &build.kernels {
        facts.push(format!("kernel {} {}", kernel.name, kernel.backend));
        match &kernel.options {
            KernelOptions::Cuda { capabilities, flags, minver } => {
                facts.extend(capabilities.iter().map(|list| format!("cuda-capabilities {}", joined(list))));
                facts.extend((!flags.is_empty()).then(|| format!("cuda-flags {}", joined(flags))));
                facts.extend(minver.iter().map(|version| format!("kernel cuda-minver {}", short(version))));
            }
            KernelOptions::Rocm { archs, flags } => {
                facts.extend(archs.iter().map(|list| format!("rocm-archs {}", joined(list))));
                facts.extend((!flags.is_empty()).then(|| format!("hip-flags {}", joined(flags))));
            }
            KernelOptions::Xpu { flags } => facts.extend((!flags.is_empty()).then(|| format!("sycl-flags {}", joined(flags)))),
            _ => {}
        }
    }
    facts.sort();
    facts
}

#[test]
fn they_mean_what_the_generator_meant() {
    for file in all() {
        let build = read(&file.text);
        assert_eq!(facts(&build), file.meaning, "edition {}\n{}", file.edition, file.text);
        for backend in build.backends() {
            let depends: Vec<String> = build.kernel_depends_for(backend).iter().map(|depends| named(depends)).collect();
            assert_eq!(depends, file.kernel_depends[backend.as_str()], "{}", file.text);
        }
    }
}

fn named(dependency: &kiln_format::KernelDependency) -> String {
    match &dependency.version {
        kiln_format::KernelDependencyVersion::Version(version) => format!("{}@{version}", dependency.repo_id),
        kiln_format::KernelDependencyVersion::Revision(revision) => format!("{}@{revision}", dependency.repo_id),
    }
}

#[test]
fn updating_keeps_meaning_comments_and_untouched_lines() {
    for file in all() {
        let update = build::update("build.toml", &file.text, Some("Apache-2.0")).unwrap_or_else(|error| panic!("{error}\n{}", file.text));
        let build = read(&update.text);
        let mut meaning = file.meaning.clone();
        let license = "license Apache-2.0".to_owned();
        if !meaning.contains(&license) {
            meaning.push(license);
        }
        meaning.sort();
        assert_eq!(facts(&build), meaning, "{}\n{}", file.text, update.text);
        for number in 0..file.comments {
            let comment = format!("# c{number}");
            let survives = update.text.lines().any(|line| line.trim_end().ends_with(&comment) || line.contains(&format!("{comment} ")));
            assert!(survives, "{comment} of\n{}\nis lost in\n{}", file.text, update.text);
        }
        let again = build::update("build.toml", &update.text, None).unwrap();
        assert_eq!(again.text, update.text);
        assert_untouched_lines_stay(&file, &update);
    }
}

/// Lines that hold no changed key stay, byte by byte and in their order; files without a change stay whole.
fn assert_untouched_lines_stay(file: &Generated, update: &Update) {
    if update.changes.iter().all(|change| change.kind == ChangeKind::Kept) {
        assert_eq!(update.text, file.text);
    }
    // What goes away or moves takes lines along.
    let takes_along = |change: &build::Change| {
        change.kind == ChangeKind::Dropped || change.detail.starts_with("a copy of") || change.detail.starts_with("without")
    };
    if update.changes.iter().any(takes_along) {
        return;
    }
    // What a change says of its key: each part, without the quotes that the file may have.
    let keys: BTreeSet<&str> = update.changes.iter().flat_map(|change| change.key.split('.')).collect();
    let touched = |line: &str| keys.iter().any(|key| line.contains(key)) || line.contains('{');
    let mut new = update.text.split_inclusive('\n');
    for line in file.text.split_inclusive('\n').filter(|line| !touched(line) && line.ends_with('\n')) {
        assert!(new.any(|other| other == line), "{line:?} of\n{}\nis not in its place in\n{}", file.text, update.text);
    }
}

/// Every key, every way to write and every place of a comment occurs at least twenty times.
#[test]
fn nothing_is_left_out() {
    assert_everything_occurs(all(), 1..=5, 45);
}

/// The same of the files that the loader's own parser reads as well.
#[test]
fn nothing_is_left_out_of_what_is_compared() {
    assert_everything_occurs(compared().into_iter(), 4..=5, 40);
}

fn assert_everything_occurs(files: impl Iterator<Item = Generated>, editions: RangeInclusive<u8>, least_keys: usize) {
    let mut used: BTreeMap<(u8, String), usize> = BTreeMap::new();
    for file in files {
        for what in file.used {
            *used.entry((file.edition, what)).or_default() += 1;
        }
    }
    let places =
        ["first line", "before header", "behind header", "before key", "behind value", "end of table", "last line", "behind dotted"];
    let more = ["behind inline table", "behind bracket", "before element", "behind element", "end of list"];
    let forms = [
        "header",
        "dotted",
        "inline",
        "literal string",
        "long string",
        "long literal string",
        "long list",
        "crlf",
        "bom",
        "no final newline",
    ];
    for edition in editions {
        for what in
            places.iter().chain(&more).map(|place| format!("comment {place}")).chain(forms.iter().map(|form| format!("form {form}")))
        {
            let times = used.get(&(edition, what.clone())).copied().unwrap_or_default();
            assert!(times >= 20, "{what} occurs {times} times in edition {edition}");
        }
    }
    for ((edition, what), times) in &used {
        assert!(*times >= 20, "{what} occurs {times} times in edition {edition}");
    }
    let keys = used.keys().filter(|(edition, what)| *edition == 5 && what.contains('.')).count();
    assert!(keys >= least_keys, "{keys} keys of edition 5");
}

/// No kind of mistake is read, and none turns a file into one of another edition.
#[test]
fn every_mistake_is_refused() {
    for mutation in MUTATIONS {
        let editions: &[u8] = if mutation.also_in_4 { &[4, 5] } else { &[5] };
        let mut times = 0;
        for (edition, seed) in (0..400).flat_map(|seed| editions.iter().map(move |&edition| (edition, seed))) {
            let Some(file) = generate_bad(seed, edition, mutation) else { continue };
            let parsed = build::parse("build.toml", &file.text);
            assert!(parsed.build.is_none(), "{} is read:\n{}", mutation.name, file.text);
            assert!(build::update("build.toml", &file.text, None).is_err());
            times += 1;
            if times == 60 {
                break;
            }
        }
        assert!(times >= 20, "{} occurs {times} times", mutation.name);
    }
}
