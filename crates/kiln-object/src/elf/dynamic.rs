//! What a shared library exports, imports and needs: the view of the dynamic loader.

use std::fs::File;
use std::path::Path;

use object::elf::{self, FileHeader32, FileHeader64, VersymIndex};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionTable, Sym, VersionTable};
use object::read::{ReadCache, ReadRef, StringTable};
use object::{Endianness, SymbolIndex};

use super::headerless::{Headers, Made};
use super::tables::{self, Budget, Class, Strings};
use super::{Binding, Machine, SymbolKind, Visibility};
use super::{loaded, mappable};
use crate::Error;

/// A name that a library takes from another one when it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The symbol's name, mangled.
    pub name: String,
    /// The version that it must have.
    pub version: Option<String>,
    /// SONAME of the library that the version belongs to; none for an unversioned name.
    pub library: Option<String>,
    /// Whether loading goes on when nothing provides it.
    pub weak: bool,
    /// What it names, where said.
    pub kind: SymbolKind,
}

/// A name that a library offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The symbol's name, mangled.
    pub name: String,
    /// Its version node.
    pub version: Option<String>,
    /// Whether a link that does not ask for a version gets this one (`@@`). Always so for an unversioned name.
    pub default: bool,
    /// What it names.
    pub kind: SymbolKind,
    /// Its binding.
    pub binding: Binding,
    /// Its size in bytes.
    pub size: u64,
}

/// What a file asks for its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Nothing is said: loaders of some processors make it executable then.
    Unsaid,
    /// Not executable.
    Data,
    /// Executable.
    Executable,
}

/// What the dynamic loader sees of a file. Lists are in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// The processor.
    pub machine: Machine,
    /// The name by which other files need it (`DT_SONAME`).
    pub soname: Option<String>,
    /// SONAMEs of the libraries that it needs, or whose names it takes over (`DT_NEEDED`, `DT_FILTER`, `DT_AUXILIARY`).
    pub needed: Vec<String>,
    /// `DT_RPATH`, unsplit.
    pub rpath: Vec<String>,
    /// `DT_RUNPATH`, unsplit.
    pub runpath: Vec<String>,
    /// Names taken from others.
    pub imports: Vec<Import>,
    /// Names offered. Without the absolute symbols that only name version nodes.
    pub exports: Vec<Export>,
    /// Every (library, version) that the file demands, whether or not a symbol uses it (`.gnu.version_r`).
    pub needed_versions: Vec<(String, String)>,
    /// Version nodes that the file defines, without the one that names the file itself.
    pub defined_versions: Vec<String>,
    /// Relocations against read-only memory (`DT_TEXTREL`).
    pub text_relocations: bool,
    /// Packed relative relocations (`DT_RELR`), which old loaders do not know.
    pub packed_relocations: bool,
    /// Whether there are program headers, by which a loader maps the file. Stubs for a linker have none.
    pub mapped: bool,
    /// What it asks for its stack.
    pub stack: Stack,
    /// `DT_FLAGS`, as a bit set.
    pub flags: u64,
    /// `DT_FLAGS_1`, as a bit set.
    pub flags_1: u64,
}

/// Reads the dynamic tables of a file that is in memory.
///
/// # Errors
/// When `data` is not an ELF file with a dynamic section, is damaged, or has names that are not UTF-8.
pub fn dynamic(data: &[u8]) -> Result<Dynamic, Error> {
    of_any_class(data, &Headers::of(data)?)
}

/// Reads the dynamic tables of a file without reading the rest of it.
///
/// # Errors
/// As [`dynamic`], and when the file cannot be opened. A failing read looks like damage.
pub fn dynamic_file(path: &Path) -> Result<Dynamic, Error> {
    let file = File::open(path).map_err(|cause| Error::Io { path: path.to_owned(), cause })?;
    let cache = ReadCache::new(file);
    let made = Headers::of(&cache)?;
    of_any_class(&cache, &made)
}

