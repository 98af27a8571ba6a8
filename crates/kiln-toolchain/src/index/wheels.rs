//! Which wheel of a list serves: names of wheels, and the choice among them.

use kiln_format::Version;

use super::{Files, Listed, normalized};
use crate::network::WantedWheel;

/// The parts of a wheel's file name (PEP 427).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WheelName<'f> {
    /// The project, as written.
    pub(crate) project: &'f str,
    /// The release, without a local part.
    pub(crate) public: &'f str,
    /// The local part of the version, such as `cu126`.
    pub(crate) local: Option<&'f str>,
    /// The build number and what follows it, where the name has a build tag: of builds that are alike in all else the last counts.
    pub(crate) build: Option<(u64, &'f str)>,
    /// The Python tag, such as `cp313`.
    pub(crate) python: &'f str,
    /// The ABI tag.
    pub(crate) abi: &'f str,
    /// The platform tag; may be several, separated by dots.
    pub(crate) platform: &'f str,
}

impl<'f> WheelName<'f> {
    /// Reads a file name.
    pub(crate) fn parse(file: &'f str) -> Option<Self> {
        let parts: Vec<&str> = file.strip_suffix(".whl")?.split('-').collect();
        let (project, version, build, python, abi, platform) = match parts.as_slice() {
            [project, version, python, abi, platform] => (project, version, None, python, abi, platform),
            [project, version, build, python, abi, platform] => (project, version, Some(build_tag(build)?), python, abi, platform),
            _ => return None,
        };
        let (public, local) = match version.split_once('+') {
            Some((public, local)) => (public, Some(local)),
            None => (*version, None),
        };
        (!project.is_empty() && !public.is_empty()).then_some(Self { project, public, local, build, python, abi, platform })
    }

    /// What the wheel is for, in the catalog's words; none for a platform that Kiln does not know.
    pub(crate) fn system(&self) -> Option<&'static str> {
        self.platform.split('.').find_map(|tag| match tag {
            _ if tag.starts_with("macosx") && (tag.ends_with("_arm64") || tag.ends_with("_universal2")) => Some("darwin-aarch64"),
            "win_amd64" => Some("windows-x86_64"),
            _ if !tag.starts_with("manylinux") && !tag.starts_with("linux_") => None,
            _ if tag.ends_with("_x86_64") => Some("linux-x86_64"),
            _ if tag.ends_with("_aarch64") => Some("linux-aarch64"),
            _ => None,
        })
    }

    /// Order of the interpreters that a wheel is for: `cp313` after `cp39`, free-threaded ones before all others.
    fn interpreter(&self) -> (bool, u32, u32) {
        let digits = self.python.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        let (major, minor) = digits.split_at_checked(1).unwrap_or_default();
        (!self.abi.ends_with('t'), major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
    }
}

/// A build tag: it begins with a digit (PEP 427).
fn build_tag(text: &str) -> Option<(u64, &str)> {
    let (number, rest) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    Some((number.parse().ok()?, rest))
}

/// The wheel of `project` for `system` (such as `linux-x86_64`) with this release and local part; without a local part one
/// that has none, else the only one that has any.
///
/// The wheels of one release differ by interpreter only in what a build here does not use; the one for the newest
/// interpreter is taken. One that was withdrawn is taken only if there is no other.
///
/// # Errors
/// What there is instead, as a phrase that follows "the index ..".
pub(crate) fn choose<'f>(files: &'f Files, wheel: &WantedWheel<'_>) -> Result<(&'f str, &'f Listed), String> {
    let WantedWheel { project, release, local, system } = *wheel;
    let wanted =
        |name: &WheelName<'_>| normalized(name.project) == project && Version::parse(name.public).is_ok_and(|version| version == *release);
    let of_release: Vec<(WheelName<'f>, &'f str, &'f Listed)> =
        files.iter().filter_map(|(file, listed)| Some((WheelName::parse(file).filter(wanted)?, file.as_str(), listed))).collect();
    let shown = local.map_or_else(|| release.to_string(), |local| format!("{release}+{local}"));
    if of_release.is_empty() {
        let names = files.keys().filter_map(|file| WheelName::parse(file)).filter(|name| normalized(name.project) == project);
        let mut known: Vec<Version> = names.filter_map(|name| Version::parse(name.public).ok()).collect();
        known.sort();
        known.dedup();
        let newest: Vec<String> = known.iter().rev().take(5).map(ToString::to_string).collect();
        return Err(format!("does not list `{project}` {shown}; the newest that it lists are {}", newest.join(", ")));
    }
    let here: Vec<_> = of_release.iter().filter(|(name, ..)| name.system() == Some(system)).collect();
    if here.is_empty() {
        return Err(format!("lists `{project}` {shown}, but not for {system}"));
    }
    let mut locals: Vec<Option<&str>> = here.iter().map(|(name, ..)| name.local).collect();
    locals.sort_unstable();
    locals.dedup();
    let local = match (local.map(normalized_local), locals.as_slice()) {
        (None, [only]) => only.map(normalized_local),
        (None, all) if all.contains(&None) => None,
        (wanted, all) => match wanted.filter(|wanted| all.iter().flatten().any(|local| normalized_local(local) == *wanted)) {
            Some(wanted) => Some(wanted),
            None => {
                let known: Vec<String> =
                    all.iter().map(|local| local.map_or_else(|| release.to_string(), |local| format!("{release}+{local}"))).collect();
                return Err(format!("has `{project}` {release} for {system} only as {}", known.join(", ")));
            }
        },
    };
    let chosen = here.into_iter().filter(|(name, ..)| name.local.map(normalized_local) == local);
    // Names are compared last, so that the choice does not hang on the order of a page.
    let best = chosen.max_by_key(|(name, file, listed)| (listed.yanked.is_none(), name.interpreter(), name.build, *file));
    best.map(|(_, file, listed)| (*file, *listed)).ok_or_else(|| format!("does not list `{project}` {shown} for {system}"))
}

