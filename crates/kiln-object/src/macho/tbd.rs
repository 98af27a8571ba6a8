//! Text-based stubs (`.tbd`): what a linker for macOS reads in place of a library.

use crate::elf::Machine;

/// A stub of the library that those who link with it record as `install_name`, with these names as a compiler spells them.
pub fn write(install_name: &str, machine: Machine, names: &[String]) -> String {
    let target = if machine == Machine::X86_64 { "x86_64-macos" } else { "arm64-macos" };
    let mut text = format!("--- !tapi-tbd\ntbd-version: 4\ntargets: [ {target} ]\ninstall-name: '{}'\n", quoted(install_name));
    if !names.is_empty() {
        // Any name has a form in single quotes, in which only the quote itself is doubled.
        let names: Vec<String> = names.iter().map(|name| format!("'_{}'", quoted(name))).collect();
        text.push_str(&format!("exports:\n  - targets: [ {target} ]\n    symbols: [ {} ]\n", names.join(",\n               ")));
    }
    text.push_str("...\n");
    text
}

fn quoted(text: &str) -> String {
    text.replace('\'', "''")
}

/// The lists of a stub that hold names.
const LISTS: [&str; 3] = ["symbols:", "weak-symbols:", "thread-local-symbols:"];

/// The names in the text of a stub, as a compiler spells them, of the library and of all that it offers in the place of others. Names that
/// only tell linkers something (`$ld$..`), and Objective-C classes, are left out.
pub fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((at, list)) = LISTS.iter().filter_map(|list| Some((rest.find(list)?, list))).min() {
        let (before, behind) = rest.split_at(at);
        rest = behind.get(list.len()..).unwrap_or_default();
        // The end of a longer key is no key of its own.
        let is_key = before.ends_with([' ', '\n', '-']) || before.is_empty();
        let Some(list) = rest.trim_start().strip_prefix('[').filter(|_| is_key) else { continue };
        let (list, behind) = list.split_once(']').unwrap_or((list, ""));
        rest = behind;
        let words = list.split(',').map(|word| word.trim().trim_matches(['\'', '"']));
        names.extend(words.filter(|word| !word.is_empty() && !word.starts_with('$')).map(|word| {
            let plain = word.strip_prefix('_').unwrap_or(word);
            plain.to_owned()
        }));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let wanted = ["plain", "_ZN3c105ErrorD1Ev", "OBJC_CLASS_$_NSString"].map(str::to_owned);
        let text = write("@rpath/libc10.dylib", Machine::AARCH64, &wanted);
        assert!(text.contains("install-name: '@rpath/libc10.dylib'\n") && text.contains("targets: [ arm64-macos ]"), "{text}");
        assert_eq!(names(&text), wanted);
        assert_eq!(names(&write("/usr/lib/x.dylib", Machine::X86_64, &[])), [""; 0]);
    }

    /// The forms that Apple's tool writes: several libraries in one file, lists of several lines, quotes, and instructions for linkers.
    #[test]
    fn stubs_of_a_system_are_read() {
        let text = "--- !tapi-tbd\ntbd-version:     4\ntargets: [ arm64e-macos ]\ninstall-name: '/usr/lib/libSystem.B.dylib'\nexports:\n  \
                    - targets: [ arm64e-macos ]\n    symbols: [ '$ld$hide$os10.4$___divti3', '_System version', ___divti3,\n           \
                    dyld_stub_binder ]\n    objc-classes: [ Protocol ]\n    weak-symbols: [ __ZdlPv ]\n--- !tapi-tbd\nreexports:\n  - targets: [ \
                    a ]\n    thread-local-symbols: [ _t ]\n";
        assert_eq!(names(text), ["System version", "__divti3", "dyld_stub_binder", "_ZdlPv", "t"]);
        for damaged in ["symbols: [", "symbols:", "symbols: [ ,,, ", "weak-symbols: ]["] {
            assert_eq!(names(damaged), [""; 0], "{damaged}");
        }
    }
}
