//! The shims: functions that newer headers ask for, on top of functions that the floor has.
//!
//! Each group is one object, so that only what is missing is linked. No system header is included: headers of the host redirect the
//! very names that are defined here. A shim must not call anything that a header may define inline by way of the shimmed name: where
//! a compiler emits that definition, it and the shim would call each other for ever.

use kiln_object::Error;
use kiln_object::baseline::Baseline;
use kiln_object::elf::Machine;

use super::FloorLevel;

/// A group of shims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shim {
    /// File name of the source.
    pub source: &'static str,
    /// The source.
    pub text: &'static str,
    /// The names that it defines, mangled.
    pub names: &'static [&'static str],
}

impl Shim {
    /// The file name without its extension.
    pub fn stem(&self) -> &'static str {
        self.source.split_once('.').map_or(self.source, |(stem, _)| stem)
    }

    /// Whether it is C++.
    pub fn is_cxx(&self) -> bool {
        self.source.ends_with(".cpp")
    }
}

/// The groups that a floor lacks, wholly or in part, in the order of the archive. All were written for the oldest one; names that
/// it has itself are those that its libraries keep for old files only.
///
/// # Errors
/// For a processor without lists.
pub fn lacking(level: FloorLevel, machine: Machine) -> Result<Vec<&'static Shim>, Error> {
    // The oldest lacks them all, whatever its lists say: decoding those would be a quarter of what a build costs that has nothing to do.
    if level == FloorLevel::default() && Baseline::embedded(level.system(), machine).is_some() {
        return Ok(SHIMS.iter().collect());
    }
    let oldest = Baseline::of(FloorLevel::default().system(), machine)?;
    let own = Baseline::of(level.system(), machine)?;
    let has = |name: &&str| own.named(name).iter().any(|entry| entry.default && !oldest.has(&entry.library, name, &entry.version));
    Ok(SHIMS.iter().filter(|shim| !shim.names.iter().all(has)).collect())
}

macro_rules! shim {
    ($source:literal, [$($name:literal),* $(,)?]) => {
        Shim { source: $source, text: include_str!(concat!("../../floor/shims/", $source)), names: &[$($name),*] }
    };
}

/// Every group, in the order of the archive.
pub const SHIMS: &[Shim] = &[
    shim!("single_threaded.c", ["__libc_single_threaded"]),
    shim!("stat.c", ["stat", "lstat", "fstat", "fstatat", "stat64", "lstat64", "fstat64", "fstatat64", "mknod", "mknodat"]),
    shim!(
        "clockwait.c",
        ["pthread_cond_clockwait", "pthread_mutex_clocklock", "pthread_rwlock_clockrdlock", "pthread_rwlock_clockwrlock", "sem_clockwait",]
    ),
    shim!("arc4random.c", ["arc4random_buf", "arc4random", "arc4random_uniform"]),
    shim!(
        "isoc23.c",
        [
            "__isoc23_strtol",
            "__isoc23_strtoul",
            "__isoc23_strtoll",
            "__isoc23_strtoull",
            "__isoc23_strtoimax",
            "__isoc23_strtoumax",
            "__isoc23_wcstol",
            "__isoc23_wcstoul",
            "__isoc23_wcstoll",
            "__isoc23_wcstoull",
            "__isoc23_wcstoimax",
            "__isoc23_wcstoumax",
            "__isoc23_strtol_l",
            "__isoc23_strtoul_l",
            "__isoc23_strtoll_l",
            "__isoc23_strtoull_l",
            "__isoc23_wcstol_l",
            "__isoc23_wcstoul_l",
            "__isoc23_wcstoll_l",
            "__isoc23_wcstoull_l",
            "__isoc23_vsscanf",
            "__isoc23_sscanf",
            "__isoc23_vfscanf",
            "__isoc23_fscanf",
            "__isoc23_vswscanf",
            "__isoc23_swscanf",
            "__isoc23_vfwscanf",
            "__isoc23_fwscanf",
            "__isoc23_vscanf",
            "__isoc23_scanf",
            "__isoc23_vwscanf",
            "__isoc23_wscanf",
        ]
    ),
    shim!("strl.c", ["strlcpy", "strlcat", "__strlcpy_chk", "__strlcat_chk"]),
    shim!("syscalls.c", ["gettid", "tgkill", "getdents64", "close_range"]),
    shim!("memcmpeq.c", ["__memcmpeq"]),
    shim!("atexit.c", ["atexit", "at_quick_exit"]),
    shim!("atfork.c", ["pthread_atfork"]),
    shim!(
        "exception_ptr.cpp",
        ["_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv", "_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv"]
    ),
    shim!("bad_array.cpp", ["_ZSt28__throw_bad_array_new_lengthv"]),
    shim!(
        "sstream.cpp",
        [
            "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev",
            "_ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEEC1Ev",
            "_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev",
            "_ZNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEC1Ev",
            "_ZNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEC2Ev",
        ]
    ),
    shim!(
        "stdexcept.cpp",
        [
            "_ZNSt13runtime_errorC1EOS_",
            "_ZNSt13runtime_errorC2EOS_",
            "_ZNSt13runtime_erroraSEOS_",
            "_ZNSt11logic_errorC1EOS_",
            "_ZNSt11logic_errorC2EOS_",
            "_ZNSt11logic_erroraSEOS_",
        ]
    ),
    shim!("assert.cpp", ["_ZSt21__glibcxx_assert_failPKciS0_S0_"]),
    shim!("ios_init.cpp", ["_ZSt21ios_base_library_initv"]),
    shim!("call_terminate.cpp", ["__cxa_call_terminate"]),
];

/// Arguments that compile every shim. Nothing of the host's choices (protectors, fortification, link-time optimisation) may add a name
/// that the floor lacks.
pub(super) const ARGS: &[&str] = &[
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-stack-protector",
    "-fno-lto",
    "-U_FORTIFY_SOURCE",
    "-w",
];
/// Further ones for C.
pub(super) const C_ARGS: &[&str] = &["-x", "c", "-std=gnu11", "-ffreestanding", "-fno-builtin"];
/// Further ones for C++.
pub(super) const CXX_ARGS: &[&str] = &["-x", "c++", "-std=gnu++17"];
