//! Making a catalog entry and its names file from a wheel on disk.
//!
//! Only whoever renews the catalog runs this: it reads whole wheels. What it makes is a pure function of the wheels.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use flate2::read::DeflateDecoder;
use kiln_format::Version;
use kiln_object::elf;
use sha2::{Digest, Sha256};

use crate::names::{self, CodedSet};
use crate::toolchain::CxxLevel;
use crate::version_py::VersionPy;
use crate::zip::{Limits, Member, Method, TAIL, find_end, parse_directory};

/// The libraries that an extension may link with, in link order. Those of another backend follow when there is one.
pub(crate) const LIBRARIES: &[&str] = &["libc10.so", "libtorch.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"];

/// The first lines of the catalog.
const HEAD: &str = "\
# The torch wheels that Kiln knows. Written by `cargo xtask catalog`: each wheel was read whole and its sha256 compared
# with what the index says before `record_sha256` was taken from it.
";

/// What the catalog says of one wheel, and its names file.
#[derive(Clone, Debug)]
pub struct MadeRelease {
    /// Release, without a local part.
    pub version: Version,
    /// What the wheel is built for, such as `linux-x86_64`.
    pub platform: String,
    /// File name of the wheel.
    pub wheel: String,
    /// Size of the wheel in bytes.
    pub size: u64,
    /// Sha256 of the whole wheel, as lower-case hexadecimal text: to be compared with what the index says.
    pub sha256: String,
    /// Sha256 of its `RECORD`, as lower-case hexadecimal text.
    pub record_sha256: String,
    /// The CUDA release it was built with.
    pub cuda: Option<Version>,
    /// The language level that its umbrella headers want.
    pub cxx_level: CxxLevel,
    /// Each library that extensions may link with, and how many of its names are in the names file.
    pub libraries: Vec<(String, usize)>,
    /// Content of the names file.
    pub names_file: Vec<u8>,
}

impl MadeRelease {
    /// File name of the names file, for `catalog/names/`.
    pub fn names_file_name(&self) -> String {
        format!("torch-{}-{}.names", self.version, self.platform)
    }
}

/// Why no entry can be made of a wheel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no catalog entry can be made of `{wheel}`: {reason}")]
pub struct MakeError {
    /// File name of the wheel.
    pub wheel: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads a whole wheel of torch. Its large libraries are unpacked into `scratch`, one at a time, and removed again.
///
/// # Errors
/// When the file cannot be read, is no wheel of torch for Linux, or is damaged.
pub fn make_release(wheel: &Path, scratch: &Path) -> Result<MadeRelease, MakeError> {
    let file_name = wheel.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let failed = |reason: String| MakeError { wheel: file_name.clone(), reason };
    let platform = platform(&file_name).ok_or_else(|| failed("it is not for a known platform".to_owned()))?;
    let mut file = File::open(wheel).map_err(|cause| failed(cause.to_string()))?;
    let (size, sha256) = digest(&mut file).map_err(|cause| failed(cause.to_string()))?;
    let mut zip = Zip::open(file, size).map_err(&failed)?;

    let record_name = zip.only(|name| name.starts_with("torch-") && name.ends_with(".dist-info/RECORD")).map_err(&failed)?;
    let record = zip.read(&record_name).map_err(&failed)?;
    zip.record = String::from_utf8(record).map_err(|_| failed("its RECORD is not UTF-8 text".to_owned()))?;
    let version_py = zip.read("torch/version.py").map_err(&failed)?;
    let version_py = VersionPy::parse(&String::from_utf8_lossy(&version_py)).map_err(&failed)?;

    let mut sets = Vec::new();
    for library in LIBRARIES {
        let member = format!("torch/lib/{library}");
        if !zip.has(&member) {
            continue;
        }
        let mut unpacked = tempfile::NamedTempFile::new_in(scratch).map_err(|cause| failed(cause.to_string()))?;
        zip.unpack(&member, unpacked.as_file_mut()).map_err(&failed)?;
        let (soname, set) = coded_exports(unpacked.path()).map_err(|cause| failed(format!("`{member}`: {cause}")))?;
        sets.push((soname, set));
    }
    if sets.is_empty() {
        return Err(failed("it has no library to link with".to_owned()));
    }
    Ok(MadeRelease {
        cxx_level: CxxLevel::of_torch(&version_py.version),
        version: version_py.version,
        cuda: version_py.cuda,
        platform: platform.to_owned(),
        record_sha256: HEXLOWER.encode(&Sha256::digest(zip.record.as_bytes())),
        libraries: sets.iter().map(|(soname, set)| (soname.clone(), set.len())).collect(),
        names_file: names::encode(&sets),
        wheel: file_name.clone(),
        size,
        sha256,
    })
}

/// The catalog file with these releases, by ascending version, then platform.
pub fn render(releases: &[MadeRelease]) -> String {
    let mut releases: Vec<&MadeRelease> = releases.iter().collect();
    releases.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
    let entries = releases.iter().map(|release| {
        let cuda = release.cuda.as_ref().map(|cuda| format!("cuda = \"{cuda}\"\n")).unwrap_or_default();
        format!(
            "\n[[torch]]\nversion = \"{}\"\nplatform = \"{}\"\nwheel = \"{}\"\nsize = {}\nsha256 = \"{}\"\nrecord_sha256 = \"{}\"\n{cuda}cxx = \"{}\"\nnames = \"{}\"\n",
            release.version,
            release.platform,
            release.wheel,
            release.size,
            release.sha256,
            release.record_sha256,
            release.cxx_level,
            release.names_file_name(),
        )
    });
    HEAD.to_owned() + &entries.collect::<String>()
}

/// The names that an extension may take from a library, coded.
fn coded_exports(path: &Path) -> Result<(String, CodedSet), String> {
    let library = elf::dynamic_file(path).map_err(|cause| cause.to_string())?;
    let soname = library.soname.ok_or("it has no SONAME")?;
    let names = library.exports.iter().map(|export| export.name.as_str()).filter(|name| !names::is_of_runtime(name));
    Ok((soname, CodedSet::new(names)))
}

/// The platform of a wheel, from the last tag of its file name.
fn platform(file_name: &str) -> Option<&'static str> {
    let tag = file_name.strip_suffix(".whl")?.rsplit('-').next()?;
    match tag {
        _ if tag.starts_with("manylinux") && tag.ends_with("_x86_64") => Some("linux-x86_64"),
        _ if tag.starts_with("manylinux") && tag.ends_with("_aarch64") => Some("linux-aarch64"),
        _ => None,
    }
}

