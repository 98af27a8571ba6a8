//! What device code of AMD's is inside: the bundles that HIP compilers embed, by their headers.
//!
//! The layout is that of LLVM's page "Clang Offload Bundler": a bundle is the magic text, the number of entries, for each entry the place of
//! its code (counted from the bundle's begin), its size, and the length and text of its id, all numbers of 8 bytes; then the code. A
//! section holds bundles one after the other. Each code object is an ELF file, whose header says which processor it is for.

use std::fmt;

use object::read::elf::{FileHeader, SectionHeader as _, Sym as _};
use object::{Endianness, elf};

use crate::Error;

const WHAT: &str = "offload bundle";
const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// Begins a bundle that is packed as a whole.
const COMPRESSED: &[u8] = b"CCOB";
const SECTION: &[u8] = b".hip_fatbin";
/// Code begins at multiples of this: it is mapped into the device's memory.
const ALIGNMENT: usize = 4096;
/// The most entries that a bundle may have: one for each processor and setting that there is.
const MOST: u64 = 1 << 12;
/// What ids of device code begin with.
const DEVICE: &str = "hipv4-amdgcn-amd-amdhsa--";
/// The entry of the host, which is empty and stands first.
const HOST: &str = "host-x86_64-unknown-linux";

/// Processors by the number in the header of their code, as LLVM's `BinaryFormat/ELF.h` has them.
const PROCESSORS: [(u32, &str); 44] = [
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x40, "gfx940"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x49, "gfx1250"),
    (0x4a, "gfx1151"),
    (0x4b, "gfx941"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"),
    (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"),
    (0x55, "gfx1152"),
    (0x58, "gfx1153"),
    (0x59, "gfx12-generic"),
    (0x5f, "gfx9-4-generic"),
    (0x22, "gfx700"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
];

/// Device code for one processor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeObject {
    /// What it is for, by its own header: `gfx942`, `gfx942:sramecc+:xnack-`; the number of a processor that is not known.
    pub target: String,
    /// The kernels that it has, ascending, by their names for the linker.
    pub kernels: Vec<String>,
}

/// An entry of a bundle with device code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// What the bundle says that it is for: `gfx942:xnack+`.
    pub target: String,
    /// The code.
    pub code: CodeObject,
}

/// The device code of one translation unit, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// The entries with device code.
    pub entries: Vec<Entry>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)
    }
}

/// The bundles of an ELF file (an object or a shared library), in file order; none when it holds no device code.
///
/// # Errors
/// When it is no 64-bit ELF file, or it or a bundle is damaged or packed.
pub fn of_elf(data: &[u8]) -> Result<Vec<Bundle>, Error> {
    let not_elf = |_| Error::Format { expected: "a 64-bit ELF file" };
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(not_elf)?;
    let endian = header.endian().map_err(not_elf)?;
    let sections = header.sections(endian, data).map_err(Error::damaged("section table"))?;
    let mut found = Vec::new();
    for section in sections.iter() {
        if sections.section_name(endian, section).map_err(Error::damaged("section table"))? == SECTION {
            found.extend(of_section(section.data(endian, data).map_err(Error::damaged(WHAT))?)?);
        }
    }
    Ok(found)
}

/// The bundles of a section's content, in order. Padding between them is skipped.
///
/// # Errors
/// When something else stands between them, or one is damaged or packed.
pub fn of_section(mut data: &[u8]) -> Result<Vec<Bundle>, Error> {
    let mut found = Vec::new();
    loop {
        let padding = data.iter().take_while(|byte| **byte == 0).count();
        data = data.get(padding..).unwrap_or_default();
        if data.is_empty() {
            return Ok(found);
        }
        let (bundle, size) = bundle_of(data)?;
        found.push(bundle);
        data = data.get(size..).unwrap_or_default();
    }
}