fn of_any_class<'d, R: ReadRef<'d>>(data: R, made: &'d Headers) -> Result<Dynamic, Error> {
    match tables::class(data)? {
        Class::Elf32 => read::<FileHeader32<Endianness>, R>(data, made),
        Class::Elf64 => read::<FileHeader64<Endianness>, R>(data, made),
    }
}

fn read<'d, H, R>(data: R, made: &'d Headers) -> Result<Dynamic, Error>
where
    H: Made,
    R: ReadRef<'d>,
{
    let header = H::parse(data).map_err(Error::damaged("ELF header"))?;
    let endian = header.endian().map_err(Error::damaged("ELF header"))?;
    let sections = match H::of(made) {
        [] => header.sections(endian, data).map_err(Error::damaged("section table"))?,
        made => SectionTable::new(made, StringTable::default()),
    };
    let segments = loaded::segments(header, endian, data)?;
    mappable::see(header, segments, endian, data)?;
    let mut result = Dynamic {
        machine: Machine(header.e_machine(endian).0),
        soname: None,
        needed: Vec::new(),
        rpath: Vec::new(),
        runpath: Vec::new(),
        imports: Vec::new(),
        exports: Vec::new(),
        needed_versions: Vec::new(),
        defined_versions: Vec::new(),
        text_relocations: false,
        packed_relocations: false,
        mapped: !segments.is_empty(),
        stack: stack::<H>(segments, endian),
        flags: 0,
        flags_1: 0,
    };
    if segments.is_empty() && sections.dynamic(endian, data).map_err(Error::damaged("dynamic section"))?.is_none() {
        return if header.e_type(endian) == elf::ET_DYN { Ok(result) } else { Err(no_dynamic_section()) };
    }
    read_entries(&sections, endian, data, &mut result)?;
    loaded::see_agreement(header, &sections, endian, data)?;
    let versions = read_versions(&sections, endian, data, &mut result)?;
    read_symbols(&sections, endian, data, versions.as_ref(), &mut result)?;
    Ok(result)
}

fn stack<H: FileHeader<Endian = Endianness>>(segments: &[H::ProgramHeader], endian: Endianness) -> Stack {
    // Of several the loader takes the last.
    match segments.iter().rev().find(|segment| segment.p_type(endian) == elf::PT_GNU_STACK) {
        None => Stack::Unsaid,
        Some(segment) if segment.p_flags(endian).contains(elf::PF_X) => Stack::Executable,
        Some(_) => Stack::Data,
    }
}

fn no_dynamic_section() -> Error {
    Error::Format { expected: "a file with a dynamic section" }
}

fn read_entries<'d, H, R>(sections: &SectionTable<'d, H, R>, endian: Endianness, data: R, result: &mut Dynamic) -> Result<(), Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    const WHAT: &str = "dynamic section";
    let Some((entries, link)) = sections.dynamic(endian, data).map_err(Error::damaged(WHAT))? else {
        return Err(no_dynamic_section());
    };
    let strings = Strings::of_section(sections, endian, data, link, WHAT)?;
    let mut budget = Budget::new(strings.bytes(), WHAT);
    for entry in entries {
        let value = entry.val(endian);
        let mut text = || {
            let offset = u32::try_from(value).map_err(|_| Error::Damaged { what: WHAT, cause: "a string lies too far off".to_owned() })?;
            budget.own(strings.get(offset)?)
        };
        match entry.tag(endian) {
            elf::DT_NULL => break,
            elf::DT_SONAME => result.soname = Some(text()?),
            elf::DT_NEEDED | elf::DT_FILTER | elf::DT_AUXILIARY => result.needed.push(text()?),
            elf::DT_RPATH => result.rpath.push(text()?),
            elf::DT_RUNPATH => result.runpath.push(text()?),
            elf::DT_TEXTREL => result.text_relocations = true,
            elf::DT_RELR | elf::DT_RELRSZ => result.packed_relocations = true,
            elf::DT_FLAGS => {
                result.flags = value;
                result.text_relocations |= value & elf::DF_TEXTREL.0 != 0;
            }
            elf::DT_FLAGS_1 => result.flags_1 = value,
            _ => {}
        }
    }
    Ok(())
}

