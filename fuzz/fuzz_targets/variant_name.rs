//! Any bytes as the name of a variant's directory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kiln_format::fuzzing::variant_name(data));
