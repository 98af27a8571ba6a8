//! Reading Mach-O: what the loader of macOS is told by a linked file, and what an object defines and wants.
//!
//! Names are as a compiler spells them: without the underscore that Mach-O puts in front of every one. Files are 64-bit and
//! little-endian, and for one processor.

mod image;
mod relocatable;
pub mod tbd;

use crate::Error;
use crate::elf::Machine;

pub use image::{Image, Import, Provider, SystemVersion, image};
pub use relocatable::relocatable;

const WHAT: &str = "Mach-O file";
const TABLE: &str = "Mach-O symbol table";

/// Processors of Mach-O: the number of the architecture with the bit for 64-bit ones.
const X86_64: u32 = 0x0100_0007;
const ARM64: u32 = 0x0100_000c;

/// The processor in the words of all readers.
fn machine(cpu: u32) -> Result<Machine, Error> {
    match cpu {
        X86_64 => Ok(Machine::X86_64),
        ARM64 => Ok(Machine::AARCH64),
        other => Err(Error::Unsupported { what: format!("a Mach-O file for the processor {other:#x}") }),
    }
}

/// A name of the file as a compiler spells it.
fn plain(name: &[u8]) -> Result<&str, Error> {
    let name = name.strip_prefix(b"_").unwrap_or(name);
    std::str::from_utf8(name).map_err(|_| Error::Damaged { what: TABLE, cause: "a name is not UTF-8 text".to_owned() })
}

/// How much memory the names of one file may take. Many entries may point at one long string, so that a small file could otherwise ask
/// for any amount.
struct Budget {
    left: usize,
}

impl Budget {
    /// For a file of this size: linkers share the ends of names, but not 64 times over.
    fn new(size: usize) -> Self {
        Self { left: (1_usize << 20).saturating_add(size.saturating_mul(64)) }
    }

    /// A name of its own.
    fn own(&mut self, name: &str) -> Result<String, Error> {
        const ENTRY: usize = 48;
        match self.left.checked_sub(name.len().saturating_add(ENTRY)) {
            Some(left) => {
                self.left = left;
                Ok(name.to_owned())
            }
            None => Err(Error::Damaged { what: TABLE, cause: "its names are more than its strings can be meant for".to_owned() }),
        }
    }
}
