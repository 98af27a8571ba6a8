//! What a linked file tells the loader of macOS.

use std::fmt;

use object::Endianness;
use object::macho::{
    BuildVersionCommand, DylibCommand, LC_BUILD_VERSION, LC_ID_DYLIB, LC_LAZY_LOAD_DYLIB, LC_LOAD_DYLIB, LC_LOAD_UPWARD_DYLIB,
    LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB, LC_RPATH, LC_VERSION_MIN_MACOSX, MH_BUNDLE, MH_DYLIB, MachHeader64, N_EXT, N_TYPE, N_UNDF,
    N_WEAK_REF, PLATFORM_MACOS, RpathCommand, SymtabCommand, VersionMinCommand,
};
use object::read::macho::{LoadCommandData, MachHeader, Nlist as _};

use super::{Budget, TABLE, WHAT, machine, plain};
use crate::Error;
use crate::elf::Machine;

/// A release of macOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u8,
    /// The third number.
    pub patch: u8,
}

impl SystemVersion {
    /// As load commands have it: the major number in the upper half.
    fn of(bits: u32) -> Self {
        let [patch, minor, low, high] = bits.to_le_bytes();
        Self { major: u16::from_le_bytes([low, high]), minor, patch }
    }
}

impl fmt::Display for SystemVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch == 0 { Ok(()) } else { write!(f, ".{}", self.patch) }
    }
}

/// Where the loader looks for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// In this library, by its place in [`Image::needed`].
    Library(usize),
    /// In everything that is loaded.
    Anything,
    /// In the program that loads the file.
    Program,
    /// In a library that the file does not need: it is damaged.
    Unknown(u8),
}

/// A name that a file takes from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name.
    pub name: String,
    /// Whether the file loads without it.
    pub weak: bool,
    /// Where it is looked for.
    pub provider: Provider,
}

/// What a library or a bundle tells the loader. Everything in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The processor.
    pub machine: Machine,
    /// The oldest macOS that it is for; none where it does not say, or is for another system.
    pub minimum: Option<SystemVersion>,
    /// What those who link with it record.
    pub install_name: Option<String>,
    /// The libraries that it needs.
    pub needed: Vec<String>,
    /// The directories that stand for `@rpath`.
    pub rpaths: Vec<String>,
    /// The names that it offers.
    pub exports: Vec<String>,
    /// The names that it takes from others, by its symbol table.
    pub imports: Vec<Import>,
    /// Files of the machine that built it, which debuggers would look for.
    pub debug_files: Vec<String>,
}

/// The kind of a table entry for debuggers that names an object file, and of one that names a source.
const N_OSO: u8 = 0x66;
const N_SO: u8 = 0x64;

/// Reads a library or a bundle.
///
/// # Errors
/// When `data` is neither for a known processor, is damaged, or has names that are not UTF-8.
pub fn image(data: &[u8]) -> Result<Image, Error> {
    // A header that is cut off is damage, one of another kind is not.
    let begins =
        [object::macho::MH_MAGIC_64.to_le_bytes(), object::macho::MH_MAGIC_64.to_be_bytes()].iter().any(|magic| data.starts_with(magic));
    let header = MachHeader64::<Endianness>::parse(data, 0).map_err(|cause| match begins {
        true => Error::damaged(WHAT)(cause),
        false => Error::Format { expected: "a Mach-O library" },
    })?;
    let endian = header.endian().map_err(Error::damaged(WHAT))?;
    if !matches!(header.filetype(endian), MH_DYLIB | MH_BUNDLE) {
        return Err(Error::Format { expected: "a Mach-O library" });
    }
    let mut image = Image {
        machine: machine(header.cputype(endian).0)?,
        minimum: None,
        install_name: None,
        needed: Vec::new(),
        rpaths: Vec::new(),
        exports: crate::exports::of_macho(data)?,
        imports: Vec::new(),
        debug_files: Vec::new(),
    };
    let mut budget = Budget::new(data.len());
    let mut tables: Vec<&SymtabCommand<Endianness>> = Vec::new();
    let mut commands = header.load_commands(endian, data, 0).map_err(Error::damaged(WHAT))?;
    while let Some(command) = commands.next().map_err(Error::damaged(WHAT))? {
        image.take(command, endian, &mut budget)?;
        tables.extend(command.symtab().map_err(Error::damaged(WHAT))?);
    }
    for table in tables {
        let table = table.symbols::<MachHeader64<Endianness>, _>(endian, data).map_err(Error::damaged(TABLE))?;
        for symbol in table.iter() {
            let name = || plain(symbol.name(endian, table.strings()).map_err(Error::damaged(TABLE))?);
            if symbol.is_stab() {
                if matches!(symbol.n_type().0, N_OSO | N_SO) {
                    image.debug_files.push(budget.own(name()?)?);
                }
            } else if symbol.n_type().0 & N_TYPE == N_UNDF.0 && symbol.n_type().0 & N_EXT.0 != 0 {
                let description = symbol.n_desc(endian);
                let provider = image.provider((description.0 >> 8) as u8);
                let weak = description.0 & N_WEAK_REF.0 != 0;
                image.imports.push(Import { name: budget.own(name()?)?, weak, provider });
            }
        }
    }
    Ok(image)
}

impl Image {
    /// Takes what one load command says.
    fn take(&mut self, command: LoadCommandData<'_, Endianness>, endian: Endianness, budget: &mut Budget) -> Result<(), Error> {
        let mut own = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes);
            budget.own(text.map_err(|_| Error::Damaged { what: WHAT, cause: "a path is not UTF-8 text".to_owned() })?)
        };
        match command.cmd() {
            LC_ID_DYLIB | LC_LOAD_DYLIB | LC_LOAD_WEAK_DYLIB | LC_REEXPORT_DYLIB | LC_LAZY_LOAD_DYLIB | LC_LOAD_UPWARD_DYLIB => {
                let dylib: &DylibCommand<Endianness> = command.data().map_err(Error::damaged(WHAT))?;
                let name = own(command.string(endian, dylib.dylib.name).map_err(Error::damaged(WHAT))?)?;
                if command.cmd() == LC_ID_DYLIB {
                    self.install_name = Some(name);
                } else {
                    self.needed.push(name);
                }
            }
            LC_RPATH => {
                let rpath: &RpathCommand<Endianness> = command.data().map_err(Error::damaged(WHAT))?;
                self.rpaths.push(own(command.string(endian, rpath.path).map_err(Error::damaged(WHAT))?)?);
            }
            LC_BUILD_VERSION => {
                let build: &BuildVersionCommand<Endianness> = command.data().map_err(Error::damaged(WHAT))?;
                if build.platform.get(endian) == PLATFORM_MACOS {
                    self.minimum = Some(SystemVersion::of(build.minos.get(endian).0));
                }
            }
            LC_VERSION_MIN_MACOSX if self.minimum.is_none() => {
                let version: &VersionMinCommand<Endianness> = command.data().map_err(Error::damaged(WHAT))?;
                self.minimum = Some(SystemVersion::of(version.version.get(endian).0));
            }
            _ => {}
        }
        Ok(())
    }

    /// What the number of a library in the symbol table means.
    fn provider(&self, ordinal: u8) -> Provider {
        match ordinal {
            0xff => Provider::Program,
            // Nothing that is undefined is in the file itself: zig's linker writes the number of that for what is looked up everywhere.
            0 | 0xfe => Provider::Anything,
            number if usize::from(number) <= self.needed.len() => Provider::Library(usize::from(number) - 1),
            number => Provider::Unknown(number),
        }
    }
}
