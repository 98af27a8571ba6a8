//! One file, recognised by its content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use kiln_format::Level;
use kiln_object::Error;
use kiln_object::elf::dynamic_file;
use kiln_object::macho::image;

use crate::elf::check_elf;
use crate::expectation::{Expectation, Profile};
use crate::macho::check_macho;
use crate::report::{FailureKind, Finding, Report};
use crate::rule::Rule;

/// What a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An ELF file that a program loads, or one whose kind cannot be told.
    ElfShared,
    /// An ELF object for a linker.
    ElfObject,
    /// An ELF program at a fixed address.
    ElfProgram,
    /// Another ELF file: a core, one for another operating system, or of an unknown kind.
    ElfOther,
    /// A static library.
    Archive,
    /// A file of macOS.
    MachO,
    /// A file of Windows.
    Pe,
    /// Without content.
    Empty,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kind of a file that begins with `head`; 64 bytes are enough.
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [] => Self::Empty,
            [0x7f, b'E', b'L', b'F', _, order, ..] => {
                let field = head.get(16..18).and_then(|bytes| <[u8; 2]>::try_from(bytes).ok()).unwrap_or_default();
                match if *order == 2 { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) } {
                    1 => Self::ElfObject,
                    2 => Self::ElfProgram,
                    // Of one that is cut short the reader says what is wrong.
                    3 if is_of_linux(head) => Self::ElfShared,
                    _ if head.len() < 18 => Self::ElfShared,
                    _ => Self::ElfOther,
                }
            }
            _ if kiln_object::archive::is_archive(head) => Self::Archive,
            [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => Self::MachO,
            // Java's class files begin alike, with a version number where these have a small count.
            [0xca, 0xfe, 0xba, 0xbe | 0xbf, 0, 0, 0, 1..=30, ..] => Self::MachO,
            [b'M', b'Z', ..] => Self::Pe,
            _ => Self::Other,
        }
    }

    /// Whether it is code that a loader takes, of whatever system.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Self::ElfShared | Self::MachO | Self::Pe)
    }
}

/// Whether the operating system that an ELF file names, if any, is one whose files the loader of Linux takes.
fn is_of_linux(head: &[u8]) -> bool {
    const NONE: u8 = 0;
    const GNU: u8 = 3;
    matches!(head.get(7), Some(&NONE | &GNU))
}

/// Whether a name says that the file is a shared object.
pub(crate) fn is_named_shared(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    [".so", ".pyd", ".dylib", ".dll"].iter().any(|end| name.ends_with(end)) || name.contains(".so.")
}

/// Reads the first bytes of a file.
pub(crate) fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    // A pipe would be waited for without end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut head = Vec::new();
    File::open(path)?.take(64).read_to_end(&mut head)?;
    Ok(head)
}

/// Checks one file that should be a shared object; `name` is what the report calls it. A file that is none is a failure.
pub fn check_file(path: &Path, name: &str, expected: &Expectation<'_>, report: &mut Report) {
    match head(path) {
        Ok(head) => check_kind(path, name, Kind::of(&head), expected, report),
        Err(cause) => report.fail(FailureKind::Unreadable, name, cause.to_string()),
    }
}

/// `DF_1_PIE`, a flag of programs that look like shared objects otherwise.
const POSITION_INDEPENDENT_PROGRAM: u64 = 0x0800_0000;

