//! The host compiler that goes with the toolkits of a build.

use kiln_toolchain::host::{Family, HostCompiler};

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

/// Finds a compiler that the question is answered with yes for.
pub type FindOther<'a> = dyn Fn(&dyn Fn(&HostCompiler) -> bool) -> Option<HostCompiler> + 'a;

impl FittingHost {
    /// `usual` where all of `backends` take it, or else what `other` gives, which is asked for one that they take. The usual one stays where
    /// there is none: compiling with it says what is wrong.
    pub fn choose(usual: HostCompiler, backends: &[&dyn Backend], other: &FindOther<'_>) -> Self {
        let refused = |host: &HostCompiler| backends.iter().find_map(|backend| backend.check_host(host).err());
        let Some(refusal) = refused(&usual) else { return Self { compiler: usual, instead_of: None, note: None } };
        match other(&|host| refused(host).is_none()) {
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
