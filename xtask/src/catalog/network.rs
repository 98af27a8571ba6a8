//! The index that pip uses on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_toolchain::make_catalog::Registry;
use kiln_toolchain::{
    AgentOptions, IndexSettings, Network, PipFile, Trust, UreqTransport, ask_pip, certificate_files, default_index, pip_config_paths,
};

/// Calls `use_it` with the index that pip uses on this machine.
pub(super) fn with_registry<T>(use_it: impl FnOnce(&Registry<'_>) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let read = |path: PathBuf| std::fs::read_to_string(&path).ok().map(|text| PipFile { path, text });
    let pip_files: Vec<PipFile> = pip_config_paths(&environment).into_iter().filter_map(read).collect();
    let ask_python = || ask_pip(Path::new("python3"));
    let current_dir = std::env::current_dir()?;
    let (current_dir, project_dir) = (current_dir.as_path(), current_dir.as_path());
    let settings = IndexSettings {
        option: None,
        kiln_toml: None,
        environment: &environment,
        pip_files: &pip_files,
        ask_python: &ask_python,
        current_dir,
        project_dir,
    };
    let index = default_index(&settings)?;
    let options = AgentOptions { trust: Trust { extra: certificate_files(&environment, &pip_files)? }, ..AgentOptions::default() };
    let network = Network::new(index.url, Arc::new(UreqTransport::new(&options)?));
    use_it(&Registry::new(&network, &|_| {}))
}
