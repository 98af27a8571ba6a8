//! Making the embedded lists anew, and comparing them with real libraries. Nothing here runs during a build; `cargo xtask floor` does.
//!
//! Sources. The C library: the table of names, versions, files and processors that the Zig project derives from glibc's own
//! `.abilist` files (`lib/libc/glibc/abilists` of its releases), cut at a version. A name that glibc moved into libc keeps its old
//! versions in the file that had them, which a newer loader finds as well. The C++ library and the unwinder: the dynamic symbols of
//! any newer `libstdc++.so.6` and `libgcc_s.so.1`, cut at the policy's versions; both only ever add names.

use std::collections::{BTreeMap, BTreeSet};

use kiln_object::Error;
use kiln_object::baseline::Entry;
use kiln_object::elf::{Binding, Dynamic, Machine, SymbolKind};

const WHAT: &str = "table of glibc's names";

/// Whether files of a floor may need the version of this name: a policy's set, since not all names have an order.
pub type Allowed<'a> = dyn Fn(&str) -> bool + 'a;

/// What a library's newer release says of an older one: every export whose version is allowed. The newest allowed version of a name
/// becomes its default.
pub fn cut(library: &Dynamic, allowed: &Allowed<'_>) -> Vec<Entry> {
    let soname = library.soname.clone().unwrap_or_default();
    let mut entries: Vec<Entry> = Vec::new();
    for export in &library.exports {
        let Some(version) = export.version.clone().filter(|version| allowed(version)) else { continue };
        let kind = match export.kind {
            SymbolKind::IndirectFunction => SymbolKind::Function,
            // The names of the version nodes themselves.
            SymbolKind::Object | SymbolKind::Untyped if export.name == version => continue,
            kind => kind,
        };
        entries.push(Entry {
            name: export.name.clone(),
            library: soname.clone(),
            version,
            default: false,
            kind,
            weak: export.binding == Binding::Weak,
            size: export.size,
        });
    }
    set_defaults(&mut entries);
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// Reads Zig's `abilists`: what the C library has for a processor in the allowed versions.
///
/// # Errors
/// When the table is damaged or does not know the processor.
pub fn of_abilists(table: &[u8], machine: Machine, allowed: &Allowed<'_>) -> Result<Vec<Entry>, Error> {
    let mut reader = Reader { bytes: table };
    let libraries: Vec<String> = (0..reader.byte()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
    let versions: Vec<String> = (0..reader.byte()?).map(|_| reader.version()).collect::<Result<_, _>>()?;
    let targets: Vec<String> = (0..reader.byte()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
    let wanted = format!("{machine}-linux-gnu");
    let target = targets.iter().position(|target| *target == wanted).ok_or_else(|| damaged(&format!("it has no {wanted}")))?;
    let mut entries = Vec::new();
    for kind in [SymbolKind::Function, SymbolKind::Object, SymbolKind::Tls] {
        if reader.bytes.is_empty() && kind != SymbolKind::Function {
            break;
        }
        let mut name = None;
        for _ in 0..reader.number16()? {
            let current = match name.take() {
                Some(name) => name,
                None => reader.text()?,
            };
            let for_targets = reader.number()?;
            let size = if kind == SymbolKind::Function { 0 } else { reader.number()? };
            let place = reader.byte()?;
            let library = libraries.get(usize::from(place & 0x7f)).ok_or_else(|| damaged("it names an unknown library"))?;
            loop {
                let number = reader.byte()?;
                let version = versions.get(usize::from(number & 0x7f)).ok_or_else(|| damaged("it names an unknown version"))?;
                if for_targets >> target & 1 == 1 && allowed(version) {
                    let (library, version) = (soname(library, machine), version.clone());
                    entries.push(Entry { name: current.clone(), library, version, default: false, kind, weak: false, size });
                }
                if number & 0x80 != 0 {
                    break;
                }
            }
            if place & 0x80 == 0 {
                name = Some(current);
            }
        }
    }
    set_defaults(&mut entries);
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

/// The file of a library that the table calls by its short name.
fn soname(short: &str, machine: Machine) -> String {
    match short {
        "ld" if machine == Machine::AARCH64 => "ld-linux-aarch64.so.1".to_owned(),
        "ld" => "ld-linux-x86-64.so.2".to_owned(),
        "c" | "m" => format!("lib{short}.so.6"),
        "pthread" => "libpthread.so.0".to_owned(),
        "rt" | "util" => format!("lib{short}.so.1"),
        other => format!("lib{other}.so.2"),
    }
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

/// Marks the newest version of each name in each library.
fn set_defaults(entries: &mut [Entry]) {
    let key = |entry: &Entry| entry.version.split_once('_').and_then(|(_, version)| numbers(version)).unwrap_or_default();
    let mut newest: BTreeMap<(String, String), Vec<u32>> = BTreeMap::new();
    for entry in &*entries {
        let known = newest.entry((entry.library.clone(), entry.name.clone())).or_default();
        *known = key(entry).max(std::mem::take(known));
    }
    for entry in entries {
        entry.default = newest.get(&(entry.library.clone(), entry.name.clone())) == Some(&key(entry));
    }
}

/// The lines of a list, as [`Baseline::parse`](kiln_object::baseline::Baseline::parse) reads them.
pub fn text(entries: &[Entry]) -> String {
    let mut lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let kind = match entry.kind {
                SymbolKind::Object => "OBJECT",
                SymbolKind::Tls => "TLS",
                _ => "FUNC",
            };
            let (default, weak) = (if entry.default { "default" } else { "hidden" }, if entry.weak { "WEAK" } else { "GLOBAL" });
            format!("{} {} {} {default} {kind} {weak} {}\n", entry.library, entry.name, entry.version, entry.size)
        })
        .collect();
    lines.sort_unstable();
    lines.concat()
}

/// The entries whose name and version none of `libraries` exports: what newer releases have dropped.
pub fn dropped<'e>(entries: &'e [Entry], libraries: &[Dynamic]) -> Vec<&'e Entry> {
    let exports = libraries.iter().flat_map(|library| &library.exports);
    let known: BTreeSet<(&str, &str)> = exports.filter_map(|export| Some((export.name.as_str(), export.version.as_deref()?))).collect();
    entries.iter().filter(|entry| !known.contains(&(entry.name.as_str(), entry.version.as_str()))).collect()
}

struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (first, rest) = self.bytes.split_first_chunk().ok_or_else(|| damaged("it is cut short"))?;
        self.bytes = rest;
        Ok(*first)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn number16(&mut self) -> Result<u16, Error> {
        self.take().map(u16::from_le_bytes)
    }

    /// A number in groups of seven bits, the lowest first.
    fn number(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged("a number is too large"))
    }

    fn text(&mut self) -> Result<String, Error> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or_else(|| damaged("it is cut short"))?;
        let (text, rest) = self.bytes.split_at_checked(end).unwrap_or_default();
        self.bytes = rest.get(1..).unwrap_or_default();
        String::from_utf8(text.to_vec()).map_err(|_| damaged("a name is not UTF-8 text"))
    }

    fn version(&mut self) -> Result<String, Error> {
        let [major, minor, patch] = self.take()?;
        Ok(if patch == 0 { format!("GLIBC_{major}.{minor}") } else { format!("GLIBC_{major}.{minor}.{patch}") })
    }
}

fn damaged(cause: &str) -> Error {
    Error::Damaged { what: WHAT, cause: cause.to_owned() }
}
