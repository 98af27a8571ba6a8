//! Fetches one torch release: `kiln-toolchain-test-fetch CATALOG CACHE-DIR INDEX VERSION`. Prints what happens, a line
//! each; the last line is the directory or the error.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kiln_format::Version;
use kiln_toolchain::{
    AgentOptions, Catalog, Error, FetchEvent, IndexUrl, Network, ProvisionOptions, Provisioner, RetryPolicy, UreqTransport,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [catalog, cache, index, version] = arguments.as_slice() else { return ExitCode::from(2) };
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        // A test that stopped listening has what it wanted.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    let events = |event: FetchEvent| match event {
        FetchEvent::Bytes { .. } => {}
        other => say(format!("{other:?}")),
    };
    match fetch(catalog, cache, index, version, &events) {
        Ok(dir) => {
            say(format!("ok {dir}"));
            ExitCode::SUCCESS
        }
        Err(cause) => {
            say(format!("error {cause}"));
            cause.hint().into_iter().for_each(|hint| say(format!("hint {hint}")));
            ExitCode::FAILURE
        }
    }
}

fn fetch(catalog: &str, cache: &str, index: &str, version: &str, events: &(dyn Fn(FetchEvent) + Sync)) -> Result<String, Error> {
    let text = std::fs::read_to_string(catalog).map_err(|cause| Error::Catalog { reason: cause.to_string() })?;
    let catalog = Catalog::parse(&text)?;
    let version = Version::parse(version).map_err(|cause| Error::Catalog { reason: cause.to_string() })?;
    let retry = RetryPolicy { attempts: 3, first_delay: Duration::from_millis(50) };
    let options = ProvisionOptions { cache_dir: cache.into(), lower: Vec::new(), offline: false, retry };
    let network = || {
        let index = IndexUrl::parse(index).map_err(|reason| Error::IndexUrl { origin: "the argument".to_owned(), reason })?;
        Ok(Network::new(index, Arc::new(UreqTransport::new(&AgentOptions::default())?)))
    };
    let dir = Provisioner::new(&catalog, options, &network, events).fetch(&version, "linux-x86_64")?;
    Ok(dir.display().to_string())
}