/// Fills the version lists and gives the table that maps symbols to versions.
fn read_versions<'d, H, R>(
    sections: &SectionTable<'d, H, R>,
    endian: Endianness,
    data: R,
    result: &mut Dynamic,
) -> Result<Option<VersionTable<'d, H>>, Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    const WHAT: &str = "version table";
    let damaged = || Error::damaged(WHAT);
    let Some((versyms, link)) = sections.gnu_versym(endian, data).map_err(damaged())? else { return Ok(None) };
    let symbols = sections.symbol_table_by_index(endian, data, link).map_err(damaged())?;
    let names = Strings::of_section(sections, endian, data, symbols.string_section(), WHAT)?;
    let strings = StringTable::new(names.bytes(), 0, names.bytes().len() as u64);
    let mut budget = Budget::new(names.bytes(), WHAT);
    let mut text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => budget.own(text),
        Err(_) => Err(Error::Damaged { what: WHAT, cause: "a name is not UTF-8 text".to_owned() }),
    };

    let definitions = sections.gnu_verdef(endian, data).map_err(damaged())?.map(|(iterator, _)| iterator);
    if let Some(mut definitions) = definitions.clone() {
        while let Some((definition, mut names)) = definitions.next().map_err(damaged())? {
            if definition.vd_flags.get(endian).contains(elf::VER_FLG_BASE) {
                continue;
            }
            if let Some(name) = names.next().map_err(damaged())? {
                result.defined_versions.push(text(name.name(endian, strings).map_err(damaged())?)?);
            }
        }
    }
    let needs = sections.gnu_verneed(endian, data).map_err(damaged())?.map(|(iterator, _)| iterator);
    if let Some(mut needs) = needs.clone() {
        while let Some((need, mut versions)) = needs.next().map_err(damaged())? {
            let library = need.file(endian, strings).map_err(damaged())?;
            while let Some(version) = versions.next().map_err(damaged())? {
                result.needed_versions.push((text(library)?, text(version.name(endian, strings).map_err(damaged())?)?));
            }
        }
    }
    VersionTable::parse(endian, versyms, definitions, needs, strings).map(Some).map_err(damaged())
}

fn read_symbols<'d, H, R>(
    sections: &SectionTable<'d, H, R>,
    endian: Endianness,
    data: R,
    versions: Option<&VersionTable<'d, H>>,
    result: &mut Dynamic,
) -> Result<(), Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let (table, strings) = tables::symbols(sections, endian, data, elf::SHT_DYNSYM, "dynamic symbol table")?;
    let mut budget = Budget::new(strings.bytes(), "dynamic symbol table");
    for (index, symbol) in table.enumerate() {
        let name = strings.get(symbol.st_name(endian))?;
        let binding = tables::binding_of(symbol);
        if index.0 == 0 || name.is_empty() || binding == Binding::Local {
            continue;
        }
        let number = versions.map_or(VersymIndex(elf::VER_NDX_GLOBAL.0), |table| table.version_index(endian, SymbolIndex(index.0)));
        let version = match versions {
            Some(table) => table.version(number.index()).map_err(Error::damaged("version table"))?,
            None => None,
        };
        let mut owned = |bytes: &[u8]| budget.own(&String::from_utf8_lossy(bytes));
        let version_name = version.map(|version| owned(version.name())).transpose()?;
        let kind = tables::kind_of(symbol);
        if symbol.is_undefined(endian) {
            let library = version.and_then(|version| version.file()).map(&mut owned).transpose()?;
            let weak = binding == Binding::Weak;
            result.imports.push(Import { name: owned(name.as_bytes())?, version: version_name, library, weak, kind });
            continue;
        }
        let names_version_node = symbol.is_absolute(endian) && version_name.as_deref() == Some(name);
        if tables::visibility_of(symbol) == Visibility::Hidden || number.is_local() || names_version_node {
            continue;
        }
        result.exports.push(Export {
            name: owned(name.as_bytes())?,
            default: version_name.is_none() || !number.is_hidden(),
            version: version_name,
            kind,
            binding,
            size: symbol.st_size(endian).into(),
        });
    }
    Ok(())
}
