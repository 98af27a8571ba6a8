//! Any bytes as a `build.toml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kiln_format::fuzzing::build_toml(data));