/// One bundle, and how long it is.
fn bundle_of(data: &[u8]) -> Result<(Bundle, usize), Error> {
    if data.starts_with(COMPRESSED) {
        return Err(Error::Unsupported { what: "a compressed offload bundle".to_owned() });
    }
    let mut rest = data.strip_prefix(MAGIC).ok_or_else(|| damaged("it does not begin with its magic text"))?;
    let count = number(&mut rest)?;
    if count > MOST {
        return Err(damaged("it has more entries than there are processors"));
    }
    let mut bundle = Bundle::default();
    let mut placed = Vec::new();
    for _ in 0..count {
        let (offset, size, length) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        let (id, after) = rest.split_at_checked(usize_of(length)?).ok_or_else(cut_short)?;
        rest = after;
        let start = usize_of(offset)?;
        let end = start.checked_add(usize_of(size)?).ok_or_else(cut_short)?;
        placed.push((std::str::from_utf8(id).map_err(|_| damaged("an id is no text"))?, start, end));
    }
    let mut end = data.len().saturating_sub(rest.len());
    for (id, start, stop) in placed {
        let code = data.get(start..stop).ok_or_else(cut_short)?;
        end = end.max(stop);
        if let Some((_, target)) = id.split_once("amdgcn-amd-amdhsa-").filter(|_| !id.starts_with("host")) {
            bundle.entries.push(Entry { target: target.trim_start_matches('-').to_owned(), code: code_object(code)? });
        }
    }
    Ok((bundle, end))
}

/// What a code object is for, and its kernels.
///
/// # Errors
/// When it is no 64-bit ELF file for such a processor, or damaged.
pub fn code_object(data: &[u8]) -> Result<CodeObject, Error> {
    const WHAT: &str = "code object";
    let not_elf = |_| Error::Format { expected: "a code object" };
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(not_elf)?;
    let endian = header.endian().map_err(not_elf)?;
    if header.e_machine(endian) != elf::EM_AMDGPU {
        return Err(Error::Format { expected: "a code object of an AMD GPU" });
    }
    let sections = header.sections(endian, data).map_err(Error::damaged(WHAT))?;
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM).map_err(Error::damaged(WHAT))?;
    let mut kernels = Vec::new();
    for symbol in symbols.iter() {
        let name = symbol.name(endian, symbols.strings()).map_err(Error::damaged(WHAT))?;
        // The descriptor of a kernel: what a launch asks for.
        if let Some(kernel) = name.strip_suffix(b".kd") {
            kernels.push(String::from_utf8_lossy(kernel).into_owned());
        }
    }
    kernels.sort_unstable();
    Ok(CodeObject { target: target(header.e_flags(endian).0), kernels })
}

/// The target that the flags of an ELF header tell.
fn target(flags: u32) -> String {
    let number = flags & 0xff;
    let known = PROCESSORS.iter().find(|(known, _)| *known == number);
    let mut target = known.map_or_else(|| format!("processor {number:#x}"), |(_, name)| (*name).to_owned());
    for (shift, name) in [(10, "sramecc"), (8, "xnack")] {
        match flags >> shift & 3 {
            2 => target.push_str(&format!(":{name}-")),
            3 => target.push_str(&format!(":{name}+")),
            _ => {}
        }
    }
    target
}

/// The bundle of code objects, each with its target. Equal arguments give equal bytes.
pub fn bundle(codes: &[(String, Vec<u8>)]) -> Vec<u8> {
    let ids: Vec<String> = [HOST.to_owned()].into_iter().chain(codes.iter().map(|(target, _)| format!("{DEVICE}{target}"))).collect();
    let mut at = MAGIC.len() + 8 + ids.iter().map(|id| 24 + id.len()).sum::<usize>();
    let mut header = [MAGIC, &(ids.len() as u64).to_le_bytes()].concat();
    let mut body: Vec<(usize, &[u8])> = Vec::new();
    let sizes: Vec<&[u8]> = [[].as_slice()].into_iter().chain(codes.iter().map(|(_, code)| code.as_slice())).collect();
    for (id, code) in ids.iter().zip(sizes) {
        at = at.next_multiple_of(ALIGNMENT);
        for value in [at, code.len(), id.len()] {
            header.extend((value as u64).to_le_bytes());
        }
        header.extend(id.as_bytes());
        body.push((at, code));
        at += code.len();
    }
    for (at, code) in body {
        header.resize(header.len().max(at), 0);
        header.extend(code);
    }
    header
}