/// Checks a file of a known kind.
pub(crate) fn check_kind(path: &Path, name: &str, kind: Kind, expected: &Expectation<'_>, report: &mut Report) {
    match kind {
        Kind::ElfShared => {
            report.files.push(name.to_owned());
            match dynamic_file(path) {
                Ok(dynamic) if dynamic.flags_1 & POSITION_INDEPENDENT_PROGRAM != 0 => {
                    wrong_kind(name, "a position-independent program", report)
                }
                Ok(dynamic) => {
                    check_elf(name, &dynamic, expected, report);
                    host_paths(path, name, expected, report);
                }
                Err(Error::Io { cause, .. }) => report.fail(FailureKind::Unreadable, name, cause.to_string()),
                Err(error) => report.fail(FailureKind::Damaged, name, error.to_string()),
            }
        }
        Kind::ElfObject => wrong_kind(name, "an object file for a linker", report),
        Kind::ElfProgram => wrong_kind(name, "a program", report),
        Kind::ElfOther => wrong_kind(name, "a core file, or one for another operating system", report),
        Kind::Archive => wrong_kind(name, "a static library", report),
        Kind::MachO => macho(path, name, expected, report),
        Kind::Pe => report.fail(FailureKind::UnsupportedFormat, name, "a PE file cannot be checked by this version"),
        Kind::Empty => report.fail(FailureKind::EmptyFile, name, "the file has no content"),
        Kind::Other => report.fail(FailureKind::NotAnObject, name, "the file is no object of a known format"),
    }
}

fn macho(path: &Path, name: &str, expected: &Expectation<'_>, report: &mut Report) {
    let data = match std::fs::read(path) {
        Ok(data) => data,
        Err(cause) => return report.fail(FailureKind::Unreadable, name, cause.to_string()),
    };
    if matches!(data.as_slice(), [0xca, 0xfe, 0xba, ..]) {
        return report.fail(FailureKind::UnsupportedFormat, name, "a Mach-O file for several processors cannot be checked by this version");
    }
    report.files.push(name.to_owned());
    match image(&data) {
        Ok(image) => {
            check_macho(name, &image, expected, report);
            host_paths(path, name, expected, report);
        }
        Err(Error::Format { .. }) => wrong_kind(name, "a program or an object file of macOS", report),
        Err(Error::Unsupported { what }) => report.fail(FailureKind::UnsupportedFormat, name, format!("{what} cannot be checked")),
        Err(error) => report.fail(FailureKind::Damaged, name, error.to_string()),
    }
}

fn wrong_kind(name: &str, what: &str, report: &mut Report) {
    report.findings.push(Finding {
        rule: Rule::FileKind,
        level: Level::Error,
        file: name.to_owned(),
        symbol: None,
        detail: format!("the file is {what}, which no loader takes"),
        evidence: format!("its header is that of {what}"),
        caused_by: Vec::new(),
        fix: "ship shared objects only".to_owned(),
    });
}

/// Looks for directories of the build machine. Only extensions are searched: libraries may be large, and are of others.
fn host_paths(path: &Path, name: &str, expected: &Expectation<'_>, report: &mut Report) {
    if expected.host_paths.is_empty() || expected.profile != Profile::Extension {
        return;
    }
    // A project in the root directory itself has no path that could be told from others.
    let directories: Vec<&str> = expected.host_paths.iter().map(String::as_str).filter(|directory| directory.len() > 1).collect();
    let found = match File::open(path).and_then(|file| search(file, &directories)) {
        Ok(found) => found,
        Err(cause) => return report.fail(FailureKind::Unreadable, name, cause.to_string()),
    };
    for text in found.into_iter().flatten() {
        report.findings.push(Finding {
            rule: Rule::HostPath,
            level: Level::Warning,
            file: name.to_owned(),
            symbol: None,
            detail: format!("a path of the build machine is inside: `{text}`"),
            evidence: format!("the string `{text}`"),
            caused_by: Vec::new(),
            fix: "do not give absolute paths to the compiler in flags or defines; prefixes of sources are mapped by Kiln".to_owned(),
        });
    }
}

/// How much of a file is held at once, in bytes: one that claims to be larger than memory is read all the same.
const BLOCK: usize = 1 << 20;
/// How much of a text is shown, in bytes.
const SHOWN: usize = 200;

