//! Device code in linked files, with and without what names its place.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::path::Path;

use common::gxx;
use kiln_object::fatbin::{Fatbin, of_elf};

/// A fatbin with one cubin for each architecture, without code.
fn fatbin(archs: &[u32]) -> Vec<u8> {
    let mut images = Vec::new();
    for arch in archs {
        let mut image = [0; 64];
        image[0] = 2;
        image[4] = 64;
        image[28..32].copy_from_slice(&arch.to_le_bytes());
        images.extend(image);
    }
    let mut bytes = 0xba55_ed50_u32.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend((images.len() as u64).to_le_bytes());
    bytes.extend(images);
    bytes
}

/// A shared library with these bytes in a section.
fn library(dir: &Path, section: &str, bytes: &[u8]) -> Vec<u8> {
    let list: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    let source = format!(
        "__attribute__((section(\"{section}\"), used, aligned(8))) extern const unsigned char code[] = {{{}}};\n\
         int is_fatbin(const unsigned *magic) {{ return *magic == 0xba55ed50u; }}",
        list.join(",")
    );
    gxx(dir, "a.so", &["-shared", "-fPIC", "-O1"], &source)
}

/// Place, and number and index of the names.
fn without_section_headers(mut file: Vec<u8>) -> Vec<u8> {
    file[0x28..0x30].fill(0);
    file[0x3c..0x40].fill(0);
    file
}

fn archs(found: &[Fatbin]) -> Vec<Vec<u32>> {
    found.iter().map(|fatbin| fatbin.images.iter().map(|image| image.arch).collect()).collect()
}

#[test]
fn device_code_is_seen_whatever_names_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let code = [fatbin(&[80, 90]), vec![0; 24], fatbin(&[100])].concat();
    let expected = vec![vec![80, 90], vec![100]];
    let named = library(dir.path(), ".nv_fatbin", &code);
    assert_eq!(archs(&of_elf(&named).unwrap()), expected);
    assert_eq!(archs(&of_elf(&without_section_headers(named)).unwrap()), expected);
    let renamed = library(dir.path(), "other", &code);
    assert_eq!(archs(&of_elf(&renamed).unwrap()), expected);
}

#[test]
fn where_there_is_none_none_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    // The magic number alone, which code that reads fatbins has as well.
    let plain = library(dir.path(), "other", &[0x50, 0xed, 0x55, 0xba, 7, 0, 16, 0, 0x50, 0xed, 0x55]);
    assert_eq!(of_elf(&plain).unwrap(), []);
    assert_eq!(of_elf(&without_section_headers(plain)).unwrap(), []);
}

/// What cannot be read is no pass.
#[test]
fn damage_is_told_without_section_headers_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut code = fatbin(&[80, 90]);
    code[20] = 3;
    let library = without_section_headers(library(dir.path(), ".nv_fatbin", &code));
    assert_eq!(of_elf(&library).unwrap_err().to_string(), "damaged fatbin: the header of an image is too short");
}

/// Segments without number that all show the whole file: it is searched once.
#[test]
fn overlapping_segments_are_searched_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = without_section_headers(library(dir.path(), "other", &fatbin(&[80])));
    let size = file.len();
    let mut segment = [0; 56];
    segment[0] = 1;
    segment[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
    file[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
    file[0x38..0x3a].copy_from_slice(&60_000_u16.to_le_bytes());
    file.extend(segment.repeat(60_000));
    assert_eq!(archs(&of_elf(&file).unwrap()), [vec![80]]);
}
