//! Kernels for the tests of this module.

use kiln_format::Build;
use kiln_format::variant::{Cpu, Os};

use super::data::{Matrix, Target};

pub(super) const LINUX: Target = Target { cpu: Cpu::X86_64, os: Os::Linux };
pub(super) const ARM_LINUX: Target = Target { cpu: Cpu::Aarch64, os: Os::Linux };
pub(super) const MAC: Target = Target { cpu: Cpu::Aarch64, os: Os::Darwin };

/// The peer's matrix, which the vectors of the specification are about.
pub(super) fn peer() -> Matrix {
    Matrix::builtin().unwrap().peer_only()
}

/// A kernel with these backends (a TOML list), one component for each of `components`, and `rest` of the file, which holds the
/// framework table.
pub(super) fn build(backends: &str, rest: &str, components: &[&str]) -> Build {
    let mut text = format!("[general]\nname = \"relu\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = {backends}\n{rest}");
    for backend in components {
        text += &format!("\n[kernel.{backend}]\nbackend = \"{backend}\"\ndepends = [\"torch\"]\nsrc = [\"a.cpp\"]\n");
    }
    parse(&text)
}

pub(super) fn parse(text: &str) -> Build {
    let parsed = kiln_format::build::parse("build.toml", text);
    parsed.build.unwrap_or_else(|| panic!("{text}\n{:?}", parsed.diagnostics))
}
