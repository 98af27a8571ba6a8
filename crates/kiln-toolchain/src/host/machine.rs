//! Processors to compile for.

use kiln_object::elf::Machine;

/// The processor of this machine, if it is one that has lists.
pub(super) fn native() -> Option<Machine> {
    match std::env::consts::ARCH {
        "x86_64" => Some(Machine::X86_64),
        "aarch64" => Some(Machine::AARCH64),
        _ => None,
    }
}

/// Whether it is that of this machine.
pub(super) fn is_native(machine: Machine) -> bool {
    native() == Some(machine)
}

/// The wanted processor, if it is not that of this machine.
pub(super) fn foreign(wanted: Option<Machine>) -> Option<Machine> {
    wanted.filter(|machine| !is_native(*machine))
}

/// What Linux for a processor is called by compilers and distributions.
pub(super) fn triple(machine: Machine) -> String {
    format!("{machine}-linux-gnu")
}

/// The processor in what a compiler says that it compiles for: the first part of `aarch64-linux-gnu` or `aarch64-unknown-linux-gnu`.
pub(super) fn of_triple(triple: &str) -> Option<Machine> {
    match triple.split('-').next()? {
        "x86_64" => Some(Machine::X86_64),
        "aarch64" | "arm64" => Some(Machine::AARCH64),
        _ => None,
    }
}

/// The packages with a compiler for another processor.
pub(super) fn packages(machine: Machine) -> &'static str {
    match machine {
        Machine::AARCH64 => "`g++-aarch64-linux-gnu` on Debian and Ubuntu",
        Machine::X86_64 => "`g++-x86-64-linux-gnu` on Debian and Ubuntu",
        _ => "a cross compiler",
    }
}

/// File name of the dynamic loader.
pub(super) fn loader(machine: Machine) -> Option<&'static str> {
    match machine {
        Machine::X86_64 => Some("ld-linux-x86-64.so.2"),
        Machine::AARCH64 => Some("ld-linux-aarch64.so.1"),
        _ => None,
    }
}
