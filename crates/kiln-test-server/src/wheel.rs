//! Small wheels for tests, sound or flawed on request.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;

/// A member as it is written, with everything that a sound zip writer would get right itself.
#[derive(Clone, Debug)]
pub struct Member {
    /// Name in the directory.
    pub name: Vec<u8>,
    /// Name in the local header; that of the directory if none.
    pub local_name: Option<Vec<u8>>,
    /// Content.
    pub content: Vec<u8>,
    /// 0 for stored, 8 for deflate; other numbers are written as they are, with stored bytes.
    pub method: u16,
    /// General purpose flags.
    pub flags: u16,
    /// Unix mode.
    pub mode: u32,
    /// CRC-32 in place of the right one.
    pub crc32: Option<u32>,
    /// Size in place of the right one. From 4 GiB on it is written as zip64.
    pub size: Option<u64>,
    /// Whether `RECORD` has a line for it.
    pub recorded: bool,
    /// The content that `RECORD` has a line for; its own if none.
    pub recorded_as: Option<Vec<u8>>,
}

impl Member {
    /// A sound, deflated file.
    pub fn new(name: impl Into<Vec<u8>>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            local_name: None,
            content: content.into(),
            method: 8,
            flags: 0,
            mode: 0o100_644,
            crc32: None,
            size: None,
            recorded: true,
            recorded_as: None,
        }
    }

    /// A sound, stored file.
    pub fn stored(name: impl Into<Vec<u8>>, content: impl Into<Vec<u8>>) -> Self {
        Self { method: 0, ..Self::new(name, content) }
    }

    /// The bytes after the local header.
    fn packed(&self) -> Vec<u8> {
        if self.method != 8 {
            return self.content.clone();
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail.
        let _ = encoder.write_all(&self.content);
        encoder.finish().unwrap_or_default()
    }
}

/// A finished wheel.
#[derive(Clone, Debug)]
pub struct Wheel {
    /// File name.
    pub file: String,
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Its sha256, as lower-case hexadecimal text.
    pub sha256: String,
    /// Sha256 of its `RECORD`, as lower-case hexadecimal text.
    pub record_sha256: String,
    /// For each member, where its local header begins, where the bytes after it begin and where they end.
    pub places: Vec<(String, u64, u64, u64)>,
}

impl Wheel {
    /// Where the packed bytes of a member begin.
    ///
    /// # Panics
    /// When there is no such member.
    #[expect(clippy::panic, reason = "a test that names a member which is not there is wrong")]
    pub fn data_start(&self, member: &str) -> u64 {
        match self.places.iter().find(|(name, ..)| name == member) {
            Some((_, _, start, _)) => *start,
            None => panic!("the wheel has no member `{member}`"),
        }
    }
}

/// Writes wheels.
#[derive(Clone, Debug)]
pub struct WheelBuilder {
    project: String,
    version: String,
    members: Vec<Member>,
    record: Option<Vec<u8>>,
    with_record: bool,
    stored_record: bool,
}

impl WheelBuilder {
    /// An empty wheel.
    pub fn new(project: &str, version: &str) -> Self {
        Self {
            project: project.to_owned(),
            version: version.to_owned(),
            members: Vec::new(),
            record: None,
            with_record: true,
            stored_record: false,
        }
    }

    /// Adds a sound, deflated file.
    #[must_use]
    pub fn file(self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.member(Member::new(name, content))
    }

    /// Adds a member.
    #[must_use]
    pub fn member(mut self, member: Member) -> Self {
        self.members.push(member);
        self
    }

    /// Takes this for `RECORD` in place of the right one.
    #[must_use]
    pub fn record(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.record = Some(content.into());
        self
    }

    /// Leaves `RECORD` out.
    #[must_use]
    pub fn without_record(mut self) -> Self {
        self.with_record = false;
        self
    }

    /// Stores `RECORD` instead of deflating it, so that wheels of equal lengths can be made.
    #[must_use]
    pub fn stored_record(mut self) -> Self {
        self.stored_record = true;
        self
    }

