//! The index that pip uses on this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kiln_toolchain::make_catalog::Registry;
use kiln_toolchain::{AgentOptions, IndexSettings, Network, Trust, UreqTransport, ask_pip, certificate_files, default_index, pip_files};

/// Calls `use_it` with the index that pip uses on this machine.
pub(super) fn with_registry<T>(use_it: impl FnOnce(&Registry<'_>) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let pip_files = pip_files(&environment);
    let ask_python = || ask_pip(Path::new("python3"));
    let current_dir = std::env::current_dir()?;
    let settings = IndexSettings::of_machine(&environment, &pip_files, &ask_python, &current_dir);
    let index = default_index(&settings)?;
    let options = AgentOptions { trust: Trust { extra: certificate_files(&environment, &pip_files)? }, ..AgentOptions::default() };
    let network = Network::new(index.url, Arc::new(UreqTransport::new(&options)?));
    use_it(&Registry::new(&network, &|_| {}))
}