/// A local part as it is compared (PEP 440): lower case, `.` between its parts.
fn normalized_local(local: &str) -> String {
    local.to_ascii_lowercase().replace(['-', '_'], ".")
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn files(names: &[&str]) -> Files {
        let url = Url::parse("https://example.org/f").unwrap();
        names
            .iter()
            .map(|name| {
                let (name, yanked) = name.strip_prefix('!').map_or((*name, None), |name| (name, Some(String::new())));
                (name.to_owned(), Listed { yanked, ..Listed::at(url.clone()) })
            })
            .collect()
    }

    #[test]
    fn names_are_taken_apart() {
        let name = WheelName::parse("torch-2.13.0+cu126-1-cp313-cp313t-manylinux_2_28_x86_64.whl").unwrap();
        assert_eq!((name.project, name.public, name.local, name.python, name.abi), ("torch", "2.13.0", Some("cu126"), "cp313", "cp313t"));
        assert_eq!(name.system(), Some("linux-x86_64"));
        let system = |tag: &str| WheelName::parse(&format!("torch-1-cp39-abi3-{tag}.whl")).unwrap().system();
        assert_eq!(system("manylinux_2_17_aarch64.manylinux2014_aarch64"), Some("linux-aarch64"));
        assert_eq!(system("macosx_11_0_arm64"), Some("darwin-aarch64"));
        assert_eq!(
            (system("win_amd64"), system("win_arm64"), system("any"), system("macosx_10_9_x86_64")),
            (Some("windows-x86_64"), None, None, None)
        );
        for none in ["torch-2.13.0.tar.gz", "torch.whl", "torch-2.13.0-cp313.whl", "-1-cp39-abi3-any.whl", "a-b-c-d-e-f-g.whl"] {
            assert_eq!(WheelName::parse(none), None, "{none}");
        }
    }

    #[test]
    fn the_last_build_counts() {
        let name = |build: &str| format!("torch-2.13.0{build}-cp313-cp313-manylinux_2_28_x86_64.whl");
        let names = [name("-9"), name(""), name("-10"), name("-10a"), name("-b1"), format!("!{}", name("-11"))];
        let files = files(&names.each_ref().map(String::as_str));
        let release = Version::parse("2.13.0").unwrap();
        let wanted = WantedWheel { project: "torch", release: &release, local: None, system: "linux-x86_64" };
        assert_eq!(super::choose(&files, &wanted).unwrap().0, name("-10a"));
        assert_eq!(WheelName::parse(&name("-b1")), None);
        assert_eq!(WheelName::parse(&name("-10a")).unwrap().build, Some((10, "a")));
    }

    #[test]
    fn the_choice() {
        let files = files(&[
            "torch-2.13.0+cu126-cp39-cp39-manylinux_2_28_x86_64.whl",
            "torch-2.13.0+cu126-cp314-cp314t-manylinux_2_28_x86_64.whl",
            "torch-2.13.0+cu126-cp313-cp313-manylinux_2_28_x86_64.whl",
            "!torch-2.13.0+cu126-cp314-cp314-manylinux_2_28_x86_64.whl",
            "torch-2.13.0+cpu-cp313-cp313-manylinux_2_28_x86_64.whl",
            "torch-2.13.0-cp313-none-macosx_11_0_arm64.whl",
            "torch-2.14.0-cp313-cp313-manylinux_2_28_x86_64.whl",
            "torch-2.14.0+cu126-cp313-cp313-manylinux_2_28_x86_64.whl",
            "torch-2.15.0+xpu-cp313-cp313-linux_x86_64.whl",
            "torchvision-9.9.0-cp313-cp313-manylinux_2_28_x86_64.whl",
        ]);
        let choose = |release: &str, local: Option<&str>, system: &str| {
            let release = Version::parse(release).unwrap();
            let wanted = WantedWheel { project: "torch", release: &release, local, system };
            super::choose(&files, &wanted).map_or_else(|reason| reason, |(file, _)| file.to_owned())
        };
        insta::assert_snapshot!(
            [
                choose("2.13", Some("CU126"), "linux-x86_64"),
                choose("2.13.0", None, "linux-x86_64"),
                choose("2.13.0", Some("cu118"), "linux-x86_64"),
                choose("2.13.0", None, "darwin-aarch64"),
                choose("2.14.0", None, "linux-x86_64"),
                choose("2.15.0", None, "linux-x86_64"),
                choose("2.15.0", None, "windows-x86_64"),
                choose("2.16.0", Some("cu126"), "linux-x86_64"),
            ]
            .join("\n"),
            @r"
        torch-2.13.0+cu126-cp313-cp313-manylinux_2_28_x86_64.whl
        has `torch` 2.13.0 for linux-x86_64 only as 2.13.0+cpu, 2.13.0+cu126
        has `torch` 2.13.0 for linux-x86_64 only as 2.13.0+cpu, 2.13.0+cu126
        torch-2.13.0-cp313-none-macosx_11_0_arm64.whl
        torch-2.14.0-cp313-cp313-manylinux_2_28_x86_64.whl
        torch-2.15.0+xpu-cp313-cp313-linux_x86_64.whl
        lists `torch` 2.15.0, but not for windows-x86_64
        does not list `torch` 2.16.0+cu126; the newest that it lists are 2.15.0, 2.14.0, 2.13.0
        "
        );
    }
}
