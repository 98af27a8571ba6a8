//! What an installation of Apple's tools is.
//!
//! Where its parts lie is discovery's knowledge, and what its programs say of themselves is asked by who asks all compilers. From Xcode 26
//! on the compiler of shaders is a component of its own, whose place only `xcodebuild` knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln_backend::HostCompiler;
use kiln_backend::discover::Candidate;
use kiln_backend::discover::apple::MetalPrograms;

/// The compilers of shaders and of the host's part.
#[derive(Clone, Debug)]
pub struct MetalToolkit {
    /// What the compiler of shaders says that it is; for one that is only planned, nothing.
    pub version: String,
    /// By what it was found.
    pub origin: String,
    /// The compiler of shaders.
    pub programs: MetalPrograms,
    /// Digest of it, as lower-case hexadecimal text.
    pub identity: String,
    /// The compiler of everything else, which links. It compiles for macOS.
    pub compiler: HostCompiler,
    /// Variables that the compiler needs to work and that never decide its result.
    pub ambient: BTreeMap<String, PathBuf>,
}

/// Why there is no compiler of shaders: each case has its own remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingMetal {
    /// The machine has none of Apple's tools.
    #[error("there is no compiler of Metal shaders: this machine has no Xcode")]
    NoTools,
    /// Only the command line tools are there.
    #[error("there is no compiler of Metal shaders: `{}` are the command line tools, which have none", dir.display())]
    ToolsOnly {
        /// Their directory.
        dir: PathBuf,
    },
    /// Xcode is there, and the command line tools are selected.
    #[error("there is no compiler of Metal shaders in `{}`, which is selected; there is an Xcode in `{}`", selected.display(), xcode.display())]
    NotSelected {
        /// What is selected.
        selected: PathBuf,
        /// The Xcode.
        xcode: PathBuf,
    },
    /// Xcode is selected, and its component is not installed.
    #[error("there is no compiler of Metal shaders: the Xcode in `{}` lacks its component MetalToolchain", xcode.display())]
    NoComponent {
        /// The Xcode.
        xcode: PathBuf,
    },
    /// The tools are of an older macOS than extensions are for.
    #[error("the tools in `{}` are for macOS {sdk} and older, and extensions are for {wanted} and newer", dir.display())]
    TooOld {
        /// Where they are.
        dir: PathBuf,
        /// The release that they know.
        sdk: String,
        /// The oldest macOS that extensions are for.
        wanted: String,
    },
}

impl MissingMetal {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        const COMPONENT: &str = "`xcodebuild -downloadComponent MetalToolchain`";
        match self {
            Self::NoTools | Self::ToolsOnly { .. } => {
                format!("on a Mac install Xcode 26 or newer, then run {COMPONENT}; DEVELOPER_DIR names one that is elsewhere")
            }
            Self::NotSelected { xcode, .. } => {
                format!("run `sudo xcode-select --switch {}`, or name it in DEVELOPER_DIR", xcode.display())
            }
            Self::NoComponent { .. } => format!("run {COMPONENT}"),
            Self::TooOld { .. } => {
                "install a newer Xcode, or ask for an older macOS with `deployment-target` and `language` under `[metal]` in `kiln.toml`"
                    .to_owned()
            }
        }
    }

    /// The case of a machine with these installations, the selected one first, none of which gave a compiler of shaders.
    pub fn of(candidates: &[Candidate]) -> Self {
        let is_tools = |dir: &Path| dir.ends_with("CommandLineTools");
        let roots = || candidates.iter().map(|kit| kit.root.as_path());
        match (roots().next(), roots().find(|root| !is_tools(root))) {
            (Some(selected), Some(xcode)) if is_tools(selected) => {
                Self::NotSelected { selected: selected.to_owned(), xcode: xcode.to_owned() }
            }
            (_, Some(xcode)) => Self::NoComponent { xcode: xcode.to_owned() },
            (Some(dir), None) => Self::ToolsOnly { dir: dir.to_owned() },
            (None, None) => Self::NoTools,
        }
    }
}

/// The directory that holds the toolchain in what `xcodebuild -showComponent MetalToolchain` says; none where it says that there is none.
pub fn search_path(said: &str) -> Option<&str> {
    let value = |key: &str| said.lines().find_map(|line| line.trim().strip_prefix(key)?.trim().strip_prefix(':')).map(str::trim);
    if value("Status").is_some_and(|status| status != "installed") {
        return None;
    }
    value("Toolchain Search Path").filter(|path| path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use kiln_backend::discover::{KitKind, Origin};

    use super::*;

    fn kit(root: &str) -> Candidate {
        let (kind, origin) = (KitKind::Metal, Origin::Place);
        Candidate { kind, root: Path::new(root).to_owned(), origin, version: None, parts: Vec::new(), lacks: Vec::new() }
    }

    /// What is there decides which case it is.
    #[test]
    fn four_ways_to_have_no_compiler() {
        let (tools, xcode) = (kit("/Library/Developer/CommandLineTools"), kit("/Applications/Xcode.app/Contents/Developer"));
        assert_eq!(MissingMetal::of(&[]), MissingMetal::NoTools);
        assert_eq!(MissingMetal::of(std::slice::from_ref(&tools)), MissingMetal::ToolsOnly { dir: tools.root.clone() });
        let not_selected = MissingMetal::of(&[tools.clone(), xcode.clone()]);
        assert_eq!(not_selected, MissingMetal::NotSelected { selected: tools.root.clone(), xcode: xcode.root.clone() });
        assert_eq!(
            not_selected.hint(),
            "run `sudo xcode-select --switch /Applications/Xcode.app/Contents/Developer`, or name it in DEVELOPER_DIR"
        );
        assert_eq!(MissingMetal::of(&[xcode.clone(), tools]), MissingMetal::NoComponent { xcode: xcode.root });
    }

    #[test]
    fn xcodebuild_says_where_the_component_is() {
        let installed = "Asset Path: /System/Library/AssetsV2/x.asset/AssetData\nBuild Version: 17A324\nStatus: installed\n\
                         Toolchain Identifier: com.apple.dt.toolchain.Metal.32023.830.1\n\
                         Toolchain Search Path: /var/run/com.apple.security.cryptexd/mnt/MetalToolchain-v17.1.324.0.abcdef\n";
        let found = search_path(installed).unwrap();
        assert!(found.ends_with("mnt/MetalToolchain-v17.1.324.0.abcdef"), "{found}");
        assert_eq!(search_path(&installed.replace("Status: installed", "Status: uninstalled")), None);
        for said in ["", "xcode-select: error: tool 'xcodebuild' requires Xcode", "Toolchain Search Path: (null)", "Toolchain Search Path:"]
        {
            assert_eq!(search_path(said), None, "{said}");
        }
    }
}
