//! Wheels that are damaged or meant to do harm: refused with the member's name, before anything is kept.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{Bench, torch};
use kiln_test_server::{Fault, Member, Target, WheelBuilder, noise};

/// The message for a wheel that the catalog pins as it is.
fn refused(wheel: &WheelBuilder) -> String {
    let bench = Bench::with(wheel.build());
    let error = bench.fetch().unwrap_err();
    bench.assert_clean();
    bench.shown(&error).lines().next().unwrap().to_owned()
}

/// The message for a member beside the sound ones.
fn refused_member(member: Member) -> String {
    refused(&torch().member(member))
}

#[test]
fn names_that_lead_elsewhere() {
    let names: [&[u8]; 12] = [
        b"../evil.h",
        b"torch/include/../../../evil.h",
        b"/etc/evil.h",
        b"torch\\include\\evil.h",
        b"C:/evil.h",
        b"torch/include/e\0vil.h",
        b"torch/include//evil.h",
        b"torch/include/./evil.h",
        b"torch/include/e\x1b[2Jvil.h",
        b"torch/include/\xff\xfe.h",
        b"",
        b"/",
    ];
    let messages: Vec<String> = names.iter().map(|name| refused_member(Member::new(*name, "x"))).collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `../evil.h` leaves its directory
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/../../../evil.h` leaves its directory
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `/etc/evil.h` has an absolute path
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch\\include\\evil.h` has a backslash in its path
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `C:/evil.h` has a drive letter in its path
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/e\0vil.h` has a control character in its path
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include//evil.h` has an empty part in its path
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/./evil.h` leaves its directory
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/e\u{1b}[2Jvil.h` has a control character in its path
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/��.h` has a name that is not UTF-8
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `` has no name
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `/` has an absolute path
    ");
}

#[test]
fn links_and_devices() {
    let link = Member { mode: 0o120_777, ..Member::stored("torch/include/link.h", "/etc/passwd") };
    let device = Member { mode: 0o020_644, ..Member::stored("torch/include/device.h", "") };
    let dir = Member { mode: 0o100_644, ..Member::stored("torch/include/dir/", "") };
    insta::assert_snapshot!([link, device, dir].map(refused_member).join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/link.h` is a link
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/device.h` is neither a file nor a directory
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/dir/` is neither a file nor a directory
    ");
}

