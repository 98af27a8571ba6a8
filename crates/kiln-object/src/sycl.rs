//! What SYCL device code is inside: the images that DPC++ embeds, by the section that each lies in and by their own headers.
//!
//! A linked file has a section `__CLANG_OFFLOAD_BUNDLE__sycl-TARGET` for each target, with the target's images one after the other and zeros
//! between them. `spir64` has SPIR-V; `spir64_gen` has what `ocloc` makes: a file for one GPU, or an archive of such files. With
//! `--offload-compress` each image is a Zstandard frame of its own. Source: the wrapper of images in Intel's LLVM, the SPIR-V
//! specification (section 2.3) and RFC 8878.

use std::fmt;
use std::io::Read;

use object::read::elf::{FileHeader, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, elf};
use ruzstd::decoding::StreamingDecoder;

use crate::Error;

const WHAT: &str = "SYCL device image";
/// Begins the names of the sections.
const SECTION: &str = "__CLANG_OFFLOAD_BUNDLE__sycl-";
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const SPIRV: u32 = 0x0723_0203;
const SPIRV_HEADER: usize = 20;
const ENTRY_POINT: u32 = 15;
const BITCODE: &[u8] = b"BC\xc0\xde";
const ELF: &[u8] = b"\x7fELF";
const ARCHIVE: &[u8] = b"!<arch>\n";
const MEMBER_HEADER: usize = 60;
/// The number of Intel's GPUs in ELF headers.
const INTEL_GPU: u16 = 205;
/// The most bytes that an image may have when it is unpacked: 1 GiB.
const MOST: u64 = 1 << 30;
/// The most memory that unpacking may look back at: 128 MiB, which is what the format's own tools allow at its highest level.
const WINDOW: u64 = 1 << 27;

/// What an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// SPIR-V, which the device's driver compiles.
    SpirV {
        /// Major and minor of the version.
        version: (u8, u8),
        /// The kernels, in file order, by their names for the runtime.
        kernels: Vec<String>,
    },
    /// LLVM's bitcode: in objects, whose code is finished at the link.
    Bitcode,
    /// Code for one GPU.
    Native,
    /// Files for several GPUs, by the names that they have in the archive.
    Archive {
        /// The names, in file order.
        members: Vec<String>,
    },
}

/// Device code for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The target by the section's name: `spir64_gen`.
    pub target: String,
    /// Whether it is packed.
    pub is_packed: bool,
    /// What it is.
    pub code: Code,
}

impl Image {
    /// Whether a GPU runs it as it is.
    pub fn is_native(&self) -> bool {
        matches!(self.code, Code::Native | Code::Archive { .. })
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.code {
            Code::SpirV { .. } => "SPIR-V",
            Code::Bitcode => "LLVM bitcode",
            Code::Native | Code::Archive { .. } => "GPU code",
        })?;
        write!(f, " for `{}`", self.target)
    }
}

/// The images of an ELF file (an object or a shared library), in file order; none when it holds no device code.
///
/// # Errors
/// When it is no 64-bit ELF file, or it or an image is damaged or of no known kind.
pub fn of_elf(data: &[u8]) -> Result<Vec<Image>, Error> {
    let not_elf = |_| Error::Format { expected: "a 64-bit ELF file" };
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(not_elf)?;
    let endian = header.endian().map_err(not_elf)?;
    let sections = header.sections(endian, data).map_err(Error::damaged("section table"))?;
    let mut found = Vec::new();
    for section in sections.iter() {
        let name = sections.section_name(endian, section).map_err(Error::damaged("section table"))?;
        if let Some(target) = std::str::from_utf8(name).ok().and_then(|name| name.strip_prefix(SECTION)) {
            found.extend(of_section(target, section.data(endian, data).map_err(Error::damaged(WHAT))?)?);
        }
    }
    Ok(found)
}

