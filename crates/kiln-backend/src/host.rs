//! The host compiler that goes with the toolkits of a build.

use std::path::Path;

use kiln_toolchain::host::{Family, HostCompiler, HostSearch, find_other};

use crate::backend::Backend;

/// A host compiler, and which one it is taken for.
#[derive(Clone, Debug)]
pub struct FittingHost {
    /// The compiler.
    pub compiler: HostCompiler,
    /// The usual one, where a toolkit refuses it.
    pub instead_of: Option<HostCompiler>,
    /// Why another one is taken and which: lower case, without full stop.
    pub note: Option<String>,
}

impl FittingHost {
    /// `usual`, which `search` found, where all of `backends` take it, or else the newest that they take. The usual one stays where there is
    /// none: compiling with it says what is wrong. `known` is the file that keeps what is known of compilers.
    pub fn choose(usual: HostCompiler, backends: &[&dyn Backend], search: &HostSearch, known: &Path) -> Self {
        let refused = |host: &HostCompiler| backends.iter().find_map(|backend| backend.check_host(host).err());
        let Some(refusal) = refused(&usual) else { return Self { compiler: usual, instead_of: None, note: None } };
        match find_other(search, known, &|host| refused(host).is_none()) {
            None => Self { compiler: usual, instead_of: None, note: None },
            Some(compiler) => {
                let note = format!("{refusal}: {} at `{}` compiles instead", name(&compiler), compiler.path.display());
                Self { compiler, instead_of: Some(usual), note: Some(note) }
            }
        }
    }
}

fn name(host: &HostCompiler) -> String {
    let family = match host.family {
        Family::Gnu => "GCC",
        Family::Clang => "Clang",
    };
    format!("{family} {}", host.version)
}
