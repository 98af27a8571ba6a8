//! A wheel that lies here whole.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use flate2::read::DeflateDecoder;
use sha2::{Digest, Sha256};

use super::MakeError;
use crate::index::normalized;
use crate::part::WheelPin;
use crate::terms::Terms;
use crate::wheel::is_record;
use crate::wheel::record::Record;
use crate::zip::{Limits, Member, Method, TAIL, find_end, parse_directory};

/// A wheel on disk, read whole, with its pin. Every member that is read is checked against `RECORD`.
#[derive(Debug)]
pub struct WholeWheel {
    pin: WheelPin,
    file: File,
    members: Vec<Member>,
    /// None until it is read.
    record: Option<Record>,
    /// Name of its `*.dist-info` directory, with the slash.
    info: String,
}

impl WholeWheel {
    /// Reads a whole wheel and computes its pin. What the file is called is part of the pin.
    ///
    /// # Errors
    /// When the file cannot be read, is no wheel, or is damaged.
    pub fn open(path: &Path) -> Result<Self, MakeError> {
        let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        Self::read_whole(path, &file_name).map_err(|reason| MakeError { wheel: file_name, reason })
    }

    fn read_whole(path: &Path, file_name: &str) -> Result<Self, String> {
        let mut file = File::open(path).map_err(|cause| cause.to_string())?;
        let (size, sha256) = digest(&mut file).map_err(|cause| cause.to_string())?;
        let tail_size = TAIL.min(size);
        let tail = read_at(&mut file, size - tail_size, tail_size)?;
        let end = find_end(&tail, size).map_err(|cause| cause.to_string())?;
        let directory = read_at(&mut file, end.directory_start, end.directory_size)?;
        let members = parse_directory(&directory, &end, &Limits::default()).map_err(|cause| cause.to_string())?;
        let mut records = members.iter().filter(|member| is_record(&member.name));
        let (Some(record), None) = (records.next(), records.next()) else { return Err("it does not have just one RECORD".to_owned()) };
        let record_name = record.name.clone();
        let info = record_name.strip_suffix("RECORD").unwrap_or_default().to_owned();
        let project = normalized(file_name.split('-').next().unwrap_or_default());
        let pin = WheelPin { project, file: file_name.to_owned(), size, sha256, record_sha256: String::new() };
        let mut wheel = Self { pin, file, members, record: None, info };
        // `RECORD` has no line for itself; the zip's own checksum is all there is for it.
        let record = wheel.member(&record_name)?;
        wheel.pin.record_sha256 = HEXLOWER.encode(&Sha256::digest(&record));
        let text = std::str::from_utf8(&record).map_err(|_| "its RECORD is not UTF-8 text".to_owned())?;
        wheel.record = Some(Record::parse(&record_name, text.as_bytes()).map_err(|reason| format!("its RECORD {reason}"))?);
        Ok(wheel)
    }

    /// Its pin.
    pub fn pin(&self) -> &WheelPin {
        &self.pin
    }

    /// The names of its members, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// Whether it has the member `name`.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// The text of its `METADATA`.
    ///
    /// # Errors
    /// When it has none or it is damaged.
    pub fn metadata(&mut self) -> Result<String, MakeError> {
        let name = format!("{}METADATA", self.info);
        Ok(String::from_utf8_lossy(&self.read(&name)?).into_owned())
    }

    /// Sees that its `METADATA` is that of the project and the version in its file name.
    pub(super) fn see_name(&mut self) -> Result<(), MakeError> {
        let metadata = self.metadata()?;
        let field = |name: &str| {
            let mut fields = metadata.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(':'));
            fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
        };
        // File names write `-` as `_`, and versions have several spellings.
        let plain = |version: &str| version.to_lowercase().replace(['-', '_'], ".");
        let version = self.pin.version().to_owned();
        match (field("Name"), field("Version")) {
            (Some(found), _) if normalized(&found) != self.pin.project => {
                Err(self.failed(format!("its METADATA is that of `{}`", found.escape_debug())))
            }
            (_, Some(found)) if plain(&found) != plain(&version) => {
                Err(self.failed(format!("its METADATA is that of version `{}`", found.escape_debug())))
            }
            _ => Ok(()),
        }
    }

    /// The terms that it states, without their texts.
    ///
    /// # Errors
    /// When its `METADATA` cannot be read.
    pub fn terms(&mut self) -> Result<Terms, MakeError> {
        let metadata = self.metadata()?;
        Ok(Terms::of_metadata(&self.pin, &metadata))
    }

    /// The content of a member.
    ///
    /// # Errors
    /// When there is no such member, or it is not what the zip's directory and `RECORD` say.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, MakeError> {
        self.member(name).map_err(|reason| self.failed(reason))
    }

    /// Unpacks a large member into a file in `scratch`, which is gone when the result is.
    ///
    /// # Errors
    /// As [`WholeWheel::read`]; when the file cannot be written.
    pub(super) fn unpack(&mut self, name: &str, scratch: &Path) -> Result<tempfile::NamedTempFile, MakeError> {
        let unpacked = tempfile::NamedTempFile::new_in(scratch);
        let mut unpacked = unpacked.map_err(|cause| self.failed(format!("no room in `{}`: {cause}", scratch.display())))?;
        self.copy(name, unpacked.as_file_mut()).map_err(|reason| self.failed(reason))?;
        Ok(unpacked)
    }

    /// The error for this wheel.
    pub(super) fn failed(&self, reason: String) -> MakeError {
        MakeError { wheel: self.pin.file.clone(), reason }
    }

    fn member(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        self.copy(name, &mut content)?;
        Ok(content)
    }

    /// Writes a member to `target` and checks its size, checksum and line in `RECORD`.
    fn copy(&mut self, name: &str, target: &mut dyn Write) -> Result<(), String> {
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
        // One byte more than there should be tells too much from enough.
        let mut reader = reader.as_mut().take(member.size.saturating_add(1));
        let mut check = Checked { target, crc: flate2::Crc::new(), sha256: Sha256::new(), size: 0 };
        std::io::copy(&mut reader, &mut check).map_err(|cause| format!("`{name}`: {cause}"))?;
        if (check.size, check.crc.sum()) != (member.size, member.crc32) {
            return Err(format!("`{name}` is damaged"));
        }
        // None while `RECORD` itself is read.
        let Some(record) = &self.record else { return Ok(()) };
        match record.entry(name) {
            Some(entry) if (entry.size, entry.sha256) == (check.size, check.sha256.finalize().into()) => Ok(()),
            Some(_) => Err(format!("`{name}` is not what RECORD says")),
            None => Err(format!("RECORD does not have `{name}`")),
        }
    }
}

/// Size and sha256 of a file.
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

fn read_at(file: &mut File, start: u64, size: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).and_then(|_| file.take(size).read_to_end(&mut bytes)).map_err(|cause| cause.to_string())?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err("it is cut short".to_owned()) }
}
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
