//! tvm-ffi out of its wheels, and kernels compiled against it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use kiln_toolchain::{
    AgentOptions, Catalog, IndexSettings, Network, ProvisionOptions, Provisioner, RetryPolicy, TvmFfiRelease, UreqTransport, ask_pip,
    default_index, pip_files,
};

use super::started::real_program;

/// One release.
pub struct TvmFfi {
    /// The include directories.
    pub include: Vec<PathBuf>,
    /// The runtime.
    pub library: PathBuf,
}

/// The `build.toml` of a project called `tiny` with a binding and one kernel for the CPU.
pub fn build_toml(kernel: &str, source: &str) -> String {
    format!(
        r#"[general]
name = "tiny"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[tvm-ffi]
src = ["binding.cpp"]

[kernel.{kernel}]
backend = "cpu"
depends = []
src = ["{source}"]
"#
    )
}

/// The cache directory that has the releases, which tests share.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("tvm-ffi-cache")
}

/// Fetches a release by the caller's way to the index, once per target directory.
pub fn tvm_ffi(version: &str) -> TvmFfi {
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let network = || {
        let ask_python = || ask_pip(&real_program("python3").ok_or("there is no `python3` on PATH")?);
        let pip_files = pip_files(&environment);
        let index = default_index(&IndexSettings::of_machine(&environment, &pip_files, &ask_python, Path::new("/")))?;
        Ok(Network::new(index.url, Arc::new(UreqTransport::new(&AgentOptions::default())?)))
    };
    let catalog = Catalog::embedded().unwrap();
    let options = ProvisionOptions { cache_dir: cache(), lower: Vec::new(), offline: false, retry: RetryPolicy::default() };
    let provisioner = Provisioner::new(&catalog, options, &network, &|_| {});
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let wanted = version.parse().unwrap();
    let release = catalog.tvm_ffi_releases().iter().find(|release| release.version == wanted && release.platform == platform).unwrap();
    let headers = provisioner.assemble(&format!("tvm-ffi-{version}-headers"), &[release.part()]).unwrap();
    // By the name that Kiln itself gives it, so that `--runtime VERSION` finds it offline.
    let runtime = provisioner.assemble(&format!("tvm-ffi-{version}-{platform}-runtime"), &[release.runtime_part()]).unwrap();
    let include = TvmFfiRelease::INCLUDE_DIRS.iter().map(|dir| headers.dir.join(dir)).collect();
    TvmFfi { include, library: runtime.dir.join(release.runtime_library()) }
}

impl TvmFfi {
    /// Compiles the kernels of `tests/call` under a name, with further arguments of the compiler, and gives the library.
    pub fn compile(&self, name: &str, args: &[&str]) -> PathBuf {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("call-kernels");
        std::fs::create_dir_all(&dir).unwrap();
        // Another test process may read the one that is there.
        let (made, library) = (dir.join(format!("{name}-{}", std::process::id())), dir.join(format!("{name}.so")));
        let mut compile = Command::new("c++");
        compile.args(["-std=c++17", "-O0", "-shared", "-fPIC", "-fvisibility=hidden"]).args(args);
        compile.args(self.include.iter().flat_map(|dir| [Path::new("-isystem"), dir.as_path()]));
        compile.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/call/kernels.cpp")).arg("-o").arg(&made).arg(&self.library);
        assert!(compile.status().unwrap().success());
        std::fs::rename(&made, &library).unwrap();
        library
    }
}