/// The images of the content of the section for `target`, in order. Zeros between them are skipped.
///
/// # Errors
/// When one is damaged or of no known kind.
pub fn of_section(target: &str, mut data: &[u8]) -> Result<Vec<Image>, Error> {
    // Objects have the whole triple, linked files its first part.
    let target = target.split('-').next().unwrap_or(target);
    let mut found = Vec::new();
    loop {
        let padding = data.iter().take_while(|byte| **byte == 0).count();
        data = data.get(padding..).unwrap_or_default();
        if data.is_empty() {
            return Ok(found);
        }
        let (code, is_packed);
        (code, data, is_packed) = match data.starts_with(ZSTANDARD) {
            true => {
                let (content, rest) = unpacked(data)?;
                (code_of(&content)?.0, rest, true)
            }
            false => {
                let (code, rest) = code_of(data)?;
                (code, rest, false)
            }
        };
        found.push(Image { target: target.to_owned(), is_packed, code });
    }
}

/// The content of the Zstandard frame at the begin of `data`, and what follows it.
fn unpacked(data: &[u8]) -> Result<(Vec<u8>, &[u8]), Error> {
    let cannot = |cause: String| Error::Damaged { what: WHAT, cause: format!("it cannot be unpacked: {cause}") };
    let mut decoder = StreamingDecoder::new_with_max_window_size(data, WINDOW).map_err(|cause| cannot(cause.to_string()))?;
    let mut content = Vec::new();
    let size = decoder.by_ref().take(MOST).read_to_end(&mut content).map_err(|cause| cannot(cause.to_string()))?;
    match u64::try_from(size) {
        Ok(size) if size < MOST => Ok((content, decoder.into_inner())),
        _ => Err(Error::Unsupported { what: "a SYCL device image of more than 1 GiB".to_owned() }),
    }
}

/// What is at the begin of `data`, and what follows it.
fn code_of(data: &[u8]) -> Result<(Code, &[u8]), Error> {
    match data {
        data if word(data, 0) == Some(SPIRV) => spirv(data),
        data if data.starts_with(BITCODE) => Ok((Code::Bitcode, &[])),
        data if data.starts_with(ELF) => native(data),
        data if data.starts_with(ARCHIVE) => archive(data),
        _ => Err(damaged("it is neither SPIR-V nor code of an Intel GPU")),
    }
}

/// Whether an image of a known kind begins here.
fn begins_image(data: &[u8]) -> bool {
    word(data, 0) == Some(SPIRV) || [ZSTANDARD, BITCODE, ELF, ARCHIVE].into_iter().any(|magic| data.starts_with(magic))
}

