//! Settings: the command line and the environment, put together once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln::git::{self, GitTool};
use kiln::matrix::Target;
use kiln::{BuildError, lock_file, settings_file};
use kiln_format::Spanned;
use kiln_format::lock::Lock;
use kiln_format::metadata::Builder;
use kiln_graph::{ActionCache, DEFAULT_CACHE_LIMIT, Interrupt, size_of_text};
use kiln_toolchain::{
    AgentOptions, BuiltInIndex, DefaultIndex, IndexSettings, Netrc, Network, ProvisionOptions, RetryPolicy, TorchIndexSettings, Trust,
    UreqTransport, ask_pip, certificate_files, default_index, pip_files, proxies, torch_index,
};

use crate::args::Global;
use crate::environment::Environment;
use crate::exit::Failure;

/// The directory of a project and what its `kiln.toml` says.
pub(crate) type ProjectSettings<'a> = Option<(&'a Path, &'a settings_file::Settings)>;

/// What a project's `kiln.toml` says of one thing.
fn named<'p>(project: ProjectSettings<'p>, url: fn(&settings_file::Settings) -> &Option<Spanned<String>>) -> Option<&'p str> {
    let (_, settings) = project?;
    url(settings).as_ref().map(|url| url.value.as_str())
}

/// Settings of every command.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) environment: Environment,
    pub(crate) offline: bool,
    /// Whether lock files may not be changed.
    pub(crate) locked: bool,
    index: Option<String>,
    torch_index: Option<String>,
    cache_dir: Option<PathBuf>,
    /// The machine.
    pub(crate) machine: Target,
    /// What variants are for.
    pub(crate) target: Target,
}

impl Settings {
    pub(crate) fn new(global: &Global, environment: &Environment) -> Result<Self, Failure> {
        // Variants call macOS by the name of its kernel.
        let os = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        let machine = format!("{}-{os}", std::env::consts::ARCH);
        let machine = machine.parse().map_err(|error| Failure::new("system", format!("Kiln does not build on this machine: {error}")))?;
        let target = global.target.as_deref().map_or(Ok(machine), parse_target)?;
        let absolute = |path: &PathBuf| environment.current_dir.join(path);
        not_empty("--index", global.index.as_deref(), "leave it out to take the index that pip takes")?;
        not_empty("--torch-index", global.torch_index.as_deref(), "leave it out to take the builds of torch that the package index has")?;
        Ok(Self {
            environment: environment.clone(),
            offline: global.offline || global.frozen,
            locked: global.locked || global.frozen,
            index: global.index.clone(),
            torch_index: global.torch_index.clone(),
            cache_dir: global.cache_dir.as_ref().map(absolute).or_else(|| environment.cache_dir()),
            machine,
            target,
        })
    }

    /// Where shared things are kept. A user without a home keeps them in the project's work directory.
    pub(crate) fn cache_dir(&self, project: Option<&Path>) -> Result<PathBuf, Failure> {
        match (&self.cache_dir, project) {
            (Some(dir), _) => Ok(dir.clone()),
            (None, Some(project)) => Ok(project.join(".kiln/cache")),
            (None, None) => {
                Err(Failure::new("cache", "there is no directory for toolchains: none of KILN_CACHE_DIR, XDG_CACHE_HOME and HOME is set")
                    .hint("name one with `--cache-dir DIR`"))
            }
        }
    }

    /// The action cache of this user.
    pub(crate) fn actions(&self, cache_dir: &Path) -> Result<ActionCache, Failure> {
        let limit = match self.environment.get("KILN_CACHE_SIZE") {
            None => DEFAULT_CACHE_LIMIT,
            Some(text) => size_of_text(text).ok_or_else(|| Failure::usage(format!("KILN_CACHE_SIZE is `{text}`: {SIZE_FORM}")))?,
        };
        Ok(ActionCache::new(cache_dir.join("actions-v1"), limit))
    }

    /// The lock file for all projects of the user: in the configuration directory, or, for a user without one, in the cache directory.
    pub(crate) fn user_lock_file(&self) -> Option<PathBuf> {
        self.environment.config_dir().or_else(|| self.cache_dir.clone()).map(|dir| dir.join(kiln_format::lock::FILE_NAME))
    }

    /// What the user has pinned for all projects.
    pub(crate) fn user_lock(&self) -> Result<Lock, Failure> {
        Ok(self.user_lock_file().map_or(Ok(Lock::default()), |path| lock_file::read(&path)).map_err(BuildError::from)?)
    }

    pub(crate) fn provision_options(&self, cache_dir: PathBuf) -> ProvisionOptions {
        ProvisionOptions { cache_dir, lower: self.environment.shared_caches(), offline: self.offline, retry: RetryPolicy::default() }
    }

