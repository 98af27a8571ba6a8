//! What is said of a name that nothing provides.

use std::fmt;

use kiln_graph::BuiltinError;
use kiln_object::demangle::demangle;

use crate::floor::FloorLevel;
use crate::names::PythonVersion;

/// Why a name has no provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// None of the libraries to link with exports it.
    NotExported {
        /// Whether its name says that it would be the provider's. Else a source of the extension is as likely missing.
        theirs: bool,
        /// What the libraries belong to, such as `torch 2.13.0`.
        provider: String,
        /// The libraries that were asked.
        libraries: Vec<String>,
    },
    /// A library exports it that this variant does not link with.
    NotLinked {
        /// What the library belongs to.
        provider: String,
        /// The library.
        library: String,
    },
    /// Python has it in its stable ABI, but not yet in the oldest release that the extension is for.
    NewerPython {
        /// The release that has it.
        added: PythonVersion,
        /// The oldest release that the extension is for.
        floor: PythonVersion,
    },
    /// It is one of Python's and not in the stable ABI.
    NotLimitedApi,
    /// It is one of Python's, and the extension may use none.
    NoPython,
    /// It belongs to the C++ runtime, and the host's does not have it.
    NotInRuntime,
    /// The host's libraries have it, those of the floor do not.
    BeyondFloor {
        /// The floor.
        floor: FloorLevel,
        /// Whether the static C++ library of the compiler, which may have it, is not installed.
        rest_is_missing: bool,
    },
    /// It has the form of a function of CUDA's driver, whose library is missing where there is no device.
    Driver,
    /// A `.symver` asks for a version of it that nothing linked has.
    Version {
        /// The version.
        version: String,
        /// The versions that there are, ascending.
        has: Vec<String>,
        /// The floor whose libraries are linked; none for the system's own.
        floor: Option<FloorLevel>,
    },
    /// It is declared hidden: only the extension itself could define it.
    Hidden,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExported { theirs, provider, libraries } => {
                if !theirs {
                    f.write_str("no source of this extension defines it, and ")?;
                }
                match libraries.as_slice() {
                    [] => write!(f, "nothing of {provider} is linked"),
                    libraries => write!(f, "{provider} does not export it ({})", libraries.join(", ")),
                }
            }
            Self::NotLinked { provider, library } => write!(f, "{provider} exports it from {library}, which this variant does not link"),
            Self::NewerPython { added, floor } => {
                write!(f, "Python has it from {added} on, newer than Python {floor}'s limited API")
            }
            Self::NotLimitedApi => f.write_str("it is not in Python's limited API"),
            Self::NoPython => f.write_str("this extension may not use Python's names"),
            Self::NotInRuntime => f.write_str("it belongs to the C++ runtime, and the one of the host compiler does not have it"),
            Self::BeyondFloor { floor, .. } => {
                write!(f, "this system has it, but it is not in the baseline of {floor}, and no shim stands in for it")
            }
            Self::Driver => f.write_str("it is the driver's, and extensions must load on machines without one"),
            Self::Version { version, has, floor } => {
                let system = floor.map_or_else(|| "this system".to_owned(), |floor| format!("the baseline of {floor}"));
                match has.as_slice() {
                    [] => write!(f, "`.symver` asks for version {version} of it, and {system} has none with a version"),
                    has => write!(f, "`.symver` asks for version {version} of it, and {system} has {}", has.join(", ")),
                }
            }
            Self::Hidden => f.write_str("it is declared hidden, and no source of this extension defines it"),
        }
    }
}

impl Reason {
    /// What the author of the kernel can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotExported { theirs: true, .. } => {
                "is the declaration right? what only some torch releases have needs `torch.minver` or `torch.maxver`".to_owned()
            }
            Self::NotExported { theirs: false, .. } => "list the source that defines it in `src`, or correct its declaration".to_owned(),
            Self::NotLinked { .. } => "keep what belongs to another backend inside `#if defined(..)` of that backend's define".to_owned(),
            Self::NewerPython { floor, .. } => format!("an extension must load in Python {floor} too: use an older function"),
            Self::NotLimitedApi => {
                "one build serves every Python: use the functions that Python's manual calls part of the stable ABI".to_owned()
            }
            Self::NoPython => "extensions of this framework are loaded without Python".to_owned(),
            Self::NotInRuntime => "were the headers of another C++ library used? otherwise choose another compiler with `--cxx`".to_owned(),
            Self::BeyondFloor { rest_is_missing: true, .. } => {
                "install the C++ library as an archive: `libstdc++-N-dev` on Debian and Ubuntu, \
                 `libstdc++-static` on Fedora and RHEL"
                    .to_owned()
            }
            Self::BeyondFloor { .. } => {
                "use an older function; `floor = \"host\"` under `[build]` in `kiln.toml` gives up loading on older \
                 systems"
                    .to_owned()
            }
            Self::Driver => "ask for it at run time: `cudaGetDriverEntryPoint` gives a pointer to the function".to_owned(),
            Self::Version { has, .. } if has.is_empty() => "remove the `.symver` that names a version of it".to_owned(),
            Self::Version { has, .. } => {
                format!("name one of the versions that there are in the `.symver`, such as {}, or remove it", has.join(" or "))
            }
            Self::Hidden => "list the source that defines it in `src`, or remove the attribute that hides it".to_owned(),
        }
    }
}

/// Why a kernel is not found that another unit instantiates.
const KERNEL_TEMPLATE: &str = "if it is a `__global__` template: from CUDA 13 on, what a unit instantiates of it is that unit's own; launch it \
                               there, or add `-static-global-template-stub=false` to `cuda-flags` (nvcc 12.8 or newer)";

/// The failure of a link whose objects want these names: a block for each name, below a number when there are several, and each hint
/// once.
pub(super) fn undefined(unresolved: &[Unresolved]) -> BuiltinError {
    let message = match unresolved {
        [one] => format!("undefined symbol {}", one.to_string().replace("\n    ", "\n  ").trim_start()),
        several => {
            let blocks: String = several.iter().map(|name| format!("\n{name}")).collect();
            format!("{} undefined symbols{blocks}", several.len())
        }
    };
    let mut hints: Vec<String> = Vec::new();
    let templates = unresolved.iter().any(Unresolved::is_template_of_device_code);
    let own = templates.then(|| KERNEL_TEMPLATE.to_owned());
    for hint in unresolved.iter().map(|name| name.reason.hint()).chain(own) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    BuiltinError { hint: Some(hints.join("\n")), ..BuiltinError::new("undefined-symbol", message) }
}

/// A name that nothing provides. Displayed as an indented block, without a line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The name, mangled.
    pub name: String,
    /// Labels of the objects that want it.
    pub wanted_by: Vec<String>,
    /// Why it has no provider.
    pub reason: Reason,
}

impl Unresolved {
    /// Whether a unit of device code wants a function that is an instance of a template.
    fn is_template_of_device_code(&self) -> bool {
        let is_instance = demangle(&self.name).is_some_and(|shown| shown.split('(').next().is_some_and(|name| name.contains('<')));
        is_instance && self.wanted_by.iter().any(|label| label.contains(".cu"))
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = demangle(&self.name);
        let shown = shown.as_deref().unwrap_or(&self.name);
        write!(f, "  `{shown}`\n    wanted by {}\n    {}", self.wanted_by.join(", "), self.reason)
    }
}
