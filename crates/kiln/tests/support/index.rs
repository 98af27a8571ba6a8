//! The real index behind a mirror that counts what is fetched.

use std::collections::BTreeMap;
use std::path::Path;

use kiln_test_server::{MirrorOptions, MirrorServer};
use kiln_toolchain::{IndexSettings, ask_pip, default_index, pip_files};

use super::started::real_program;

/// A mirror of the index that this machine uses by default. What it fetches is kept beside the shared cache.
pub fn mirror() -> MirrorServer {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let pip_files = pip_files(&environment);
    let ask_python = || ask_pip(&real_program("python3").ok_or("there is no `python3` on PATH")?);
    let settings = IndexSettings::of_machine(&environment, &pip_files, &ask_python, Path::new("/"));
    let upstream = default_index(&settings).expect("an index is known").url.to_string();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mirror-cache");
    MirrorServer::start(&upstream, &MirrorOptions { cache: Some(cache), ..MirrorOptions::default() }).expect("the mirror starts")
}
