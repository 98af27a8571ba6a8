//! The files of the catalog in the source tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kiln_toolchain::make_catalog::{Listing, render_cuda, render_headers, render_names, render_torch, render_torch_npu, render_tvm_ffi};
use kiln_toolchain::{Catalog, CudaToolkit, HeaderLibrary, TorchNpuRelease, TorchRelease, TvmFfiRelease};

use crate::stages::Counts;
use crate::workspace::Workspace;

/// Where they lie, relative to the root.
const CATALOG: &str = "crates/kiln-toolchain/catalog";
/// The module that compiles the names files in.
const MODULE: &str = "crates/kiln-toolchain/src/names/files.rs";
/// The tables.
const TABLES: [&str; 6] = ["torch.toml", "torch-npu.toml", "tvm-ffi.toml", "cuda.toml", "cuda-members.toml", "headers.toml"];

/// Entries that were made.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) torch: Vec<TorchRelease>,
    pub(super) torch_npu: Vec<TorchNpuRelease>,
    pub(super) tvm_ffi: Vec<TvmFfiRelease>,
    pub(super) cuda: Vec<CudaToolkit>,
    pub(super) headers: Vec<HeaderLibrary>,
    /// Names files by name.
    pub(super) names: BTreeMap<String, Vec<u8>>,
}

/// The catalog as the source tree has it: not what is compiled into this program.
pub(super) struct Files {
    catalog: Catalog,
    /// Names files by name.
    names: BTreeMap<String, Vec<u8>>,
}

/// What the files should hold, by path relative to the root.
pub(super) struct Wanted(BTreeMap<PathBuf, Vec<u8>>);

impl Files {
    pub(super) fn read(workspace: &Workspace) -> anyhow::Result<Self> {
        let dir = workspace.root.join(CATALOG);
        let read = |name: &str| {
            let path = dir.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
        };
        let tables = TABLES.iter().map(|name| Ok(read(name)? + "\n")).collect::<anyhow::Result<String>>()?;
        let catalog = Catalog::parse(&tables)?;
        let mut names = BTreeMap::new();
        for entry in std::fs::read_dir(dir.join("names"))? {
            let entry = entry?;
            names.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
        }
        Ok(Self { catalog, names })
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What the files should hold with these entries in addition, or in place of those for the same version and platform.
    pub(super) fn with(&self, made: Made) -> anyhow::Result<Wanted> {
        let torch = merged(self.catalog.releases(), &made.torch, |release| (release.version.clone(), release.platform.clone()));
        let torch_npu =
            merged(self.catalog.torch_npu_releases(), &made.torch_npu, |release| (release.torch.clone(), release.platform.clone()));
        let tvm_ffi = merged(self.catalog.tvm_ffi_releases(), &made.tvm_ffi, |release| (release.version.clone(), release.platform.clone()));
        let cuda = merged(self.catalog.cuda_toolkits(), &made.cuda, |toolkit| (toolkit.version.clone(), toolkit.platform.clone()));
        let headers = merged(self.catalog.header_libraries(), &made.headers, |library| library.name.clone());
        let mut names = self.names.clone();
        names.extend(made.names);
        wanted(Made { torch, torch_npu, tvm_ffi, cuda, headers, names })
    }
}

impl Wanted {
    /// Writes what differs. Counts files.
    pub(super) fn write(&self, workspace: &Workspace) -> anyhow::Result<Counts> {
        let mut counts = Counts::default();
        for (path, content) in &self.0 {
            let place = workspace.root.join(path);
            if std::fs::read(&place).ok().as_ref() != Some(content) {
                std::fs::write(&place, content).with_context(|| format!("cannot write `{}`", path.display()))?;
                println!("wrote `{}`", path.display());
            }
            counts.passed += 1;
        }
        for extra in self.superfluous(workspace)? {
            std::fs::remove_file(workspace.root.join(&extra))?;
            println!("removed `{}`", extra.display());
        }
        Ok(counts)
    }

    /// Says what differs. Counts files.
    pub(super) fn compare(&self, workspace: &Workspace) -> anyhow::Result<Counts> {
        let mut counts = Counts::default();
        for (path, content) in &self.0 {
            if std::fs::read(workspace.root.join(path)).ok().as_ref() == Some(content) {
                counts.passed += 1;
            } else {
                println!("`{}` is not what the wheels give", path.display());
                counts.failed += 1;
            }
        }
        for extra in self.superfluous(workspace)? {
            println!("`{}` belongs to no entry", extra.display());
            counts.failed += 1;
        }
        Ok(counts)
    }

