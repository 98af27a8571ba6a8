//! Large wheels, opened without most of their directory.
//!
//! The directory of torch's wheel has 1.2 MB, of which 0.95 MB are about headers that are fetched anyway and lie side by
//! side. So its two ends are read, `RECORD` says which names are missing between them, and if those are all wanted, the
//! members' own headers say the rest. Where anything is not as it is expected to be, the whole directory is read.

use std::collections::BTreeSet;

use super::runs::MAX_RUN;
use super::{Source, Wheel, read_record};
use crate::error::Error;
use crate::part::Members;
use crate::zip::{EndRecord, Limits, Member, TAIL, head_of_directory, members_between, put_together, tail_of_directory};

/// How much of a directory is read, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The size from which on a wheel is large.
    pub(crate) large: u64,
    /// The end of a large wheel, with the end record and the last entries.
    pub(crate) tail: u64,
    /// The first entries.
    pub(crate) head: u64,
    /// A directory of up to this size is read whole.
    pub(crate) whole: u64,
}

impl Default for Reading {
    /// In torch 2.11 to 2.15, 153 to 185 kB of entries come before those of the headers, and 81 to 112 kB after them.
    fn default() -> Self {
        Self { large: 64 << 20, tail: 160 << 10, head: 256 << 10, whole: 640 << 10 }
    }
}

impl Reading {
    /// How many of the last bytes of a wheel of `size` bytes are read first.
    pub(super) fn tail(&self, size: u64) -> u64 {
        if size >= self.large { self.tail.max(TAIL) } else { TAIL }.min(size)
    }
}

/// Opens a wheel whose last bytes are `tail`; none if its directory has to be read whole.
pub(super) fn open(
    source: &mut Source<'_>,
    end: &EndRecord,
    tail: &[u8],
    wanted: &Members,
    reading: &Reading,
) -> Result<Option<Wheel>, Error> {
    let (size, limits) = (source.pin().size, Limits::default());
    let directory_end = end.directory_start.saturating_add(end.directory_size);
    if size < reading.large || end.directory_size <= reading.whole.max(reading.head.saturating_add(reading.tail)) {
        return Ok(None);
    }
    let after_directory = usize::try_from(size.saturating_sub(directory_end)).unwrap_or(usize::MAX);
    let tail = tail.len().checked_sub(after_directory).and_then(|len| tail.get(..len)).unwrap_or_default();
    let Some(mut last) = tail_of_directory(tail, end, &limits) else { return Ok(None) };
    let head = source.keep(end.directory_start..end.directory_start.saturating_add(reading.head))?;
    let mut first = head_of_directory(&head, &limits);
    let Some(region) = region(&first, &last, wanted) else { return Ok(None) };

    let (record, dist_info) = read_record(source, &last)?;
    let known: BTreeSet<&str> = first.iter().chain(&last).map(|member| member.name.as_str()).collect();
    if record.names().any(|name| !known.contains(name) && !wanted.takes(name)) {
        return Ok(None);
    }
    let bytes = source.keep(region.clone())?;
    // A name that `RECORD` does not have is damage: the directory says whose it is.
    let recorded = |member: &Member| member.is_dir() || record.entry(&member.name).is_some();
    let between = members_between(&bytes, region.start, &limits).filter(|members| members.iter().all(recorded));
    let Some(between) = between else { return Ok(None) };
    first.retain(|member| member.start < region.start);
    last.retain(|member| member.start >= region.end);
    let members = first.into_iter().chain(between).chain(last).collect();
    Ok(put_together(members, end).map(|members| Wheel { members, record, dist_info }))
}

