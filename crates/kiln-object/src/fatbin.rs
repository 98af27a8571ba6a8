//! What device code is inside: the fatbins that nvcc embeds, by their headers.
//!
//! The layout is not documented by NVIDIA; it was read off the output of `fatbinary` 13.0 to 13.5, with its own `cuobjdump` as the
//! judge. A section holds fatbins one after the other, each with a header of 16 bytes:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 4 | magic `0xba55ed50` |
//! | 4 | 2 | version, 1 |
//! | 6 | 2 | size of this header |
//! | 8 | 8 | size of the images that follow |
//!
//! and then images, each with a header of its own:
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 2 | kind: 1 PTX, 2 ELF |
//! | 4 | 4 | size of this header |
//! | 8 | 8 | size of the code as stored, padded |
//! | 28 | 4 | architecture: 90 for `sm_90` |
//! | 40 | 8 | flags: bit 13 LZ4, bit 15 Zstandard, bit 20 suffix `a`, bit 21 suffix `f` |
//! | 56 | 8 | size of the code when unpacked; 0 unless it is packed |
//!
//! Code is never unpacked: its headers suffice to say what it is for.
//!
//! Programs find fatbins by their addresses. In a linked file without sections of these names they are looked for by their magic number, in
//! what is loaded of the file.

use std::fmt;
use std::ops::Range;

use object::read::elf::{FileHeader, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, elf};

use crate::Error;

const WHAT: &str = "fatbin";
const MAGIC: u32 = 0xba55_ed50;
const VERSION: u64 = 1;
const LZ4: u64 = 1 << 13;
const ZSTANDARD: u64 = 1 << 15;
const ARCH_SPECIFIC: u64 = 1 << 20;
const FAMILY_SPECIFIC: u64 = 1 << 21;
/// Least sizes of the two headers, and the largest one of a fatbin that is taken for one where nothing else says so.
const FATBIN_HEADER: u64 = 16;
const IMAGE_HEADER: u64 = 64;
const LARGEST_HEADER: u64 = 64;
/// Sections that hold fatbins: of whole programs, and of relocatable device code.
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageKind {
    /// PTX: text that the driver compiles.
    Ptx,
    /// A cubin: machine code.
    Cubin,
    /// Something else, by its number.
    Other(u16),
}

/// How an image is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packing {
    /// Not at all.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard. Only drivers of CUDA 12.4 and newer unpack it.
    Zstandard,
}

/// Device code for one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image {
    /// What it is.
    pub kind: ImageKind,
    /// The architecture's number: 90 for `sm_90` and `sm_90a`.
    pub arch: u32,
    /// The letter behind the number, `a` or `f`. Toolkits before 13 may leave it out.
    pub suffix: Option<char>,
    /// How it is packed.
    pub packing: Packing,
    /// Size in bytes as stored, without padding where that is known.
    pub size: u64,
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ImageKind::Ptx => f.write_str("compute_")?,
            ImageKind::Cubin => f.write_str("sm_")?,
            ImageKind::Other(kind) => write!(f, "kind {kind} ")?,
        }
        write!(f, "{}", self.arch)?;
        match self.suffix {
            Some(suffix) => write!(f, "{suffix}"),
            None => Ok(()),
        }
    }
}

/// The images of one fatbin, in file order: of one translation unit, or of one device link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fatbin {
    /// The images.
    pub images: Vec<Image>,
}