fn digest(file: &mut File) -> std::io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut size = 0;
    loop {
        let count = file.read(&mut buffer)?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { break };
        hasher.update(read);
        size += count as u64;
    }
    Ok((size, HEXLOWER.encode(&hasher.finalize())))
}

/// A wheel on disk. Members go through a fixed buffer: the largest has half a gigabyte.
struct Zip {
    file: File,
    members: Vec<Member>,
    /// Text of `RECORD`; until it is read, members are only checked by the zip's own checksum.
    record: String,
}

impl Zip {
    fn open(mut file: File, size: u64) -> Result<Self, String> {
        let tail_size = TAIL.min(size);
        let tail = read_at(&mut file, size - tail_size, tail_size)?;
        let end = find_end(&tail, size).map_err(|cause| cause.to_string())?;
        let directory = read_at(&mut file, end.directory_start, end.directory_size)?;
        let members = parse_directory(&directory, &end, &Limits::default()).map_err(|cause| cause.to_string())?;
        Ok(Self { file, members, record: String::new() })
    }

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    fn only(&self, wanted: impl Fn(&str) -> bool) -> Result<String, String> {
        let mut found = self.members.iter().filter(|member| wanted(&member.name));
        match (found.next(), found.next()) {
            (Some(member), None) => Ok(member.name.clone()),
            _ => Err("it does not have just one RECORD of torch".to_owned()),
        }
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        self.unpack(name, &mut content)?;
        Ok(content)
    }

    /// Writes a member to `target` and checks its size, checksum and line in `RECORD`.
    fn unpack(&mut self, name: &str, target: &mut dyn Write) -> Result<(), String> {
        let member = self.members.iter().find(|member| member.name == name).ok_or_else(|| format!("it has no `{name}`"))?.clone();
        // Local header: 26 bytes, then the lengths of name and extra field, then both.
        let header = read_at(&mut self.file, member.start, 30)?;
        let field =
            |at: usize| header.get(at..at + 2).map_or(0, |bytes| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        let start = member.start + 30 + field(26) + field(28);
        self.file.seek(SeekFrom::Start(start)).map_err(|cause| cause.to_string())?;
        let data = (&self.file).take(member.compressed);
        let mut reader: Box<dyn Read + '_> = match member.method {
            Method::Stored => Box::new(data),
            Method::Deflate => Box::new(DeflateDecoder::new(data)),
        };
        let mut check = Checked { target, crc: flate2::Crc::new(), sha256: Sha256::new(), size: 0 };
        std::io::copy(&mut reader, &mut check).map_err(|cause| format!("`{name}`: {cause}"))?;
        if (check.size, check.crc.sum()) != (member.size, member.crc32) {
            return Err(format!("`{name}` is damaged"));
        }
        let line = self.record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(",sha256="));
        if let Some(line) = line
            && line != format!("{},{}", BASE64URL_NOPAD.encode(&check.sha256.finalize()), check.size)
        {
            return Err(format!("`{name}` is not what RECORD says"));
        }
        Ok(())
    }
}

fn read_at(file: &mut File, start: u64, size: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).and_then(|_| file.take(size).read_to_end(&mut bytes)).map_err(|cause| cause.to_string())?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err("it is cut short".to_owned()) }
}

/// Passes bytes on and takes their checksums.
struct Checked<'t> {
    target: &'t mut dyn Write,
    crc: flate2::Crc,
    sha256: Sha256,
    size: u64,
}

impl Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.target.write_all(bytes)?;
        self.crc.update(bytes);
        self.sha256.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.target.flush()
    }
}
