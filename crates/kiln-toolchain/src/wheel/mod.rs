//! Wheels, read without being installed or fetched whole.

pub(crate) mod record;
mod runs;
mod source;
mod sparse;
mod whole;

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

pub(crate) use self::source::{Pin, Source};
pub(crate) use self::sparse::Reading;
pub(crate) use self::whole::fetch_whole;

use self::record::Record;
use self::runs::runs;
use crate::error::Error;
use crate::part::{Members, WheelPin};
use crate::terms::Terms;
use crate::zip::{EndRecord, Limits, Member, find_end, parse_directory};

/// `RECORD` of the largest known wheels has half a megabyte.
const MAX_RECORD: u64 = 64 << 20;

/// Bytes of the terms, inflated, at most: those of CUDA have 60 kB.
const MAX_TERMS: u64 = 16 << 20;

/// License texts with their paths below the `.dist-info` directory, sorted.
pub(crate) type LicenseTexts = Vec<(String, Vec<u8>)>;

/// A file out of a wheel, verified.
pub(crate) struct Extracted<'a> {
    /// Its path in the wheel.
    pub(crate) path: &'a str,
    /// Its content.
    pub(crate) content: &'a [u8],
    /// Sha256 of the content.
    pub(crate) sha256: [u8; 32],
    /// Whether it is a program.
    pub(crate) program: bool,
}

/// A wheel whose directory and `RECORD` were read and verified.
pub(crate) struct Wheel {
    members: Vec<Member>,
    record: Record,
    /// The directory of `RECORD`, with its slash.
    dist_info: String,
}

impl Wheel {
    /// Reads the directory and `RECORD` of the wheel behind `source`, or of a large one as much of them as it takes to find
    /// the members that are `wanted`.
    pub(crate) fn open(source: &mut Source<'_>, wanted: &Members, reading: &Reading) -> Result<Self, Error> {
        let (tail, end) = read_end(source, reading)?;
        if let Some(wheel) = sparse::open(source, &end, &tail, wanted, reading)? {
            return Ok(wheel);
        }
        let members = read_directory(source, &end)?;
        let (record, dist_info) = read_record(source, &members)?;
        Ok(Self { members, record, dist_info })
    }

    /// The terms under which the wheel comes, and its license texts by path in the wheel. They are verified as all members are;
    /// a wheel that has none states none.
    pub(crate) fn terms(&self, source: &mut Source<'_>, pin: &WheelPin) -> Result<(Terms, LicenseTexts), Error> {
        let paths = self.members.iter().filter(|member| !member.is_dir() && is_terms(&member.name, &self.dist_info));
        let files = paths.map(|member| member.name.clone()).collect();
        let selection = Members { files, max_size: MAX_TERMS, ..Members::default() };
        let (mut terms, mut texts) = (Terms::unknown(pin), Vec::new());
        self.extract(source, &selection, &mut |file| {
            let name = file.path.strip_prefix(&self.dist_info).unwrap_or(file.path);
            if name == METADATA {
                terms.license = Terms::of_metadata(pin, &String::from_utf8_lossy(file.content)).license;
            } else {
                texts.push((name.to_owned(), file.content.to_vec()));
            }
            Ok(())
        })?;
        texts.sort();
        Ok((terms, texts))
    }

    /// Fetches the selected members in as few requests as their places allow, verifies each and hands it to `sink`, in
    /// the order in which they lie in the file.
    pub(crate) fn extract(
        &self,
        source: &mut Source<'_>,
        selection: &Members,
        sink: &mut dyn FnMut(Extracted<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let file = source.pin().file;
        let selected: Vec<&Member> = self.members.iter().filter(|member| !member.is_dir() && selection.takes(&member.name)).collect();
        self.check(file, &selected, selection)?;
        for run in runs(&selected) {
            let bytes = source.read(run.range.clone())?;
            for member in run.members {
                let extent = member.start.checked_sub(run.range.start).zip(member.end.checked_sub(run.range.start));
                let extent = extent.and_then(|(start, end)| bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?));
                let content = member.extract(extent.unwrap_or_default()).map_err(|cause| Error::zip(file, cause))?;
                let sha256: [u8; 32] = Sha256::digest(&content).into();
                if self.record.entry(&member.name).is_none_or(|entry| entry.sha256 != sha256) {
                    let reason = format!("has sha256 {}, which is not what `{}` says", HEXLOWER.encode(&sha256), self.record.name());
                    return Err(Error::Member { file: file.to_owned(), member: member.name.clone(), reason });
                }
                sink(Extracted { path: &member.name, content: &content, sha256, program: selection.is_program(&member.name) })?;
            }
        }
        Ok(())
    }

    /// Compares the selected members with `RECORD`, before any of them is fetched: the directory is not pinned, `RECORD` is.
    fn check(&self, file: &str, selected: &[&Member], selection: &Members) -> Result<(), Error> {
        let refuse = |member: &str, reason: String| Err(Error::Member { file: file.to_owned(), member: member.to_owned(), reason });
        let mut total: u64 = 0;
        for member in selected {
            let Some(entry) = self.record.entry(&member.name) else {
                return refuse(&member.name, format!("has no line with a sha256 in `{}`", self.record.name()));
            };
            if entry.size != member.size {
                return refuse(&member.name, format!("has {} bytes, but {} in `{}`", member.size, entry.size, self.record.name()));
            }
            total = total.saturating_add(member.size);
            if total > selection.max_size {
                return refuse(&member.name, format!("exceeds the {} bytes that the selection may have", selection.max_size));
            }
        }
        let present: BTreeSet<&str> = selected.iter().map(|member| member.name.as_str()).collect();
        if let Some(missing) = self.record.names().find(|name| selection.takes(name) && !present.contains(name)) {
            return refuse(missing, format!("is in `{}` but not in the wheel", self.record.name()));
        }
        let mut folded: BTreeMap<String, &str> = BTreeMap::new();
        for name in &present {
            if let Some(other) = folded.insert(name.to_lowercase(), name) {
                return refuse(name, format!("differs from `{other}` by letter case only"));
            }
        }
        match selection.files.iter().find(|name| !present.contains(name.as_str())) {
            Some(missing) => refuse(missing, "is missing".to_owned()),
            None => Ok(()),
        }
    }
}