/// Where the wanted members are that lie between the entries that are known, with those at the end of `first` and at the
/// start of `last`.
fn region(first: &[Member], last: &[Member], wanted: &Members) -> Option<std::ops::Range<u64>> {
    let start = first.iter().rev().take_while(|member| wanted.takes(&member.name)).last()?.start;
    let end = last.iter().take_while(|member| wanted.takes(&member.name)).last().map_or(last.first()?.start, |member| member.end);
    (start < end && end - start <= MAX_RUN).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use kiln_graph::Interrupt;
    use kiln_test_server::{FixtureServer, WheelBuilder, noise};

    use super::*;
    use crate::http::{AgentOptions, Client, ClientOptions, Credentials, Pieces, RetryPolicy, Slowest, UreqTransport};
    use crate::wheel::Pin;

    /// Everything is large; the tail is never less than [`TAIL`].
    const SPARSE: Reading = Reading { large: 0, tail: 0, head: 4 << 10, whole: 0 };
    const WHOLE: Reading = Reading { large: u64::MAX, tail: 0, head: 0, whole: 0 };

    fn wanted() -> Members {
        let (dirs, files) = (vec!["torch/include/".to_owned()], vec!["torch/version.py".to_owned()]);
        Members { dirs, files, max_size: u64::MAX, ..Members::default() }
    }

    /// As in the real one, something before the headers and something after them; `between` lies among them.
    fn torch(between: Option<kiln_test_server::Member>) -> WheelBuilder {
        let mut wheel = WheelBuilder::new("torch", "2.13.0")
            .file("torch/version.py", "__version__ = '2.13.0'\n")
            .member(kiln_test_server::Member::stored("torch/lib/libc10.so", noise(1, 200_000)))
            .member(kiln_test_server::Member { mode: 0o040_755, ..kiln_test_server::Member::stored("torch/include/", "") });
        for index in 0..1000 {
            wheel =
                wheel.file(&format!("torch/include/{}/{index:04}.h", "/deep".repeat(12).trim_start_matches('/')), format!("// {index}\n"));
            if index == 200 {
                wheel = between.iter().cloned().fold(wheel, WheelBuilder::member);
            }
        }
        wheel.member(kiln_test_server::Member::stored("torch/zlib.so", noise(2, 200_000)))
    }

    /// Opens a wheel and takes out what is wanted, as text; and what was asked for.
    fn taken(bytes: Vec<u8>, wheel: &kiln_test_server::Wheel, reading: &Reading) -> (Result<Vec<String>, String>, usize, u64) {
        let server = FixtureServer::start().unwrap();
        server.add_file("torch", &wheel.file, bytes, None);
        let transport = UreqTransport::new(&AgentOptions::default()).unwrap();
        let options = ClientOptions {
            retry: RetryPolicy::default(),
            pieces: Pieces::default(),
            slowest: Slowest::default(),
            credentials: Credentials::default(),
            offline: false,
        };
        let client = Client::new(&transport, options, &|_| {}, Interrupt::new(), "torch".to_owned());
        let url = format!("{}/files/{}", server.url(), wheel.file).parse().unwrap();
        let size = wheel.bytes.len() as u64;
        let pin = Pin { file: &wheel.file, size, sha256: &wheel.sha256, record_sha256: &wheel.record_sha256 };
        let mut source = Source::new(&client, url, pin, "/nonexistent/copy".into());
        let result = Wheel::open(&mut source, &wanted(), reading).and_then(|wheel| {
            let mut files = Vec::new();
            wheel.extract(&mut source, &wanted(), &mut |file| {
                files.push(format!("{} {}", file.path, String::from_utf8_lossy(file.content)));
                Ok(())
            })?;
            Ok(files)
        });
        assert_eq!(server.log().sent_twice(), Vec::<String>::new());
        (result.map_err(|error| error.to_string()), server.log().entries.len(), server.log().bytes())
    }

    #[test]
    fn the_middle_of_a_directory_is_not_read() {
        let wheel = torch(None).build();
        let (whole, _, whole_bytes) = taken(wheel.bytes.clone(), &wheel, &WHOLE);
        let (sparse, requests, bytes) = taken(wheel.bytes.clone(), &wheel, &SPARSE);
        assert_eq!(whole.as_ref().unwrap().len(), 1001);
        assert_eq!(sparse, whole);
        // Tail, head, `RECORD`, headers, version.py.
        assert_eq!(requests, 5);
        assert!(bytes + 30_000 < whole_bytes, "{bytes} {whole_bytes}");
    }

    #[test]
    fn a_directory_that_is_not_as_expected_is_read_whole() {
        let other = kiln_test_server::Member::new("torch/share/x", "x");
        let streamed = kiln_test_server::Member { flags: 8, ..kiln_test_server::Member::new("torch/include/y.h", "y") };
        for (between, files) in [(other, 1001), (streamed, 1002)] {
            let wheel = torch(Some(between)).build();
            let (whole, ..) = taken(wheel.bytes.clone(), &wheel, &WHOLE);
            let (sparse, ..) = taken(wheel.bytes.clone(), &wheel, &SPARSE);
            assert_eq!(whole.as_ref().unwrap().len(), files);
            assert_eq!(sparse, whole);
        }
    }

    #[test]
    fn damage_between_the_ends_is_told_as_ever() {
        let wheel = torch(None).build();
        let name = wheel.places[300].0.clone();
        let (_, start, data, end) = wheel.places[300];
        // The signature, a size, a letter of the name, the bytes.
        for at in [start, start + 18, start + 40, data, end - 1] {
            let mut bytes = wheel.bytes.clone();
            bytes[usize::try_from(at).unwrap()] ^= 1;
            let (whole, ..) = taken(bytes.clone(), &wheel, &WHOLE);
            let (sparse, ..) = taken(bytes, &wheel, &SPARSE);
            assert_eq!(sparse, whole, "{at}");
            // Sizes beside those of the directory are not looked at.
            assert!(whole.is_err_and(|message| message.contains(&name)) || at == start + 18, "{at}");
        }
    }
}
