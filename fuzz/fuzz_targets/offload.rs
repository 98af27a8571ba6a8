//! Bundles of device code out of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| kiln_abi::fuzzing::offload(file));