fn damaged(cause: &str) -> Error {
    Error::Damaged { what: WHAT, cause: cause.to_owned() }
}

fn cut_short() -> Error {
    damaged("it is cut short")
}

fn usize_of(number: u64) -> Result<usize, Error> {
    usize::try_from(number).map_err(|_| cut_short())
}

/// Takes the little-endian number of 8 bytes at the begin of `data`.
fn number(data: &mut &[u8]) -> Result<u64, Error> {
    let (bytes, rest) = data.split_first_chunk::<8>().ok_or_else(cut_short)?;
    *data = rest;
    Ok(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An ELF header without sections.
    fn code(flags: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[16..18].copy_from_slice(&3_u16.to_le_bytes());
        bytes[18..20].copy_from_slice(&224_u16.to_le_bytes());
        bytes[20] = 1;
        bytes[48..52].copy_from_slice(&flags.to_le_bytes());
        bytes[52] = 64;
        bytes
    }

    fn sample() -> Vec<u8> {
        let first = bundle(&[("gfx90a".to_owned(), code(0x3f)), ("gfx942:xnack+".to_owned(), code(0x74c))]);
        [first, vec![0; 700], bundle(&[("gfx1201".to_owned(), code(0x4e))])].concat()
    }

    #[test]
    fn bundles_say_what_they_are_for() {
        let found = of_section(&sample()).unwrap();
        let text: Vec<Vec<(String, String)>> = found
            .iter()
            .map(|bundle| bundle.entries.iter().map(|entry| (entry.to_string(), entry.code.target.clone())).collect())
            .collect();
        let same = |bundle: &str, code: &str| (bundle.to_owned(), code.to_owned());
        assert_eq!(text, [vec![same("gfx90a", "gfx90a"), same("gfx942:xnack+", "gfx942:xnack+")], vec![same("gfx1201", "gfx1201")]]);
        assert_eq!(of_section(&[]).unwrap(), []);
    }

    #[test]
    fn flags_are_named() {
        let said = [0x3f, 0x54c, 0xb4c, 0xf4c, 0x51, 0xfe].map(target);
        assert_eq!(said, ["gfx90a", "gfx942", "gfx942:sramecc-:xnack+", "gfx942:sramecc+:xnack+", "gfx9-generic", "processor 0xfe"]);
        // As Clang 19 numbers them.
        assert_eq!([0x22, 0x28, 0x29, 0x2a].map(target), ["gfx700", "gfx801", "gfx802", "gfx803"]);
    }

    #[test]
    fn damage_is_an_error() {
        let good = sample();
        assert!(of_section(&good[..good.len() - 1]).is_err(), "cut short");
        assert!(of_section(&[b"text".to_vec(), good.clone()].concat()).is_err(), "something else in front");
        assert_eq!(of_section(b"CCOB\x02\0").unwrap_err().to_string(), "a compressed offload bundle is not supported");
        let mut other = bundle(&[("gfx90a".to_owned(), code(0x3f))]);
        other[4096 + 18] = 62;
        assert!(of_section(&other).is_err(), "code for the host");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_the_end(mut at in prop::collection::vec((0_usize..300, any::<u8>()), 0..12), cut in 0_usize..9000) {
            let mut bytes = sample();
            for (at, value) in at.drain(..) {
                bytes[at] = value;
            }
            bytes.truncate(cut);
            let _ = of_section(&bytes);
            let _ = code_object(&bytes);
        }
    }
}
