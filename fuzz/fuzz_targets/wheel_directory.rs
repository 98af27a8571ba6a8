//! Wheel files out of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| kiln_toolchain::fuzzing::wheel_directory(file));