/// What [`find_text`] finds of each needle in all of a file.
fn search(mut file: impl Read, needles: &[&str]) -> std::io::Result<Vec<Option<String>>> {
    let reach = SHOWN + needles.iter().map(|needle| needle.len()).max().unwrap_or(0);
    let mut found = vec![None; needles.len()];
    let mut held = Vec::new();
    loop {
        let is_last = file.by_ref().take(BLOCK as u64).read_to_end(&mut held)? < BLOCK;
        // What begins behind this may go on in the next block.
        let whole = if is_last { held.len() } else { held.len().saturating_sub(reach) };
        for (found, needle) in found.iter_mut().zip(needles).filter(|(found, _)| found.is_none()) {
            *found = find_text(&held, needle).filter(|(at, _)| *at < whole).map(|(_, text)| text);
        }
        if is_last || found.iter().all(Option::is_some) {
            return Ok(found);
        }
        held.drain(..whole);
    }
}

/// Where `needle` occurs first, and the printable text from there on.
fn find_text(bytes: &[u8], needle: &str) -> Option<(usize, String)> {
    let needle = needle.as_bytes();
    let first = *needle.first()?;
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|byte| *byte == first)?;
        let rest = bytes.get(at..)?;
        // A directory, not the beginning of a longer name.
        let ends = rest.get(needle.len()).is_none_or(|next| !next.is_ascii_alphanumeric() && !b"-_.".contains(next));
        if rest.starts_with(needle) && ends {
            let text = rest.iter().take(SHOWN).take_while(|byte| byte.is_ascii_graphic() || **byte == b' ');
            return Some((at, text.map(|byte| char::from(*byte)).collect()));
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_content() {
        let elf = |kind: u8, order: u8| {
            let mut head = [0; 64];
            head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, order]);
            head[if order == 2 { 17 } else { 16 }] = kind;
            Kind::of(&head)
        };
        assert_eq!([elf(1, 1), elf(2, 1), elf(3, 1), elf(1, 2)], [Kind::ElfObject, Kind::ElfProgram, Kind::ElfShared, Kind::ElfObject]);
        assert_eq!(Kind::of(b"\x7fELF\x02\x01"), Kind::ElfShared, "cut short: the reader says what is wrong");
        // A core, no kind at all, and a shared object for FreeBSD.
        assert_eq!([elf(4, 1), elf(0, 1)], [Kind::ElfOther; 2]);
        let mut other = [0; 64];
        other[..18].copy_from_slice(b"\x7fELF\x02\x01\x01\x09\0\0\0\0\0\0\0\0\x03\0");
        assert_eq!(Kind::of(&other), Kind::ElfOther);
        assert_eq!(Kind::of(b"!<arch>\n"), Kind::Archive);
        assert_eq!(Kind::of(b"\xcf\xfa\xed\xfe\x0c\0\0\x01"), Kind::MachO);
        assert_eq!(Kind::of(b"\xca\xfe\xba\xbe\0\0\0\x02"), Kind::MachO);
        assert_eq!(Kind::of(b"\xca\xfe\xba\xbe\0\0\0\x34"), Kind::Other, "a class file");
        assert_eq!(Kind::of(b"MZ\x90\0"), Kind::Pe);
        assert_eq!((Kind::of(b""), Kind::of(b"#!/bin/sh")), (Kind::Empty, Kind::Other));
        assert!(is_named_shared("a/b.abi3.so") && is_named_shared("libx.so.1") && is_named_shared("x.dll") && !is_named_shared("x.py"));
    }

    #[test]
    fn directories_are_found_whole() {
        let find = |bytes: &[u8]| search(bytes, &["/home/me"]).unwrap().remove(0);
        assert_eq!(find(b"\0/home/me/x.cpp\0").as_deref(), Some("/home/me/x.cpp"));
        assert_eq!(find(b"/home/meadow /home/me").as_deref(), Some("/home/me"));
        assert_eq!(find(b"/home/meadow"), None);
        assert_eq!(find(b""), None);
        // Wherever a block ends.
        for at in BLOCK - 230..BLOCK + 20 {
            let bytes = [vec![0; at], b"/home/me/x.cpp".to_vec(), vec![0; 400]].concat();
            assert_eq!(find(&bytes).as_deref(), Some("/home/me/x.cpp"), "{at}");
            let bytes = [vec![0; at], b"/home/meadow".to_vec(), vec![0; 400]].concat();
            assert_eq!(find(&bytes), None, "{at}");
        }
    }
}
