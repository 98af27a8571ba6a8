//! The checks of a Mach-O file, from its load commands and its symbol table.
//!
//! Names are judged by the same rules as those of ELF files: what Python and torch offer does not depend on the format.

use kiln_format::Level;
use kiln_format::variant::{Compute, Cpu, Os};
use kiln_object::elf::{self, Binding, Dynamic, Machine, Stack, SymbolKind};
use kiln_object::macho::{Image, Provider, SystemVersion};
use kiln_object::names::is_of_python;

use crate::elf::{Check, judge_names};
use crate::expectation::{Expectation, Profile};
use crate::libraries::{Refusal, may_need_on_macos};
use crate::report::Report;
use crate::rule::Rule;

/// The one directory that may stand for `@rpath`.
const RPATH: &str = "@loader_path/lib";
/// What some linkers offer of every file: addresses of the file itself, which nobody takes from it.
const OF_LINKER: [&str; 3] = ["_mh_dylib_header", "_mh_bundle_header", "__dso_handle"];

/// The oldest macOS that a variant may ask for: loaders take variants for Metal on 26.0 and newer.
fn limit(compute: Option<Compute>) -> SystemVersion {
    let major = if compute == Some(Compute::Metal) { 26 } else { 15 };
    SystemVersion { major, minor: 0, patch: 0 }
}

/// Checks what a library or a bundle tells the loader of macOS. `file` is what the report calls it.
pub fn check_macho(file: &str, image: &Image, expected: &Expectation<'_>, report: &mut Report) {
    let dynamic = dynamic(image);
    let mut check = Check { file, dynamic: &dynamic, expected, report };
    if !machine(&mut check) || expected.profile != Profile::Extension {
        return;
    }
    oldest_system(&mut check, image);
    for soname in &image.needed {
        if let Err(Refusal { detail, fix }) = may_need_on_macos(soname, expected) {
            check.file(Rule::NeededLibrary, Level::Error, detail, format!("LC_LOAD_DYLIB `{soname}`"), fix);
        }
    }
    for path in image.rpaths.iter().filter(|path| *path != RPATH) {
        let detail = format!("the file looks for libraries in `{path}`, which users may not have");
        check.file(Rule::RunPath, Level::Error, detail, format!("LC_RPATH `{path}`"), format!("link with `-rpath {RPATH}` alone"));
    }
    for import in image.imports.iter().filter(|import| !is_of_python(&import.name)) {
        if matches!(import.provider, Provider::Anything | Provider::Program | Provider::Unknown(_)) {
            let level = check.own();
            let detail =
                format!("`{}` is looked up in whatever is loaded: no library that the file needs is known to have it", import.name);
            let fix = "link with the library that has it; only Python's names may be left to `-undefined dynamic_lookup`";
            check.file(Rule::UnversionedSymbol, level, detail, format!("undefined `{}` without a library", import.name), fix);
        }
    }
    if let Some(path) = image.debug_files.first() {
        let level = check.own();
        let detail = format!("the file names {} files of the machine that built it, `{path}` first", image.debug_files.len());
        check.file(Rule::HostPath, level, detail, "N_OSO and N_SO in the symbol table", "link with `-Wl,-S`");
    }
    judge_names(&mut check);
}

/// The tables in the words of the checks that look at names alone.
fn dynamic(image: &Image) -> Dynamic {
    let import = |import: &kiln_object::macho::Import| elf::Import {
        name: import.name.clone(),
        version: None,
        library: None,
        weak: import.weak,
        kind: SymbolKind::Untyped,
    };
    let export = |name: &String| elf::Export {
        name: name.clone(),
        version: None,
        default: true,
        kind: SymbolKind::Untyped,
        binding: Binding::Global,
        size: 0,
    };
    Dynamic {
        machine: image.machine,
        soname: image.install_name.clone(),
        needed: image.needed.clone(),
        rpath: Vec::new(),
        runpath: Vec::new(),
        imports: image.imports.iter().map(import).collect(),
        exports: image.exports.iter().filter(|name| !OF_LINKER.contains(&name.as_str())).map(export).collect(),
        needed_versions: Vec::new(),
        defined_versions: Vec::new(),
        text_relocations: false,
        packed_relocations: false,
        mapped: true,
        stack: Stack::Data,
        flags: 0,
        flags_1: 0,
    }
}

/// Whether the file is for what the variant's name says.
fn machine(check: &mut Check<'_, '_>) -> bool {
    let Some((cpu, os)) = check.expected.platform else { return true };
    let wanted = match cpu {
        Cpu::X86_64 => Machine::X86_64,
        Cpu::Aarch64 => Machine::AARCH64,
    };
    let (evidence, found) = (format!("Mach-O header: {}", check.dynamic.machine), check.dynamic.machine);
    if os != Os::Darwin {
        let detail = format!("the file is a Mach-O file, and the variant is for {}", os.as_str());
        check.file(Rule::Machine, Level::Error, detail, evidence, "build it for the system of the variant");
        return false;
    }
    if found != wanted {
        let detail = format!("the file is for {found}, and the variant is for {}", cpu.as_str());
        check.file(Rule::Machine, Level::Error, detail, evidence, "build it for the processor of the variant");
        return false;
    }
    true
}

fn oldest_system(check: &mut Check<'_, '_>, image: &Image) {
    let limit = check.expected.macos.unwrap_or_else(|| limit(check.expected.compute));
    let fix = format!("link with `-mmacosx-version-min={limit}` or an older release");
    match image.minimum {
        Some(minimum) if minimum <= limit => {}
        Some(minimum) => {
            let detail = format!("the file is for macOS {minimum} and newer, and has to work from {limit} on");
            check.file(Rule::MacosFloor, Level::Error, detail, format!("minimum version {minimum} in its load commands"), fix);
        }
        None => {
            let evidence = "no LC_BUILD_VERSION for macOS and no LC_VERSION_MIN_MACOSX";
            check.file(Rule::MacosFloor, Level::Error, "the file does not say which macOS it is for", evidence, fix);
        }
    }
}
