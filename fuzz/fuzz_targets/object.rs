//! Shared objects and static libraries out of any bytes, through the checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| kiln_abi::fuzzing::object(file));
