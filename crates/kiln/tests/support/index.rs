//! The real index behind a mirror that counts what is fetched.

use std::collections::BTreeMap;
use std::path::Path;

use kiln_test_server::{MirrorOptions, MirrorServer};
use kiln_toolchain::{IndexSettings, PipFile, ask_pip, default_index, pip_config_paths};

use super::started::real_program;

/// A mirror of the index that this machine uses by default. What it fetches is kept beside the shared cache.
pub fn mirror() -> MirrorServer {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let read = |path: std::path::PathBuf| std::fs::read_to_string(&path).ok().map(|text| PipFile { path, text });
    let pip_files: Vec<PipFile> = pip_config_paths(&environment).into_iter().filter_map(read).collect();
    let ask_python = || ask_pip(&real_program("python3").ok_or("there is no `python3` on PATH")?);
    let settings = IndexSettings {
        option: None,
        kiln_toml: None,
        environment: &environment,
        pip_files: &pip_files,
        ask_python: &ask_python,
        current_dir: Path::new("/"),
        project_dir: Path::new("/"),
    };
    let upstream = default_index(&settings).expect("an index is known").url.to_string();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mirror-cache");
    MirrorServer::start(&upstream, &MirrorOptions { cache: Some(cache), ..MirrorOptions::default() }).expect("the mirror starts")
}