/// Name of the file that says what a wheel is, in its `.dist-info` directory.
const METADATA: &str = "METADATA";

/// Whether a member is `METADATA` or a license text of the project itself: in `licenses/` (PEP 639) or beside `METADATA`. Those of
/// what it bundles, in directories below, are listed in `METADATA`.
fn is_terms(member: &str, dist_info: &str) -> bool {
    let Some(name) = member.strip_prefix(dist_info) else { return false };
    let upper = name.to_ascii_uppercase();
    let called = || ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| upper.starts_with(word));
    match name.strip_prefix("licenses/") {
        Some(text) => !text.contains('/'),
        None => name == METADATA || (!name.contains('/') && called()),
    }
}

/// Whether a member is a `RECORD`.
pub(crate) fn is_record(name: &str) -> bool {
    name.strip_suffix(".dist-info/RECORD").is_some_and(|project| !project.is_empty() && !project.contains('/'))
}

/// Reads the end of a wheel, which says where its directory is.
fn read_end(source: &mut Source<'_>, reading: &Reading) -> Result<(Vec<u8>, EndRecord), Error> {
    let (file, size) = (source.pin().file, source.pin().size);
    let tail = source.read_tail(reading.tail(size))?;
    let end = find_end(&tail, size).map_err(|cause| Error::zip(file, cause))?;
    let most = Limits::default().directory;
    if end.directory_size > most {
        let reason = format!("its zip directory has {} bytes, more than {most}", end.directory_size);
        return Err(Error::WrongWheel { file: file.to_owned(), url: source.shown(), reason });
    }
    Ok((tail, end))
}

/// Reads the directory of a wheel.
fn read_directory(source: &mut Source<'_>, end: &EndRecord) -> Result<Vec<Member>, Error> {
    let (file, size) = (source.pin().file, source.pin().size);
    let directory = source.keep(end.directory_start..size)?;
    let directory = usize::try_from(end.directory_size).ok().and_then(|len| directory.get(..len)).unwrap_or_default();
    parse_directory(directory, end, &Limits::default()).map_err(|cause| Error::zip(file, cause))
}

/// Reads the `RECORD` of a wheel that nothing pins: what it says is what its index says.
pub(crate) fn read_unpinned_record(source: &mut Source<'_>) -> Result<Vec<u8>, Error> {
    let (_, end) = read_end(source, &Reading::default())?;
    let members = read_directory(source, &end)?;
    Ok(fetch_record(source, &members)?.1)
}

/// Fetches `RECORD`, compares it with its pin and reads it; gives the directory that it lies in too. The terms beside it come along.
fn read_record(source: &mut Source<'_>, members: &[Member]) -> Result<(Record, String), Error> {
    let (file, pin) = (source.pin().file, source.pin().record_sha256);
    let refuse = |record: &str, reason: String| Error::Record { file: file.to_owned(), record: record.to_owned(), reason };
    let (member, content) = fetch_record(source, members)?;
    let dist_info = member.name.strip_suffix("RECORD").unwrap_or_default().to_owned();
    let sha256 = HEXLOWER.encode(&Sha256::digest(&content));
    if sha256 != pin {
        return Err(refuse(&member.name, format!("has sha256 {sha256}, but {pin} is pinned")));
    }
    Ok((Record::parse(&member.name, &content).map_err(|reason| refuse(&member.name, reason))?, dist_info))
}

/// Fetches `RECORD`, and with it the terms beside it, for later.
fn fetch_record<'m>(source: &mut Source<'_>, members: &'m [Member]) -> Result<(&'m Member, Vec<u8>), Error> {
    let file = source.pin().file;
    let refuse = |record: &str, reason: String| Error::Record { file: file.to_owned(), record: record.to_owned(), reason };
    let mut found = members.iter().filter(|member| is_record(&member.name));
    let member = match (found.next(), found.next()) {
        (Some(member), None) => member,
        (None, _) => return Err(refuse("*.dist-info/RECORD", "is missing".to_owned())),
        (Some(_), Some(second)) => return Err(refuse(&second.name, "is not the only one".to_owned())),
    };
    if member.size > MAX_RECORD {
        return Err(refuse(&member.name, format!("has {} bytes, more than {MAX_RECORD}", member.size)));
    }
    let dist_info = member.name.strip_suffix("RECORD").unwrap_or_default();
    let wanted: Vec<&Member> = members.iter().filter(|other| *other == member || is_terms(&other.name, dist_info)).collect();
    if let Some(run) = runs(&wanted).into_iter().find(|run| run.members.contains(&member)) {
        source.keep(run.range)?;
    }
    let extent = source.read(member.start..member.end)?;
    Ok((member, member.extract(&extent).map_err(|cause| Error::zip(file, cause))?))
}
