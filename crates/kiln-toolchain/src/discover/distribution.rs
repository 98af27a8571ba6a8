//! Which distribution this is, from its `os-release`, and how its packages are installed.

use std::fs;

use super::packages::{self, Need};
use super::view::View;

/// A program that installs packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageManager {
    /// Debian, Ubuntu and those that derive from them.
    Apt,
    /// Fedora, RHEL and those that derive from them.
    Dnf,
    /// Arch.
    Pacman,
    /// Alpine.
    Apk,
    /// SUSE.
    Zypper,
    /// macOS, by Homebrew.
    Brew,
}

impl PackageManager {
    /// The command that installs, before the names of packages.
    pub fn command(self) -> &'static str {
        match self {
            Self::Apt => "apt install",
            Self::Dnf => "dnf install",
            Self::Pacman => "pacman -S",
            Self::Apk => "apk add",
            Self::Zypper => "zypper install",
            Self::Brew => "brew install",
        }
    }

    /// That of the distribution called `id` in `os-release`.
    fn of(id: &str) -> Option<Self> {
        Some(match id {
            "debian" | "ubuntu" => Self::Apt,
            "fedora" | "rhel" | "centos" => Self::Dnf,
            "arch" => Self::Pacman,
            "alpine" => Self::Apk,
            "suse" | "opensuse" | "sles" => Self::Zypper,
            _ => return None,
        })
    }
}

/// What this machine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Its name for people: `Debian GNU/Linux 12 (bookworm)`.
    pub name: String,
    /// What installs packages on it; none when it is not known.
    pub manager: Option<PackageManager>,
    /// The codename of a release, where it has one: `bookworm`.
    pub codename: Option<String>,
}

impl Distribution {
    /// The distribution of a machine. One that says nothing of itself is called after its system.
    pub fn of(view: &View<'_>) -> Self {
        if view.os == "macos" {
            return Self { name: "macOS".to_owned(), manager: Some(PackageManager::Brew), codename: None };
        }
        let text = ["/etc/os-release", "/usr/lib/os-release"].into_iter().find_map(|path| fs::read_to_string(view.place(path)).ok());
        text.map_or_else(|| Self { name: view.os.to_owned(), manager: None, codename: None }, |text| Self::parse(&text, view.os))
    }

    /// Reads the text of an `os-release`; `os` is the name of one that says none.
    pub fn parse(text: &str, os: &str) -> Self {
        let value = |key: &str| text.lines().rev().find_map(|line| Some(unquoted(line.strip_prefix(key)?.strip_prefix('=')?)));
        let known = |id: String| id.split([' ', '-', '_']).find_map(PackageManager::of);
        let name = value("PRETTY_NAME").or_else(|| value("NAME")).filter(|name| !name.is_empty());
        Self {
            name: name.unwrap_or_else(|| os.to_owned()),
            manager: value("ID").and_then(known).or_else(|| value("ID_LIKE").and_then(known)),
            codename: value("VERSION_CODENAME").filter(|name| !name.is_empty()),
        }
    }

    /// How to have what is needed here, as a sentence: the command that installs it, or where it comes from. None when neither is
    /// known.
    pub fn install(&self, need: Need) -> Option<String> {
        let command = self.manager.and_then(|manager| Some(format!("`{} {}`", manager.command(), packages::packages(need, manager)?)));
        match (command, need.vendor()) {
            (Some(command), Some(vendor)) => Some(format!("run {command}, or install {vendor}")),
            (Some(command), None) => Some(format!("run {command}")),
            (None, vendor) => vendor.map(|vendor| format!("install {vendor}")),
        }
    }
}

/// A value of `os-release`: shell quotes and escapes undone.
fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inner = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(next) = chars.next() {
        text.extend(if next == '\\' { chars.next() } else { Some(next) });
    }
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_by_id_or_by_what_they_are_like() {
        let manager = |text: &str| Distribution::parse(text, "linux").manager;
        assert_eq!(manager("ID=debian\n"), Some(PackageManager::Apt));
        assert_eq!(manager("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"), Some(PackageManager::Apt));
        assert_eq!(manager("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), Some(PackageManager::Dnf));
        assert_eq!(manager("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n"), Some(PackageManager::Zypper));
        assert_eq!(manager("ID=manjaro\nID_LIKE=arch\n"), Some(PackageManager::Pacman));
        assert_eq!(manager("ID=alpine\n"), Some(PackageManager::Apk));
        assert_eq!(manager("ID=nixos\n"), None);
        assert_eq!(manager(""), None);
    }

    #[test]
    fn names_are_shown_as_they_are_meant() {
        let name = |text: &str| Distribution::parse(text, "linux").name;
        assert_eq!(name("NAME=X\nPRETTY_NAME=\"Rocky \\\"Linux\\\" 9\"\n"), "Rocky \"Linux\" 9");
        assert_eq!(name("NAME='Arch Linux'\n"), "Arch Linux");
        assert_eq!(name("PRETTY_NAME=a\x1b[31mb\n"), "a[31mb");
        assert_eq!(name("garbage\0\n"), "linux");
    }

    #[test]
    fn packages_follow_the_distribution() {
        let install = |id: &str, need| Distribution::parse(&format!("ID={id}\n"), "linux").install(need);
        assert_eq!(install("debian", Need::CxxHeaders { major: Some(12) }).as_deref(), Some("run `apt install libstdc++-12-dev`"));
        assert_eq!(install("debian", Need::CxxHeaders { major: None }).as_deref(), Some("run `apt install g++`"));
        assert_eq!(install("fedora", Need::CxxHeaders { major: Some(12) }).as_deref(), Some("run `dnf install libstdc++-devel`"));
        assert_eq!(install("alpine", Need::Cxx).as_deref(), Some("run `apk add g++`"));
        assert_eq!(install("nixos", Need::Cxx), None);
        assert_eq!(install("debian", Need::OneApi).as_deref(), Some("install Intel's oneAPI DPC++ compiler"));
        assert_eq!(install("fedora", Need::Hip).as_deref(), Some("run `dnf install hipcc`, or install AMD's ROCm packages"));
    }
}