/// The fatbins of an ELF file (an object or a shared library), in file order; none when it holds no device code.
///
/// # Errors
/// When it is no 64-bit ELF file, or it or a fatbin is damaged.
pub fn of_elf(data: &[u8]) -> Result<Vec<Fatbin>, Error> {
    let not_elf = |_| Error::Format { expected: "a 64-bit ELF file" };
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(not_elf)?;
    let endian = header.endian().map_err(not_elf)?;
    let sections = header.sections(endian, data).map_err(Error::damaged("section table"))?;
    let mut found = Vec::new();
    let mut named = false;
    for section in sections.iter() {
        let name = sections.section_name(endian, section).map_err(Error::damaged("section table"))?;
        if SECTIONS.contains(&name) {
            named = true;
            found.extend(of_section(section.data(endian, data).map_err(Error::damaged(WHAT))?)?);
        }
    }
    if !named {
        let segments = header.program_headers(endian, data).map_err(Error::damaged("program header table"))?;
        let loaded = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
        for range in merged(loaded.map(|segment| (segment.p_offset(endian), segment.p_filesz(endian))), data.len()) {
            search(data.get(range).unwrap_or_default(), &mut found)?;
        }
    }
    Ok(found)
}

/// The parts of a file of `length` bytes that begin at the first number and have the second's bytes; ascending, and none twice.
fn merged(parts: impl Iterator<Item = (u64, u64)>, length: usize) -> Vec<Range<usize>> {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(length);
    let mut ranges: Vec<Range<usize>> = parts.map(|(start, size)| place(start)..place(start.saturating_add(size))).collect();
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Looks for fatbins among other things. Code that compares the magic number holds it too, but no header.
fn search(mut data: &[u8], found: &mut Vec<Fatbin>) -> Result<(), Error> {
    let magic = MAGIC.to_le_bytes();
    while let Some(at) = data.iter().position(|byte| *byte == magic[0]) {
        data = data.get(at..).unwrap_or_default();
        let is_header = || {
            number::<2>(data, 4).ok() == Some(VERSION)
                && number::<2>(data, 6).is_ok_and(|size| (FATBIN_HEADER..=LARGEST_HEADER).contains(&size))
        };
        data = if data.starts_with(&magic) && is_header() {
            let (fatbin, rest) = fatbin_at(data)?;
            found.push(fatbin);
            rest
        } else {
            data.get(1..).unwrap_or_default()
        };
    }
    Ok(())
}

/// The fatbin that `data` begins with, and what follows it.
fn fatbin_at(data: &[u8]) -> Result<(Fatbin, &[u8]), Error> {
    let (header, size) = (number::<2>(data, 6)?, number::<8>(data, 8)?);
    if header < FATBIN_HEADER {
        return Err(damaged("its header is too short"));
    }
    let images = images_of(part(data, header, size)?)?;
    Ok((Fatbin { images }, rest(data, header, size)))
}

/// The fatbins of a section's content, in order. Padding between them is skipped.
///
/// # Errors
/// When something else stands between them, or one is damaged.
pub fn of_section(mut data: &[u8]) -> Result<Vec<Fatbin>, Error> {
    let mut found = Vec::new();
    loop {
        let padding = data.iter().take_while(|byte| **byte == 0).count();
        data = data.get(padding..).unwrap_or_default();
        if data.is_empty() {
            return Ok(found);
        }
        if number::<4>(data, 0)? != u64::from(MAGIC) {
            return Err(damaged("it does not begin with its magic number"));
        }
        let (fatbin, rest) = fatbin_at(data)?;
        found.push(fatbin);
        data = rest;
    }
}

fn images_of(mut data: &[u8]) -> Result<Vec<Image>, Error> {
    let mut images = Vec::new();
    while !data.is_empty() {
        let (header, size) = (number::<4>(data, 4)?, number::<8>(data, 8)?);
        if header < IMAGE_HEADER {
            return Err(damaged("the header of an image is too short"));
        }
        part(data, header, size)?;
        let flags = number::<8>(data, 40)?;
        let packed = number::<4>(data, 16)?;
        images.push(Image {
            kind: match number::<2>(data, 0)? {
                1 => ImageKind::Ptx,
                2 => ImageKind::Cubin,
                other => ImageKind::Other(u16::try_from(other).unwrap_or(u16::MAX)),
            },
            arch: u32::try_from(number::<4>(data, 28)?).unwrap_or(u32::MAX),
            suffix: match flags {
                _ if flags & ARCH_SPECIFIC != 0 => Some('a'),
                _ if flags & FAMILY_SPECIFIC != 0 => Some('f'),
                _ => None,
            },
            packing: match flags {
                _ if flags & ZSTANDARD != 0 => Packing::Zstandard,
                _ if flags & LZ4 != 0 => Packing::Lz4,
                _ => Packing::None,
            },
            size: if packed == 0 { size } else { packed },
        });
        data = rest(data, header, size);
    }
    Ok(images)
}

fn damaged(cause: &str) -> Error {
    Error::Damaged { what: WHAT, cause: cause.to_owned() }
}

/// The little-endian number of `N` bytes at `at`.
fn number<const N: usize>(data: &[u8], at: usize) -> Result<u64, Error> {
    let bytes = data.get(at..).and_then(|rest| rest.first_chunk::<N>()).ok_or_else(|| damaged("it is cut short"))?;
    Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// What follows a header: `size` bytes.
fn part(data: &[u8], header: u64, size: u64) -> Result<&[u8], Error> {
    let end = header.checked_add(size).and_then(|end| usize::try_from(end).ok());
    let start = usize::try_from(header).ok();
    start.zip(end).and_then(|(start, end)| data.get(start..end)).ok_or_else(|| damaged("it is cut short"))
}

/// What follows a header and its `size` bytes; both are known to be there.
fn rest(data: &[u8], header: u64, size: u64) -> &[u8] {
    usize::try_from(header.saturating_add(size)).ok().and_then(|end| data.get(end..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn image(kind: u16, arch: u32, flags: u64, code: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[0..2].copy_from_slice(&kind.to_le_bytes());
        bytes[2..4].copy_from_slice(&0x101_u16.to_le_bytes());
        bytes[4..8].copy_from_slice(&64_u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(code.len() as u64).to_le_bytes());
        bytes[28..32].copy_from_slice(&arch.to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        bytes.extend(code);
        bytes
    }

    fn fatbin(images: &[Vec<u8>]) -> Vec<u8> {
        let body = images.concat();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(1_u16.to_le_bytes());
        bytes.extend(16_u16.to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn sample() -> Vec<u8> {
        let first =
            fatbin(&[image(2, 80, 0x11, b"\x7fELF...."), image(2, 90, 0x10_0011, b"\x7fELF...."), image(1, 90, 0x8011, b"zstdzstd")]);
        let second = fatbin(&[image(2, 100, 0x0120_0011, b"\x7fELF...."), image(1, 100, 0x2011, b"lz4.lz4.")]);
        [first, vec![0; 24], second].concat()
    }

    #[test]
    fn images_say_what_they_are_for() {
        let found = of_section(&sample()).unwrap();
        let text: Vec<Vec<String>> = found.iter().map(|fatbin| fatbin.images.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(text, [vec!["sm_80", "sm_90a", "compute_90"], vec!["sm_100f", "compute_100"]]);
        let packing: Vec<Packing> = found.iter().flat_map(|fatbin| &fatbin.images).map(|image| image.packing).collect();
        assert_eq!(packing, [Packing::None, Packing::None, Packing::Zstandard, Packing::None, Packing::Lz4]);
        assert_eq!(of_section(&[]).unwrap(), []);
    }

    #[test]
    fn damage_is_an_error() {
        let good = sample();
        assert!(of_section(&good[..good.len() - 1]).is_err(), "cut short");
        assert!(of_section(&[b"text".to_vec(), good.clone()].concat()).is_err(), "something else in front");
        for (at, value) in [(6, 8), (20, 8), (8, 0xff)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(of_section(&bad).is_err(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_the_end(mut at in prop::collection::vec((0_usize..400, any::<u8>()), 0..12), cut in 0_usize..600) {
            let mut bytes = sample();
            for (at, value) in at.drain(..) {
                let length = bytes.len();
                bytes[at % length] = value;
            }
            bytes.truncate(cut);
            let _ = of_section(&bytes);
            let _ = of_elf(&bytes);
        }
    }
}
