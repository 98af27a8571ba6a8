//! What the processor of this machine is, for what is compiled for no other.
//!
//! `-march=native`, `-mtune=native` and `-mcpu=native` make a compiler look at the processor that it runs on, and write other code on
//! another one for equal arguments and equal files. So the processor has to enter the identity of such a step, or a cache that
//! two machines share gives one of them code of the other.
//!
//! The kernel's `/proc/cpuinfo` says who made each processor, its family, model and stepping, its features and the size of its
//! cache: what compilers go by, which read the same registers or this very file. What differs from boot to boot or from core
//! to core (numbers, frequencies, addresses) is left out, and cores of several kinds count each once.
//!
//! The other way would be to ask the compiler what it makes of `native` (`-###`). That is exact by definition, but costs a process for each
//! compiler and each start, and would have to be kept by what stands here.
//!
//! Known limit: a feature that the kernel has no name for, hidden from one of two machines that are equal otherwise, is not seen.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use data_encoding::HEXLOWER;

/// The entries that say what a core is, on x86 and on ARM.
const ENTRIES: [&str; 12] = [
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "cache size",
    "flags",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "Features",
];

/// The processor of a machine. Nothing is read before it is asked for.
#[derive(Debug)]
pub struct Processor {
    file: PathBuf,
    identity: OnceLock<Option<String>>,
}

impl Processor {
    /// The processor that `file` describes, in the form of `/proc/cpuinfo`.
    pub fn described_by(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), identity: OnceLock::new() }
    }

    /// A digest that changes with whatever compilers go by, as lower-case hexadecimal text; nothing where the file is not there or says
    /// nothing of this.
    pub fn identity(&self) -> Option<&str> {
        self.identity.get_or_init(|| identity(&fs::read_to_string(&self.file).ok()?)).as_deref()
    }

    /// The file that describes it.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

fn identity(text: &str) -> Option<String> {
    let entry = |line: &str| {
        let (name, value) = line.split_once(':')?;
        ENTRIES.contains(&name.trim()).then(|| format!("{}\0{}\0", name.trim(), value.trim()))
    };
    let kinds: BTreeSet<String> = text.split("\n\n").map(|core| core.lines().filter_map(entry).collect()).collect();
    let kinds: Vec<String> = kinds.into_iter().filter(|kind| !kind.is_empty()).collect();
    (!kinds.is_empty()).then(|| HEXLOWER.encode(blake3::hash(kinds.join("\n").as_bytes()).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nstepping\t: 8\ncpu MHz\t\t: 2100.0\n\
                        cache size\t: 2048 KB\nflags\t\t: fpu avx avx512f\nbogomips\t: 4200.0\n\n";

    #[test]
    fn only_what_code_depends_on_counts() {
        let one = identity(CORE).unwrap();
        let other_core = CORE.replace("processor\t: 0", "processor\t: 1").replace("2100.0", "3500.9").replace("4200.0", "4300.0");
        assert_eq!(identity(&format!("{CORE}{other_core}")).unwrap(), one);
        for (from, to) in [("Intel", "AMD"), ("143", "144"), (": 8\n", ": 9\n"), (" avx512f", ""), ("2048", "1024")] {
            assert_ne!(identity(&CORE.replacen(from, to, 1)).unwrap(), one, "{from}");
        }
        // A second kind of core counts, whichever comes first.
        let little = CORE.replace(" avx512f", "");
        let both = identity(&format!("{CORE}{little}")).unwrap();
        assert_ne!(both, one);
        assert_eq!(identity(&format!("{little}{other_core}{CORE}")).unwrap(), both);
    }

    #[test]
    fn a_file_that_says_nothing_is_no_processor() {
        assert_eq!(identity(""), None);
        assert_eq!(identity("processor : 0\nbogomips : 1\n\n\n"), None);
        assert_eq!(Processor::described_by("/nowhere/cpuinfo").identity(), None);
    }
}