    /// Names files that no entry names.
    fn superfluous(&self, workspace: &Workspace) -> anyhow::Result<Vec<PathBuf>> {
        let dir = Path::new(CATALOG).join("names");
        let mut files = Vec::new();
        for entry in std::fs::read_dir(workspace.root.join(&dir))? {
            files.push(dir.join(entry?.file_name()));
        }
        files.retain(|file| !self.0.contains_key(file));
        files.sort();
        Ok(files)
    }
}

/// What the files should hold when these entries are all there is.
pub(super) fn wanted(made: Made) -> anyhow::Result<Wanted> {
    let Made { torch, torch_npu, tvm_ffi, cuda, headers, mut names } = made;
    let torch_names = torch.iter().map(|release| release.names.as_str());
    let cuda_names = cuda.iter().filter_map(|toolkit| toolkit.names.as_deref());
    let npu_names = torch_npu.iter().map(|release| release.names.as_str());
    let used: Vec<&str> =
        torch_names.chain(npu_names).chain(tvm_ffi.iter().map(|release| release.names.as_str())).chain(cuda_names).collect();
    let dir = Path::new(CATALOG);
    let mut files = BTreeMap::from([
        (dir.join("torch.toml"), render_torch(&torch).into_bytes()),
        (dir.join("torch-npu.toml"), render_torch_npu(&torch_npu).into_bytes()),
        (dir.join("tvm-ffi.toml"), render_tvm_ffi(&tvm_ffi).into_bytes()),
        (dir.join("cuda.toml"), render_cuda(&cuda).into_bytes()),
        (dir.join("headers.toml"), render_headers(&headers).into_bytes()),
        (PathBuf::from(MODULE), render_names(used.iter().copied()).into_bytes()),
    ]);
    for name in used {
        if let Some(content) = names.remove(name) {
            files.insert(dir.join("names").join(name), content);
        } else if !files.contains_key(&dir.join("names").join(name)) {
            anyhow::bail!("there is no `{name}`");
        }
    }
    Ok(Wanted(files))
}

/// `known` with `made`, which replaces what has the same key.
fn merged<E: Clone, K: Ord>(known: &[E], made: &[E], key: impl Fn(&E) -> K) -> Vec<E> {
    let mut all: BTreeMap<K, E> = known.iter().map(|entry| (key(entry), entry.clone())).collect();
    all.extend(made.iter().map(|entry| (key(entry), entry.clone())));
    all.into_values().collect()
}

/// The beginning of the file names of the newest file whose version is `version` or one that continues it (`13.0.3.0` for `13.0.3`).
pub(super) fn of_release(listing: &Listing, project: &str, version: &str) -> Option<String> {
    let numbers = |text: &str| text.split('.').map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().ok();
    let continues = |text: &str| text == version || text.strip_prefix(version).is_some_and(|rest| rest.starts_with('.'));
    let versions = listing.files().filter_map(|file| file.strip_suffix(".whl")?.strip_prefix(project)?.split('-').next());
    let newest = versions.filter(|text| continues(text)).filter_map(|text| Some((numbers(text)?, text))).max()?;
    Some(format!("{project}{}-", newest.1))
}

/// The wheel whose file name begins with `prefix` for `platform`; of several the last in order, which is for the newer system.
pub(super) fn wheel_for<'l>(listing: &'l Listing, prefix: &str, platform: &str) -> Option<&'l str> {
    let fits = |file: &str| {
        let tags = file.rsplit('-').next().unwrap_or_default();
        match platform {
            "linux-x86_64" => tags.starts_with("manylinux") && tags.ends_with("_x86_64.whl"),
            "linux-aarch64" => tags.starts_with("manylinux") && tags.ends_with("_aarch64.whl"),
            "darwin-aarch64" => tags.starts_with("macosx") && tags.ends_with("_arm64.whl"),
            "windows-x86_64" => tags == "win_amd64.whl",
            _ => false,
        }
    };
    listing.files().filter(|file| file.starts_with(prefix) && fits(file)).last()
}