#[test]
fn members_that_occur_twice() {
    let twice = refused_member(Member::new("torch/include/d0/h0.h", "other"));
    let file_and_dir = refused_member(Member::new("torch/include/d0/h0.h/x.h", "other"));
    insta::assert_snapshot!(format!("{twice}\n{file_and_dir}"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/d0/h0.h` occurs twice
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/d0/h0.h` is a file and a directory
    ");
}

#[test]
fn members_that_are_one_where_case_does_not_count() {
    let twice = refused_member(Member::new("torch/include/D0/H0.h", "other"));
    insta::assert_snapshot!(twice, @"error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/d0/h0.h` differs from `torch/include/D0/H0.h` by letter case only");
}

#[test]
fn contents_that_are_not_what_the_directory_says() {
    let name = "torch/include/odd.h";
    let wrong_crc = Member { crc32: Some(0xdead_beef), ..Member::new(name, "content") };
    let short = Member { size: Some(3), ..Member::new(name, "content") };
    let long = Member { size: Some(30), ..Member::new(name, "content") };
    let renamed = Member { local_name: Some(b"torch/include/even.h".to_vec()), ..Member::new(name, "content") };
    let encrypted = Member { flags: 1, ..Member::new(name, "content") };
    let lzma = Member { method: 14, ..Member::new(name, "content") };
    let members = [
        wrong_crc,
        // `RECORD` agrees with the false sizes, so that it is the zip reader which has to notice.
        Member { recorded_as: Some(b"con".to_vec()), ..short },
        Member { recorded_as: Some(vec![b'x'; 30]), ..long },
        renamed,
        encrypted,
        lzma,
    ];
    insta::assert_snapshot!(members.map(refused_member).join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/odd.h` has CRC-32 fec530a9, but deadbeef in the directory
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/odd.h` has more than the 3 bytes that the directory says
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/odd.h` has 7 bytes, not the 30 that the directory says
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/odd.h` has another name in its own header
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/odd.h` is encrypted
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/odd.h` is compressed by method 14, which is not supported
    ");
}

#[test]
fn bombs() {
    let name = "torch/include/bomb.h";
    let impossible = Member { size: Some(1 << 30), ..Member::new(name, "content") };
    let four_gib = Member { size: Some(5 << 30), ..Member::new(name, noise(3, 5_500_000)) };
    // Bytes that really inflate to a thousand times as many, but are said to be few.
    let hidden = Member { size: Some(100), recorded_as: Some(vec![0; 100]), ..Member::new(name, vec![0; 8 << 20]) };
    let stored = Member { size: Some(9), ..Member::stored(name, "content") };
    insta::assert_snapshot!([impossible, four_gib, hidden, stored].map(refused_member).join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/bomb.h` cannot be [n] bytes out of 9
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/bomb.h` has [n] bytes, more than [n]
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/bomb.h` has more than the 100 bytes that the directory says
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/bomb.h` cannot be 9 bytes out of 7
    ");
    // More headers than any torch has, in all; none of them is fetched.
    let (mut wheel, mut record) = (WheelBuilder::new("torch", "2.13.0"), String::new());
    for index in 0..9 {
        let name = format!("torch/include/many{index}.h");
        record.push_str(&format!("{name},sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,{}\n", 64 << 20));
        wheel = wheel.member(Member { size: Some(64 << 20), ..Member::new(name, noise(index, 70_000)) });
    }
    insta::assert_snapshot!(refused(&wheel.record(record)), @"error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/many8.h` exceeds the [n] bytes that the selection may have");
}

#[test]
fn members_that_record_does_not_vouch_for() {
    let unlisted = refused_member(Member { recorded: false, ..Member::new("torch/include/unlisted.h", "x") });
    let other_size = refused_member(Member { recorded_as: Some(b"longer".to_vec()), ..Member::new("torch/include/size.h", "x") });
    let other_content = refused_member(Member { recorded_as: Some(b"y".to_vec()), ..Member::new("torch/include/content.h", "x") });
    let record = "torch/include/absent.h,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n";
    let absent = refused(&WheelBuilder::new("torch", "2.13.0").record(record));
    insta::assert_snapshot!([unlisted, other_size, other_content, absent].join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/unlisted.h` has no line with a sha256 in `torch-2.13.0.dist-info/RECORD`
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/size.h` has 1 bytes, but 6 in `torch-2.13.0.dist-info/RECORD`
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/content.h` has sha256 [sha256], which is not what `torch-2.13.0.dist-info/RECORD` says
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/absent.h` is in `torch-2.13.0.dist-info/RECORD` but not in the wheel
    ");
}

#[test]
fn records_that_are_not_right() {
    let missing = refused(&torch().without_record());
    let second = refused_member(Member::new("evil-1.dist-info/RECORD", ""));
    let damaged = refused(&torch().record("torch/version.py,sha256=short,3\n"));
    let binary = refused(&torch().record(vec![0xff, 0xfe]));
    insta::assert_snapshot!([missing, second, damaged, binary].join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: its `*.dist-info/RECORD` is missing
    error: `torch-2.13.0-py3-none-any.whl` is refused: its `torch-2.13.0.dist-info/RECORD` is not the only one
    error: `torch-2.13.0-py3-none-any.whl` is refused: its `torch-2.13.0.dist-info/RECORD` has a damaged sha256 in line 1
    error: `torch-2.13.0-py3-none-any.whl` is refused: its `torch-2.13.0.dist-info/RECORD` is not UTF-8
    ");
}

#[test]
fn another_record_than_the_pinned_one() {
    // Of the same length, so that only the digest tells.
    let wheel = |content: &str| torch().member(Member::stored("torch/include/x.h", content)).stored_record().build();
    let bench = Bench::with(wheel("good"));
    let evil = wheel("evil");
    assert_eq!(evil.bytes.len(), bench.wheel.bytes.len());
    bench.server.add_file("torch", &bench.wheel.file, evil.bytes, None);
    let error = bench.fetch().unwrap_err();
    bench.assert_clean();
    insta::assert_snapshot!(bench.shown(&error), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: its `torch-2.13.0.dist-info/RECORD` has sha256 [sha256], but [sha256] is pinned
    hint: the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept
    ");
}

#[test]
fn a_flipped_byte_anywhere_is_noticed_or_of_no_effect() {
    let bench = Bench::new();
    let len = bench.wheel.bytes.len() as u64;
    let header = bench.wheel.data_start("torch/include/d3/h3.h");
    let record = bench.wheel.data_start("torch-2.13.0.dist-info/RECORD");
    // In a member, in its local header, in RECORD, in the directory, in the end record.
    let places = [header + 5, header - 60, header - 3, record + 9, len - 20_000, len - 5_000, len - 100, len - 22, len - 12, len - 4];
    let mut messages = Vec::new();
    for place in places {
        bench.server.heal();
        bench.server.fault(Target::Files, Fault::Corrupt(place));
        match bench.fetch() {
            Err(error) => {
                bench.assert_clean();
                messages.push(bench.shown(&error).lines().next().unwrap().to_owned());
            }
            Ok(dir) => {
                bench.assert_tree(&dir);
                messages.push("the same tree".to_owned());
                std::fs::remove_dir_all(bench.cache().join("toolchains-v1/trees")).unwrap();
            }
        }
    }
    insta::assert_snapshot!(messages.join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/d3/h3.h` cannot be inflated
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/d2/h2.h` has CRC-32 eabf1b86, but 92edbfdc in the directory
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/d3/h3.h` has another name in its own header
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch-2.13.0.dist-info/RECORD` cannot be inflated
    error: `torch-2.13.0-py3-none-any.whl` is refused: its zip directory has something else where an entry should be
    error: `torch-2.13.0-py3-none-any.whl` is refused: member `torch/include/d3/h1130/h` has no line with a sha256 in `torch-2.13.0.dist-info/RECORD`
    the same tree
    error: `torch-2.13.0-py3-none-any.whl` is refused: it is no zip file, or its end is missing
    error: `torch-2.13.0-py3-none-any.whl` is refused: its zip directory is spread over several files
    error: `torch-2.13.0-py3-none-any.whl` is refused: its zip directory has something else where an entry should be
    ");
}

#[test]
fn flipped_bytes_all_over_a_small_wheel() {
    let bench = Bench::with(torch().build());
    let files = |bench: &Bench| {
        let dir = bench.fetch()?;
        let names = common::files_below(&dir);
        Ok::<_, kiln_toolchain::Error>(names.into_iter().map(|name| (std::fs::read(dir.join(&name)).unwrap(), name)).collect::<Vec<_>>())
    };
    let sound = files(&bench).unwrap();
    let len = bench.wheel.bytes.len() as u64;
    let headers = bench.wheel.data_start("torch/include/d0/h0.h");
    // Two hundred places in the headers and after the last library, where all that is read lies.
    let after = bench.wheel.data_start("torch/lib/libtorch_cpu.so") + 400_000;
    let places = (0..100).map(|index| headers + index * 83).chain((0..100).map(|index| len - 1 - index * (len - after) / 100));
    let mut refused = 0;
    for place in places {
        std::fs::remove_dir_all(bench.cache().join("toolchains-v1/trees")).unwrap();
        std::fs::create_dir_all(bench.cache().join("toolchains-v1/trees")).unwrap();
        bench.server.heal();
        bench.server.fault(Target::Files, Fault::Corrupt(place));
        match files(&bench) {
            Ok(found) => assert!(found == sound, "{place}"),
            Err(_) => {
                bench.assert_clean();
                refused += 1;
            }
        }
    }
    // The rest are bytes without meaning here: dates, versions, attributes of files that are not taken.
    assert!(refused > 120, "{refused}");
}

#[test]
fn files_that_are_no_zip_files() {
    let message = |bytes: Vec<u8>| {
        let mut wheel = torch().build();
        wheel.bytes = bytes;
        let bench = Bench::with(wheel);
        bench.server.add_file("torch", &bench.wheel.file, bench.wheel.bytes.clone(), None);
        let error = bench.fetch().unwrap_err();
        bench.assert_clean();
        bench.shown(&error).lines().next().unwrap().to_owned()
    };
    let sound = torch().build().bytes;
    let cut_off = sound[..sound.len() - 100].to_vec();
    let without_start = sound[1000..].to_vec();
    let mut many = sound.clone();
    let end = many.len() - 22;
    many[end + 8..end + 12].copy_from_slice(&[0xfe, 0xff, 0xfe, 0xff]);
    let messages = [message(b"<html>no</html>".repeat(10)), message(cut_off), message(without_start), message(many)];
    insta::assert_snapshot!(messages.join("\n"), @r"
    error: `torch-2.13.0-py3-none-any.whl` is refused: it is no zip file, or its end is missing
    error: `torch-2.13.0-py3-none-any.whl` is refused: it is no zip file, or its end is missing
    error: `torch-2.13.0-py3-none-any.whl` is refused: its zip directory is said to lie outside of the file
    error: `torch-2.13.0-py3-none-any.whl` is refused: its zip directory is cut off
    ");
}
