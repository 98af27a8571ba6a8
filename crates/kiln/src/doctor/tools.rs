//! The programs of the machine itself: compilers, Pythons, git.

use kiln_toolchain::discover::{Distribution, Need, PythonLayout, compilers as found_compilers, pythons as found_pythons};
use kiln_toolchain::host::{Family, HostCompiler, HostError};
use kiln_toolchain::system::SystemError;

use super::{Examination, Item, Section, State};
use crate::build_error::BuildError;
use crate::git::{self, GitTool};

/// The compiler that builds use, then the others on `PATH`.
pub(super) fn compilers(examination: &Examination<'_>, distribution: &Distribution) -> Section {
    let candidates = found_compilers(&examination.view);
    let mut items = Vec::new();
    let chosen = examination.services.host.usual();
    let chosen_path = match &chosen {
        Ok(host) => {
            // Behind a launcher the compiler itself is the first argument.
            items.push(compiler(host, State::Taken));
            Some(host.behind_launcher().unwrap_or(&host.path).to_owned())
        }
        Err(error) => {
            items.push(failed(error, distribution));
            match error {
                BuildError::Host(HostError::Broken { path, .. } | HostError::Incomplete { path, .. }) => Some(path.clone()),
                _ => None,
            }
        }
    };
    let chosen_real = chosen_path.as_ref().and_then(|path| path.canonicalize().ok());
    for candidate in candidates {
        let is_chosen =
            chosen_path.as_ref() == Some(&candidate.path) || (candidate.through.is_none() && chosen_real.as_ref() == Some(&candidate.real));
        if is_chosen {
            if let (Some(through), Some(item)) = (&candidate.through, items.first_mut()) {
                item.detail = Some(format!("through `{through}`"));
            }
            continue;
        }
        let mut item = match (examination.compiler_at)(&candidate.path) {
            Ok(host) => compiler(&host, State::Found),
            Err(error) => failed(&BuildError::Host(error), distribution),
        };
        item.path = Some(candidate.path);
        if let Some(through) = candidate.through {
            item.detail = Some(format!("through `{through}`"));
        }
        items.push(item);
    }
    let looked = vec!["--cxx".to_owned(), "kiln.toml".to_owned(), "CXX".to_owned(), "CC".to_owned(), "PATH".to_owned()];
    Section { key: "cxx", title: "C++ compilers".to_owned(), items, looked }
}

fn compiler(host: &HostCompiler, state: State) -> Item {
    let name = match host.family {
        Family::Gnu => "g++",
        Family::Clang => "clang++",
    };
    Item {
        version: Some(host.version.to_string()),
        path: Some(host.path.clone()),
        identity: Some(host.identity.clone()),
        ..Item::new(state, name)
    }
}

/// A compiler that cannot be used.
fn failed(error: &BuildError, distribution: &Distribution) -> Item {
    let need = need(error);
    let mut item = Item { install: need.and_then(|need| distribution.install(need)), ..Item::new(State::Unusable, "C++ compiler") };
    match error {
        BuildError::Host(HostError::Incomplete { path, part, .. }) => {
            (item.state, item.path, item.lacks) = (State::Lacks, Some(path.clone()), vec![part.clone()]);
        }
        BuildError::Host(HostError::None { .. }) => item.state = State::None,
        error => item.detail = Some(error.to_string()),
    }
    item
}

/// What would have to be installed for a build that ends with `error` to start.
pub(super) fn need(error: &BuildError) -> Option<Need> {
    match error {
        BuildError::Host(error) => error.need(),
        BuildError::Toolkit { need, .. } => *need,
        _ => None,
    }
}

/// The Pythons, and the torch that each has.
pub(super) fn pythons(examination: &Examination<'_>, distribution: &Distribution) -> Section {
    let named = examination.torch_from.map(|python| ("--torch-from", python));
    let (found, passed) = found_pythons(&examination.view, named);
    let mut items = Vec::new();
    for candidate in found {
        let mut item =
            Item { path: Some(candidate.python.clone()), origin: Some(candidate.origin.to_string()), ..Item::new(State::Found, "Python") };
        let kind = match candidate.layout {
            PythonLayout::Plain => String::new(),
            layout => format!("{}, ", layout.as_str()),
        };
        match (examination.torch_of)(&candidate.python) {
            Ok(torch) => {
                let toolchain = torch.toolchain;
                let cuda = toolchain.cuda.as_ref().map(|cuda| format!(" for CUDA {cuda}")).unwrap_or_default();
                item.version = Some(torch.python_version);
                item.detail = Some(format!("{kind}torch {}{cuda}", toolchain.version));
                item.identity = Some(toolchain.identity);
                if matches!(candidate.origin, kiln_toolchain::discover::Origin::Option(_)) {
                    item.state = State::Taken;
                }
            }
            Err(SystemError::NoTorch { version, .. }) => {
                (item.version, item.detail) = (Some(version), Some(format!("{kind}no torch")));
            }
            Err(error) => (item.state, item.detail) = (State::Unusable, Some(error.to_string())),
        }
        items.push(item);
    }
    for passed in passed {
        let detail = Some(format!("`{}` {}", passed.value, passed.reason));
        items.push(Item { origin: Some(passed.origin.to_string()), detail, ..Item::new(State::Unusable, "Python") });
    }
    if items.is_empty() {
        items.push(Item { install: distribution.install(Need::Python), ..Item::new(State::None, "Python") });
    }
    let looked = ["--torch-from", "VIRTUAL_ENV", "CONDA_PREFIX", "`python3` and `python` on PATH"].map(str::to_owned).into();
    Section { key: "python", title: "Python and torch".to_owned(), items, looked }
}

/// Git, which names the state of a project.
pub(super) fn git(tool: &GitTool, distribution: &Distribution) -> Section {
    let item = match git::version(tool) {
        Ok(version) => Item { version: Some(version), path: Some(tool.program.clone()), ..Item::new(State::Taken, "git") },
        Err(reason) => Item {
            detail: Some(format!("{reason}; builds take the content of a project for its state")),
            install: distribution.install(Need::Git),
            ..Item::new(State::None, "git")
        },
    };
    Section { key: "git", title: "Git".to_owned(), items: vec![item], looked: vec!["PATH".to_owned()] }
}
