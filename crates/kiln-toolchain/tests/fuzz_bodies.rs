//! The fuzz target's body on wheels, sound and damaged.

use kiln_test_server::{Member, WheelBuilder};
use kiln_toolchain::fuzzing::wheel_directory;
use kiln_toolchain::zip::{EndRecord, Limits, find_end, parse_directory};
use proptest::prelude::*;

fn wheel() -> Vec<u8> {
    let wheel = WheelBuilder::new("torch", "2.13.0")
        .file("torch/include/a.h", "#pragma once\n".repeat(20))
        .member(Member { mode: 0o040_755, ..Member::stored("torch/include/d/", "") })
        .member(Member::stored("torch/include/d/b.h", "#pragma once\n"));
    wheel.build().bytes
}

#[test]
fn a_sound_wheel_is_accepted() {
    let file = wheel();
    let end = find_end(&file, file.len() as u64).unwrap();
    assert_eq!(end.members, 4);
    let directory = &file[usize::try_from(end.directory_start).unwrap()..][..usize::try_from(end.directory_size).unwrap()];
    let members = parse_directory(directory, &end, &Limits::default()).unwrap();
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["torch/include/a.h", "torch/include/d/", "torch/include/d/b.h", "torch-2.13.0.dist-info/RECORD"]);
    wheel_directory(&file);
}

#[test]
fn a_comment_at_the_end_and_zip64_records_are_understood() {
    let file = wheel();
    let plain = find_end(&file, file.len() as u64).unwrap();
    let mut commented = file.clone();
    let len = commented.len();
    commented[len - 2..].copy_from_slice(&5_u16.to_le_bytes());
    commented.extend_from_slice(b"hello");
    assert_eq!(find_end(&commented, commented.len() as u64).unwrap(), plain);

    let (body, end) = file.split_at(file.len() - 22);
    let mut zip64 = body.to_vec();
    zip64.extend_from_slice(b"PK\x06\x06");
    zip64.extend_from_slice(&44_u64.to_le_bytes());
    zip64.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [plain.members, plain.members, plain.directory_size, plain.directory_start] {
        zip64.extend_from_slice(&number.to_le_bytes());
    }
    zip64.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    zip64.extend_from_slice(&(body.len() as u64).to_le_bytes());
    zip64.extend_from_slice(&1_u32.to_le_bytes());
    zip64.extend_from_slice(&end[..8]);
    zip64.extend_from_slice(&[0xff; 12]);
    zip64.extend_from_slice(&[0, 0]);
    assert_eq!(find_end(&zip64, zip64.len() as u64).unwrap(), plain);
    wheel_directory(&zip64);
    // Only the tail, as the wheel reader has it.
    let tail = &zip64[zip64.len() - 100..];
    assert_eq!(find_end(tail, zip64.len() as u64).unwrap(), plain);
}

#[test]
fn overlapping_members_are_refused() {
    let file = wheel();
    let end = find_end(&file, file.len() as u64).unwrap();
    let mut directory = file[usize::try_from(end.directory_start).unwrap()..][..usize::try_from(end.directory_size).unwrap()].to_vec();
    // The second entry is moved onto the first one.
    let second = 46 + "torch/include/a.h".len();
    directory[second + 42..second + 46].copy_from_slice(&4_u32.to_le_bytes());
    let refused = parse_directory(&directory, &end, &Limits::default()).unwrap_err();
    assert_eq!(refused.to_string(), "member `torch/include/a.h` overlaps what comes after it");
    let more = EndRecord { members: 5, ..end };
    assert_eq!(parse_directory(&directory, &more, &Limits::default()).unwrap_err().to_string(), "its zip directory is cut off");
    let few = Limits { members: 3, ..Limits::default() };
    assert_eq!(parse_directory(&directory, &end, &few).unwrap_err().to_string(), "its zip directory has 4 entries, more than 3");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(file in proptest::collection::vec(any::<u8>(), 0..400)) {
        wheel_directory(&file);
    }

    #[test]
    fn damaged_wheels(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6), cut in any::<proptest::sample::Index>(), cuts in any::<bool>()) {
        let mut file = wheel();
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        if cuts {
            let at = cut.index(file.len());
            file.drain(..at);
        }
        wheel_directory(&file);
    }
}
