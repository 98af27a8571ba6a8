//! Reading ELF files of either class and byte order, and writing objects that hold data alone.

mod data;
mod definitions;
mod dynamic;
mod headerless;
mod loaded;
mod mappable;
mod relocatable;
mod tables;

pub use data::data_object;
pub use definitions::{Definition, Storage, definitions, hide};
pub use dynamic::{Dynamic, Export, Import, Stack, dynamic, dynamic_file};
pub use relocatable::{Defined, Relocatable, Undefined, relocatable};

use std::fmt;

/// The processor that a file is for: the `e_machine` field of its header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Machine(pub u16);

impl Machine {
    /// AMD x86-64.
    pub const X86_64: Self = Self(object::elf::EM_X86_64.0);
    /// ARM in 64-bit state.
    pub const AARCH64: Self = Self(object::elf::EM_AARCH64.0);
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::X86_64 => f.write_str("x86_64"),
            Self::AARCH64 => f.write_str("aarch64"),
            Self(other) => write!(f, "machine {other}"),
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    /// Not said. Ordinary for undefined names.
    Untyped,
    /// Code.
    Function,
    /// Code that is chosen by a function when the file is loaded (`STT_GNU_IFUNC`).
    IndirectFunction,
    /// Data.
    Object,
    /// Thread-local data.
    Tls,
    /// Something else, by its `STT_` number.
    Other(u8),
}

/// How a symbol takes part in linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Binding {
    /// Seen by its own file only.
    Local,
    /// The one definition.
    Global,
    /// Gives way to another definition; when undefined, may stay so.
    Weak,
    /// One definition in the whole process, whatever way it was loaded (`STB_GNU_UNIQUE`).
    Unique,
    /// Something else, by its `STB_` number.
    Other(u8),
}

/// From where a symbol can be seen once its file is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Visibility {
    /// Everywhere.
    Default,
    /// Everywhere, but the own file always uses its own definition.
    Protected,
    /// Within the linked file only (`STV_HIDDEN` or `STV_INTERNAL`).
    Hidden,
}