    /// The indexes and the way to them; settled only when something has to be fetched. `project` is the directory of the
    /// project and what its `kiln.toml` says.
    pub(crate) fn network(&self, cache_dir: &Path, project: ProjectSettings<'_>) -> Result<Network, kiln_toolchain::Error> {
        let variables = &self.environment.variables;
        let pip_files = pip_files(variables);
        let index = self.index(cache_dir, project)?;
        let torch_index = torch_index(&TorchIndexSettings {
            option: self.torch_index.as_deref(),
            kiln_toml: named(project, |settings| &settings.torch_index),
            environment: variables,
            current_dir: &self.environment.current_dir,
            project_dir: self.project_dir(project),
        })?;
        let options = AgentOptions {
            trust: Trust { extra: certificate_files(variables, &pip_files)? },
            proxies: proxies(variables, &pip_files)?,
            ..AgentOptions::default()
        };
        let transport = Arc::new(UreqTransport::new(&options)?);
        let torch_index = torch_index.map(|index| index.url);
        Ok(Network { torch_index, netrc: Netrc::of_user(variables, &self.environment.current_dir)?, ..Network::new(index.url, transport) })
    }

    /// The package index, and which setting named it.
    pub(crate) fn index(&self, cache_dir: &Path, project: ProjectSettings<'_>) -> Result<DefaultIndex, kiln_toolchain::Error> {
        let ask_python = || {
            let python = self.environment.find_program(&["python3", "python"]).ok_or("there is no `python3` on PATH")?;
            BuiltInIndex::new(cache_dir).get(&python, &ask_pip)
        };
        default_index(&IndexSettings {
            option: self.index.as_deref(),
            kiln_toml: named(project, |settings| &settings.index_url),
            environment: &self.environment.variables,
            pip_files: &pip_files(&self.environment.variables),
            ask_python: &ask_python,
            current_dir: &self.environment.current_dir,
            project_dir: self.project_dir(project),
        })
    }

    fn project_dir<'p>(&'p self, project: ProjectSettings<'p>) -> &'p Path {
        project.map_or(self.environment.current_dir.as_path(), |(dir, _)| dir)
    }

    /// How to run git: with what it needs to find its settings, and nothing that a surrounding hook has set.
    pub(crate) fn git(&self, interrupt: &Interrupt) -> GitTool {
        let env = ["PATH", "HOME", "XDG_CONFIG_HOME"]
            .into_iter()
            .filter_map(|name| Some((OsString::from(name), OsString::from(self.environment.get(name)?))))
            .collect();
        let program = self.environment.find_program(&["git"]).unwrap_or_else(|| PathBuf::from("git"));
        GitTool { program, env, limit: git::LIMIT, interrupt: interrupt.clone() }
    }

    /// What a program that is asked a question needs beside `PATH`.
    pub(crate) fn process_ambient(&self) -> Vec<(OsString, OsString)> {
        ["HOME", "TMPDIR"].into_iter().filter_map(|name| Some((name.into(), self.environment.get(name)?.into()))).collect()
    }

    /// What a compiler process needs to work and that never decides its result.
    pub(crate) fn ambient(&self) -> BTreeMap<String, PathBuf> {
        ["PATH", "HOME"].into_iter().filter_map(|name| Some((name.to_owned(), PathBuf::from(self.environment.get(name)?)))).collect()
    }

    /// Who builds, as metadata say it.
    pub(crate) fn builder() -> Builder {
        Builder { version: concat!("kiln ", env!("CARGO_PKG_VERSION")).to_owned(), commit: None }
    }

    /// Tells this program from others of the same version: a build of other sources has another size or time.
    pub(crate) fn program() -> Option<String> {
        let meta = std::env::current_exe().and_then(std::fs::metadata).ok()?;
        let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(format!("{} {} {}", env!("CARGO_PKG_VERSION"), meta.len(), since.as_nanos()))
    }
}

/// How a size is written, for messages.
pub(crate) const SIZE_FORM: &str = "it must be a number of bytes, or a number with k, M, G or T, or Ki, Mi, Gi or Ti";

/// Refuses an option that is there and says nothing: a variable of a script that was never set is not what is meant.
fn not_empty(option: &str, value: Option<&str>, otherwise: &str) -> Result<(), Failure> {
    if value.is_none_or(|value| !value.trim().is_empty()) {
        return Ok(());
    }
    Err(Failure::usage(format!("`{option}` is empty")).hint(format!("name a URL or the path of a directory, or {otherwise}")))
}

/// What `--target` names.
fn parse_target(text: &str) -> Result<Target, Failure> {
    text.parse().map_err(|error| {
        let known: Vec<String> = Target::ALL.iter().map(Target::to_string).collect();
        Failure::usage(format!("`--target`: {error}")).hint(format!("the systems are {}", known.join(", ")))
    })
}
