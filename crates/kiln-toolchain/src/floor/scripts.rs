//! Linker scripts: text files that a linker reads in place of a library.
//!
//! Names are bare, so that the directory may lie anywhere: linkers look for them where they look for libraries. Two orders matter.
//! Where a name is in several libraries (the threads' are in libc and in libpthread), libc comes first. And stubs come again behind
//! the archives: an earlier one that nothing needed is dropped, and what the archives need would stay without a version.

use kiln_object::elf::Machine;

/// The archive of shims.
pub(super) const SHIMS: &str = "libkiln_shims.a";
/// The archive of what the host's C++ library has beyond the floor's.
pub(super) const NONSHARED: &str = "libstdc++_nonshared.a";

/// The scripts with their names. `nonshared`: whether that archive is there.
pub(super) fn scripts(machine: Machine, nonshared: bool) -> Vec<(&'static str, String)> {
    let loader = if machine == Machine::AARCH64 { "ld-linux-aarch64.so.1" } else { "ld-linux-x86-64.so.2" };
    let rest = if nonshared { format!(" {NONSHARED}") } else { String::new() };
    let plain = |soname: &str| format!("GROUP ( AS_NEEDED ( {soname} ) )\n");
    vec![
        ("libstdc++.so", format!("GROUP ( AS_NEEDED ( libstdc++.so.6 ) {SHIMS}{rest} AS_NEEDED ( libstdc++.so.6 ) )\n")),
        ("libgcc_s.so", "GROUP ( AS_NEEDED ( libgcc_s.so.1 ) libgcc.a )\n".to_owned()),
        (
            "libc.so",
            format!("GROUP ( AS_NEEDED ( libc.so.6 ) {SHIMS} AS_NEEDED ( libc.so.6 libpthread.so.0 libdl.so.2 librt.so.1 {loader} ) )\n"),
        ),
        ("libm.so", plain("libm.so.6")),
        ("libpthread.so", plain("libpthread.so.0")),
        ("libdl.so", plain("libdl.so.2")),
        ("librt.so", plain("librt.so.1")),
        ("libutil.so", plain("libutil.so.1")),
        ("libresolv.so", plain("libresolv.so.2")),
        ("libgomp.so", plain("libgomp.so.1")),
    ]
}
