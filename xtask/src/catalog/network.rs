//! The index that pip uses on this machine.

use std::collections::BTreeMap;

use kiln_toolchain::Network;
use kiln_toolchain::make_catalog::Registry;

/// Calls `use_it` with the index that pip uses on this machine.
pub(super) fn with_registry<T>(use_it: impl FnOnce(&Registry<'_>) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let kept = tempfile::tempdir()?;
    let network = Network::of_machine(&environment, &std::env::current_dir()?, kept.path())?;
    use_it(&Registry::new(&network, &|_| {}))
}