/// The word number `at` of a module.
fn word(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at.checked_mul(4)?..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// A module of SPIR-V: a header of five words, then instructions, each of which begins with its length and what it is. The next module, or
/// padding, begins with what no instruction does.
fn spirv(data: &[u8]) -> Result<(Code, &[u8]), Error> {
    let version = word(data, 1).ok_or_else(cut_short)?.to_le_bytes();
    let mut kernels = Vec::new();
    let mut at = SPIRV_HEADER / 4;
    if data.len() < SPIRV_HEADER {
        return Err(cut_short());
    }
    while let Some(first) = word(data, at) {
        let size = usize::try_from(first >> 16).map_err(|_| cut_short())?;
        if size == 0 || begins_image(data.get(at * 4..).unwrap_or_default()) {
            break;
        }
        let end = at.checked_add(size).ok_or_else(cut_short)?;
        let instruction = data.get(at * 4..end * 4).ok_or_else(cut_short)?;
        if first & 0xffff == ENTRY_POINT {
            // The model and the function stand before the name.
            let name = instruction.get(12..).ok_or_else(cut_short)?.split(|byte| *byte == 0).next().unwrap_or_default();
            kernels.push(String::from_utf8_lossy(name).into_owned());
        }
        at = end;
    }
    let rest = data.get(at * 4..).unwrap_or_default();
    Ok((Code::SpirV { version: (version[2], version[1]), kernels }, rest))
}

/// An ELF file for an Intel GPU; its end is where the last thing that its header tells of ends.
fn native(data: &[u8]) -> Result<(Code, &[u8]), Error> {
    let not_gpu = |_| damaged("a file in it is no 64-bit ELF file");
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(not_gpu)?;
    let endian = header.endian().map_err(not_gpu)?;
    if header.e_machine(endian).0 != INTEL_GPU {
        return Err(damaged("a file in it is for another machine than an Intel GPU"));
    }
    let sections = header.section_headers(endian, data).map_err(Error::damaged(WHAT))?;
    let segments = header.program_headers(endian, data).map_err(Error::damaged(WHAT))?;
    let table = |offset: u64, count: usize, size: u16| offset.saturating_add(u64::from(size).saturating_mul(count as u64));
    let ends = [
        u64::from(header.e_ehsize(endian)),
        table(header.e_shoff(endian), sections.len(), header.e_shentsize(endian)),
        table(header.e_phoff(endian), segments.len(), header.e_phentsize(endian)),
    ];
    let of_sections = sections.iter().filter_map(|section| section.file_range(endian)).map(|(offset, size)| offset.saturating_add(size));
    let of_segments = segments.iter().map(|segment| segment.file_range(endian)).map(|(offset, size)| offset.saturating_add(size));
    let end = ends.into_iter().chain(of_sections).chain(of_segments).max().unwrap_or_default();
    let rest = usize::try_from(end).ok().and_then(|end| data.get(end..)).ok_or_else(cut_short)?;
    Ok((Code::Native, rest))
}

/// An archive: members one after the other, each behind a header of text. It ends where no member follows.
fn archive(data: &[u8]) -> Result<(Code, &[u8]), Error> {
    let mut members = Vec::new();
    let mut rest = data.get(ARCHIVE.len()..).unwrap_or_default();
    while let Some((header, after)) = rest.split_at_checked(MEMBER_HEADER).filter(|(header, _)| header.ends_with(b"`\n")) {
        let field = |range: std::ops::Range<usize>| header.get(range).and_then(|text| std::str::from_utf8(text).ok()).map(str::trim);
        let size: usize = field(48..58).and_then(|text| text.parse().ok()).ok_or_else(|| damaged("an archive's member has no size"))?;
        let (content, behind) = after.split_at_checked(size).ok_or_else(cut_short)?;
        if content.starts_with(ELF) {
            native(content)?;
        }
        members.push(field(0..16).unwrap_or_default().trim_end_matches('/').to_owned());
        rest = match size % 2 {
            0 => behind,
            _ => behind.get(1..).unwrap_or_default(),
        };
    }
    Ok((Code::Archive { members }, rest))
}

fn damaged(cause: &str) -> Error {
    Error::Damaged { what: WHAT, cause: cause.to_owned() }
}

fn cut_short() -> Error {
    damaged("it is cut short")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A module with these kernels.
    fn spirv(kernels: &[&str]) -> Vec<u8> {
        let mut words = vec![SPIRV, 0x0001_0400, 0, 9, 0, 0x0002_0011, 4];
        for kernel in kernels {
            let mut name = [kernel.as_bytes(), b"\0"].concat();
            name.resize(name.len().next_multiple_of(4), 0);
            words.push(((3 + name.len() as u32 / 4) << 16) | ENTRY_POINT);
            words.extend([6, 7]);
            words.extend(name.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())));
        }
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// The header of an ELF file for `machine`.
    fn code(machine: u16) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[20] = 1;
        bytes[52] = 64;
        bytes
    }

    fn archive_of(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = ARCHIVE.to_vec();
        for (name, content) in members {
            bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 0, content.len()).into_bytes());
            bytes.extend(*content);
            bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        }
        bytes
    }

    /// A Zstandard frame with `content` in a block as it is.
    fn frame(content: &[u8]) -> Vec<u8> {
        let block = ((content.len() as u32) << 3 | 1).to_le_bytes();
        [ZSTANDARD, &[0xa0], &(content.len() as u32).to_le_bytes(), &block[..3], content].concat()
    }

    fn said(target: &str, data: &[u8]) -> Vec<String> {
        of_section(target, data).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn images_of_all_kinds_are_told_apart() {
        let devices = archive_of(&[("64.12.60.7/", &code(INTEL_GPU)), ("generic_ir", b"odd")]);
        let all = [spirv(&["_ZTSone", "k"]), vec![0; 12], spirv(&[]), frame(&spirv(&["packed"])), vec![0; 3], devices, code(INTEL_GPU)];
        let found = of_section("spir64-unknown-unknown", &all.concat()).unwrap();
        let kernels = |names: &[&str]| Code::SpirV { version: (1, 4), kernels: names.iter().map(|name| (*name).to_owned()).collect() };
        let members = vec!["64.12.60.7".to_owned(), "generic_ir".to_owned()];
        let codes: Vec<Code> = found.iter().map(|image| image.code.clone()).collect();
        assert_eq!(codes, [kernels(&["_ZTSone", "k"]), kernels(&[]), kernels(&["packed"]), Code::Archive { members }, Code::Native]);
        assert_eq!(found.iter().map(|image| image.is_packed).collect::<Vec<_>>(), [false, false, true, false, false]);
        assert!(found.iter().all(|image| image.target == "spir64"));
        assert_eq!(said("spir64", b"BC\xc0\xde and more"), ["LLVM bitcode for `spir64`"]);
        assert_eq!(said("spir64_gen", &code(INTEL_GPU)), ["GPU code for `spir64_gen`"]);
        assert_eq!(said("spir64", &[0; 9]), [""; 0]);
    }

    /// A module with the kernel `packed_by_zstd` four times, packed by the program `zstd`, with a checksum.
    const PACKED: [u8; 64] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x9d, 0x01, 0x00, 0x02, 0x03, 0x0a, 0x11, 0xa0, 0x6d, 0x0c, 0x10, 0xdf, 0x39, 0xbb, 0xa1, 0xaa,
        0x2a, 0x3a, 0x94, 0x46, 0xf0, 0x27, 0x6d, 0x0a, 0x2c, 0xc2, 0x89, 0xa4, 0x42, 0xac, 0xb9, 0x95, 0xde, 0xbf, 0xff, 0x78, 0x2f, 0xbf,
        0x58, 0x37, 0x93, 0xff, 0x81, 0x78, 0x8f, 0x86, 0x02, 0x00, 0x9a, 0x9f, 0xf3, 0x19, 0x80, 0x12, 0x3d, 0xd5, 0xc8, 0x0e,
    ];

    #[test]
    fn frames_are_unpacked() {
        let found = of_section("spir64", &[&PACKED[..], &[0; 5], &PACKED[..]].concat()).unwrap();
        let code = Code::SpirV { version: (1, 4), kernels: vec!["packed_by_zstd".to_owned(); 4] };
        let image = Image { target: "spir64".to_owned(), is_packed: true, code };
        assert_eq!(found, [image.clone(), image]);
        let magic = of_section("spir64", ZSTANDARD).unwrap_err().to_string();
        assert!(magic.starts_with("damaged SYCL device image: it cannot be unpacked"), "{magic}");
        let mut wrong = frame(&spirv(&["k"]));
        wrong.truncate(wrong.len() - 1);
        assert!(of_section("spir64", &wrong).is_err(), "cut short");
        let inside = of_section("spir64", &frame(b"text")).unwrap_err();
        assert_eq!(inside.to_string(), "damaged SYCL device image: it is neither SPIR-V nor code of an Intel GPU");
    }

    #[test]
    fn damage_is_an_error() {
        let text = |data: &[u8]| of_section("spir64", data).unwrap_err().to_string();
        let whole = spirv(&["kernel"]);
        assert_eq!(text(&whole[..whole.len() - 4]), "damaged SYCL device image: it is cut short");
        assert_eq!(text(&whole[..16]), "damaged SYCL device image: it is cut short");
        assert_eq!(text(&code(62)), "damaged SYCL device image: a file in it is for another machine than an Intel GPU");
        assert_eq!(text(&archive_of(&[("64.pvc", &code(62))])), text(&code(62)));
        let cut = archive_of(&[("64.pvc", &code(INTEL_GPU))]);
        assert_eq!(text(&cut[..cut.len() - 1]), "damaged SYCL device image: it is cut short");
        assert_eq!(text(b"text"), "damaged SYCL device image: it is neither SPIR-V nor code of an Intel GPU");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_the_end(edits in prop::collection::vec((0_usize..400, any::<u8>()), 0..12), cut in 0_usize..500) {
            let devices = archive_of(&[("64.12.60.7/", &code(INTEL_GPU))]);
            let mut bytes = [spirv(&["k"]), frame(&spirv(&["packed"])), devices, code(INTEL_GPU)].concat();
            for (at, value) in edits {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            bytes.truncate(cut);
            let _ = of_section("spir64", &bytes);
        }
    }
}