    /// Writes the wheel.
    pub fn build(&self) -> Wheel {
        let name = format!("{}-{}.dist-info/RECORD", self.project, self.version);
        let record = self.record.clone().unwrap_or_else(|| self.right_record(&name));
        let mut members = self.members.clone();
        if self.with_record {
            let method = if self.stored_record { 0 } else { 8 };
            members.push(Member { method, ..Member::new(name, record.clone()) });
        }
        let (bytes, places) = zip(&members);
        Wheel {
            file: format!("{}-{}-py3-none-any.whl", self.project, self.version),
            sha256: HEXLOWER.encode(&Sha256::digest(&bytes)),
            record_sha256: HEXLOWER.encode(&Sha256::digest(&record)),
            bytes,
            places,
        }
    }

    /// The `RECORD` of the members.
    fn right_record(&self, name: &str) -> Vec<u8> {
        let mut record = Vec::new();
        for member in self.members.iter().filter(|member| member.recorded && !member.name.ends_with(b"/")) {
            let content = member.recorded_as.as_ref().unwrap_or(&member.content);
            record.extend_from_slice(&member.name);
            record.extend(format!(",sha256={},{}\n", BASE64URL_NOPAD.encode(&Sha256::digest(content)), content.len()).bytes());
        }
        record.extend(format!("{name},,\n").bytes());
        record
    }
}

/// Name, start of the header, start and end of the bytes of each member.
type Places = Vec<(String, u64, u64, u64)>;

/// Writes a zip file.
fn zip(members: &[Member]) -> (Vec<u8>, Places) {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    let mut places = Vec::new();
    for member in members {
        let start = bytes.len() as u64;
        let packed = member.packed();
        let mut crc = flate2::Crc::new();
        crc.update(&member.content);
        let crc32 = member.crc32.unwrap_or(crc.sum());
        let size = member.size.unwrap_or(member.content.len() as u64);
        let local_name = member.local_name.as_ref().unwrap_or(&member.name);
        let narrow = u32::try_from(size).unwrap_or(u32::MAX);
        let extra: Vec<u8> = if narrow == u32::MAX { [&[1, 0, 8, 0][..], &size.to_le_bytes()].concat() } else { Vec::new() };
        let common = [
            &20_u16.to_le_bytes()[..],
            &member.flags.to_le_bytes(),
            &member.method.to_le_bytes(),
            &[0; 4],
            &crc32.to_le_bytes(),
            &short(packed.len()).to_le_bytes(),
            &narrow.to_le_bytes(),
        ]
        .concat();
        bytes.extend_from_slice(b"PK\x03\x04");
        bytes.extend_from_slice(&common);
        bytes.extend_from_slice(&tiny(local_name.len()).to_le_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(local_name);
        let data = bytes.len() as u64;
        bytes.extend_from_slice(&packed);
        places.push((String::from_utf8_lossy(&member.name).into_owned(), start, data, bytes.len() as u64));
        directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&tiny(member.name.len()).to_le_bytes());
        directory.extend_from_slice(&tiny(extra.len()).to_le_bytes());
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&(member.mode << 16).to_le_bytes());
        directory.extend_from_slice(&u32::try_from(start).unwrap_or(u32::MAX).to_le_bytes());
        directory.extend_from_slice(&member.name);
        directory.extend_from_slice(&extra);
    }
    let start = short(bytes.len());
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    bytes.extend_from_slice(&tiny(members.len()).to_le_bytes());
    bytes.extend_from_slice(&tiny(members.len()).to_le_bytes());
    bytes.extend_from_slice(&short(directory.len()).to_le_bytes());
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    (bytes, places)
}

/// A length in 32 bits.
fn short(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// A length in 16 bits.
fn tiny(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// Bytes that cannot be deflated, the same for the same seed.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len.next_multiple_of(32));
    let mut counter = 0_u64;
    while bytes.len() < len {
        bytes.extend_from_slice(&Sha256::digest([seed.to_le_bytes(), counter.to_le_bytes()].concat()));
        counter += 1;
    }
    bytes.truncate(len);
    bytes
}
