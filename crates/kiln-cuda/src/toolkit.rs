//! What the CUDA toolkit in a directory is.
//!
//! Where its parts lie is discovery's knowledge. Nothing of a toolkit is run to find out what it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::discover::{Candidate, KitKind, Lack, View, find, identity, of_this_machine};
#[cfg(feature = "wheels")]
use kiln_backend::{Catalog, CatalogToolkit, CudaUse, FetchError, Part, Provisioner};
use kiln_backend::{LibraryExports, MajorMinor, NameSet, PathRef, RootBinding, RootKind, RootName, Version, elf};

/// Where a toolkit came from: for records and messages, and for how relocatable code is linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Wheels of the catalog.
    Wheels,
    /// An installation; by what it was found.
    System(String),
}

/// A CUDA toolkit.
#[derive(Clone, Debug)]
pub struct CudaToolkit {
    /// The release, as far as it is known: `13.2`, or `13.2.86`.
    pub version: Version,
    /// Where it came from.
    pub origin: Origin,
    /// The compiler driver, absolute.
    pub nvcc: PathBuf,
    /// Name of the root that its directories are relative to.
    pub root: RootName,
    /// Where that root lies, and how its files count.
    pub binding: RootBinding,
    /// Directories with headers for the host compiler, in order. Empty where they are in the compiler's own ones.
    pub include_dirs: Vec<PathRef>,
    /// The directory with the runtime's libraries.
    pub library_dir: PathRef,
    /// The shared runtime.
    pub cudart: LibraryExports,
    /// The newest host compilers that its headers take.
    pub limits: HostLimits,
    /// Whether its headers declare functions of mathematics in a way that glibc 2.41 and newer contradicts: those of CUDA 12.9 and older.
    pub contradicts_new_libc: bool,
    /// Digest of what decides its results but for the headers, as lower-case hexadecimal text.
    pub identity: String,
}

/// The newest host compilers that a toolkit's headers take, by major version; none where they do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLimits {
    /// GCC.
    pub gnu: Option<u64>,
    /// Clang.
    pub clang: Option<u64>,
}

/// Why a directory is no toolkit that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolkitError {
    /// Files that it needs are not there.
    #[error("the CUDA toolkit in `{}` lacks {}", dir.display(), quoted(.missing))]
    Incomplete {
        /// The directory.
        dir: PathBuf,
        /// The missing parts.
        missing: Vec<String>,
        /// Wheels that bring them, in a toolkit that wheels made.
        wheels: Vec<String>,
    },
    /// A file is there and cannot be used.
    #[error("the CUDA toolkit in `{}` cannot be used: `{file}`: {reason}", dir.display())]
    Damaged {
        /// The directory.
        dir: PathBuf,
        /// The file below it.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ToolkitError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Incomplete { wheels, .. } if !wheels.is_empty() => Some(format!("install {} into the same place", quoted(wheels))),
            Self::Incomplete { .. } => Some("NVIDIA's installer and the packages of distributions bring all of it".to_owned()),
            Self::Damaged { .. } => None,
        }
    }
}

fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>().join(", ")
}

impl CudaToolkit {
    /// What this machine has in `environment` and its usual places, toolkits that lack something included; only what is in the
    /// directory that `named` tells, if there is one, by the option's name.
    pub fn candidates(environment: &BTreeMap<String, String>, named: Option<(&str, &Path)>) -> Vec<Candidate> {
        of_this_machine(KitKind::Cuda, environment, named)
    }

    /// The toolkit that was found as `kit`, with the digest of what decides its results; what was found out for that is kept in
    /// `cache_dir`.
    ///
    /// # Errors
    /// As [`CudaToolkit::of_kit`], and when its files cannot be read.
    pub fn of_machine(kit: &Candidate, cache_dir: &Path) -> Result<Self, ToolkitError> {
        // What it lacks is the better message.
        Kit::new(kit)?;
        let damaged =
            |cause: std::io::Error| ToolkitError::Damaged { dir: kit.root.clone(), file: ".".to_owned(), reason: cause.to_string() };
        Self::of_kit(kit, identity(kit, cache_dir).map_err(damaged)?)
    }

    /// A toolkit that was found on the machine. Its files may change at any time; `identity` is the digest of what decides its
    /// results.
    ///
    /// # Errors
    /// When a part is missing, all of which are named, or damaged.
    pub fn of_kit(kit: &Candidate, identity: String) -> Result<Self, ToolkitError> {
        Kit::new(kit)?.toolkit(Origin::System(kit.origin.to_string()), identity, RootKind::Mutable)
    }

    /// The toolkit in `dir`, a tree of wheels for `cpu` that never changes under `digest`.
    ///
    /// # Errors
    /// As [`CudaToolkit::of_kit`].
    pub fn of_wheels(dir: &Path, cpu: &str, digest: &str) -> Result<Self, ToolkitError> {
        let view = View { root: Path::new("/"), environment: &BTreeMap::new(), os: "linux", cpu };
        let found = find(KitKind::Cuda, &view, Some(("the catalog", dir)));
        let Some(kit) = found.candidates.first().filter(|kit| kit.root == dir) else {
            return Err(ToolkitError::Damaged { dir: dir.to_owned(), file: "nvcc".to_owned(), reason: "there is no toolkit".to_owned() });
        };
        Kit::new(kit)?.toolkit(Origin::Wheels, digest.to_owned(), RootKind::Immutable { digest: digest.to_owned() })
    }

    /// What the tree of a toolkit is called in the store, and its parts.
    #[cfg(feature = "wheels")]
    pub fn wheel_tree(catalog: &Catalog, known: &CatalogToolkit, uses: &[CudaUse]) -> (String, Vec<Part>) {
        (format!("cuda-{}-{}", known.version, known.platform), catalog.cuda_parts(known, uses))
    }

    /// The toolkit that the catalog calls `known`, fetched unless the store has it.
    ///
    /// # Errors
    /// Those of a fetch, and of a toolkit that lacks a part.
    #[cfg(feature = "wheels")]
    pub fn fetched<E: From<FetchError> + From<ToolkitError>>(
        provisioner: &Provisioner<'_>,
        known: &CatalogToolkit,
        uses: &[CudaUse],
    ) -> Result<Self, E> {
        let (name, parts) = Self::wheel_tree(provisioner.catalog(), known, uses);
        let tree = provisioner.assemble(&name, &parts)?;
        let cpu = known.platform.rsplit('-').next().unwrap_or_default();
        let toolkit = Self::of_wheels(&tree.dir, cpu, &tree.digest)?;
        Ok(Self { version: known.version.clone(), ..toolkit })
    }

    /// The toolkit that [`CudaToolkit::fetched`] would give, for plans: nothing is fetched.
    #[cfg(feature = "wheels")]
    pub fn to_fetch(provisioner: &Provisioner<'_>, known: &CatalogToolkit, uses: &[CudaUse]) -> Self {
        let (name, parts) = Self::wheel_tree(provisioner.catalog(), known, uses);
        let tree = provisioner.planned_tree(&name, &parts);
        let limits = HostLimits { gnu: Some(known.gcc.into()), clang: Some(known.clang.into()) };
        Self { limits, ..Self::planned(&tree.dir, known.version.major_minor(), &tree.digest) }
    }

    /// The toolkit that will be in `dir` once it is fetched, for plans.
    pub fn planned(dir: &Path, release: MajorMinor, digest: &str) -> Self {
        let root = root_name(release, digest);
        let binding = RootBinding { dir: dir.to_owned(), kind: RootKind::Immutable { digest: digest.to_owned() } };
        let place = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
        Self {
            version: Version::from(release),
            origin: Origin::Wheels,
            nvcc: binding.file("bin/nvcc"),
            include_dirs: vec![place("include"), place("include/cccl")],
            library_dir: place("lib"),
            cudart: LibraryExports { soname: format!("libcudart.so.{}", release.major), names: Arc::default() },
            limits: HostLimits::default(),
            contradicts_new_libc: false,
            binding,
            root,
            identity: digest.to_owned(),
        }
    }

    /// The directory with the runtime's libraries.
    pub fn runtime_dir(&self) -> PathBuf {
        self.binding.file(&self.library_dir.path)
    }

    /// Major and minor.
    pub fn release(&self) -> MajorMinor {
        self.version.major_minor()
    }
}

/// What of a path nvcc cannot work with: its parts split lists at commas and paste paths into shell commands.
pub fn unusable_letter(path: &Path) -> Option<char> {
    path.to_string_lossy().chars().find(|letter| matches!(letter, ',' | '"' | '$' | '`' | '\\') || letter.is_control())
}

fn root_name(release: MajorMinor, identity: &str) -> RootName {
    RootName::new(format!("cuda-{release}-{}", identity.get(..16).unwrap_or(identity)))
}

/// A kit all of whose needed parts are there.
struct Kit<'a>(&'a Candidate);

impl<'a> Kit<'a> {
    fn new(kit: &'a Candidate) -> Result<Self, ToolkitError> {
        let missing: Vec<&Lack> = kit.lacks.iter().filter(|lack| lack.must).collect();
        if missing.is_empty() {
            return Ok(Self(kit));
        }
        let mut wheels: Vec<&str> = missing.iter().filter_map(|lack| lack.wheel).collect();
        wheels.sort_unstable();
        wheels.dedup();
        Err(ToolkitError::Incomplete {
            dir: kit.root.clone(),
            missing: missing.iter().map(|lack| lack.name.to_owned()).collect(),
            wheels: wheels.into_iter().map(str::to_owned).collect(),
        })
    }

    fn damaged(&self, file: &Path, reason: impl ToString) -> ToolkitError {
        let file = file.strip_prefix(&self.0.root).unwrap_or(file);
        ToolkitError::Damaged { dir: self.0.root.clone(), file: file.display().to_string(), reason: reason.to_string() }
    }

    fn part(&self, name: &str) -> Result<&Path, ToolkitError> {
        self.0.part(name).ok_or_else(|| self.damaged(Path::new(name), "it is missing"))
    }

    fn text(&self, path: &Path) -> Result<String, ToolkitError> {
        std::fs::read_to_string(path).map_err(|cause| self.damaged(path, cause))
    }

    fn toolkit(&self, origin: Origin, identity: String, kind: RootKind) -> Result<CudaToolkit, ToolkitError> {
        let beside =
            |name: &str| self.0.header_beside("cuda_runtime.h", name).ok_or_else(|| self.damaged(Path::new(name), "it is missing"));
        let header = beside("cuda.h")?;
        let version = version_of(&self.text(&header)?).ok_or_else(|| self.damaged(&header, "it defines no CUDA_VERSION"))?;
        let limits = limits_of(&self.text(self.part("crt/host_config.h")?)?);
        // A toolkit that somebody has mended has another line there. Without the file, nothing is known.
        let mathematics = std::fs::read_to_string(beside("crt/math_functions.h")?).unwrap_or_default();
        let library = self.part("libcudart.so")?;
        let dynamic = elf::dynamic_file(library).map_err(|cause| self.damaged(library, cause))?;
        let soname = dynamic.soname.ok_or_else(|| self.damaged(library, "it has no SONAME"))?;
        let names = NameSet::exact(dynamic.exports.into_iter().map(|export| export.name));
        let root = root_name(version.major_minor(), &identity);
        let place = |path: &Path| {
            let path = path.strip_prefix(&self.0.root).ok()?.to_str()?.to_owned();
            Some(PathRef { root: root.clone(), path })
        };
        // The compiler's own directory, given as another one, is looked into too late for its `#include_next`.
        let include_dirs =
            self.0.include_dirs().iter().filter(|dir| *dir != Path::new("/usr/include")).filter_map(|dir| place(dir)).collect();
        let library_dir = library.parent().and_then(place).ok_or_else(|| self.damaged(library, "its path is not UTF-8"))?;
        Ok(CudaToolkit {
            version,
            origin,
            nvcc: self.part("nvcc")?.to_owned(),
            include_dirs,
            library_dir,
            cudart: LibraryExports { soname, names: Arc::new(names) },
            limits,
            contradicts_new_libc: contradicts_new_libc(&mathematics),
            binding: RootBinding { dir: self.0.root.clone(), kind },
            root,
            identity,
        })
    }
}

/// The release in the text of `cuda.h`: `#define CUDA_VERSION 13020`.
fn version_of(header: &str) -> Option<Version> {
    let line = header.lines().find_map(|line| line.trim().strip_prefix("#define CUDA_VERSION "))?;
    let number: u64 = line.trim().parse().ok()?;
    Version::parse(&format!("{}.{}", number / 1000, number % 1000 / 10)).ok()
}

/// The limits in the text of `host_config.h`: `#if __GNUC__ > 15`, and `(__clang_major__ >= 21)` or `(__clang_major__ > 20)`.
fn limits_of(header: &str) -> HostLimits {
    let after = |text: &str| header.lines().filter(|line| line.trim_start().starts_with("#if")).find_map(|line| number_after(line, text));
    let gnu = after("__GNUC__ > ");
    let clang =
        after("(__clang_major__ >= ").and_then(|first_refused| first_refused.checked_sub(1)).or_else(|| after("(__clang_major__ > "));
    HostLimits { gnu, clang }
}

/// Whether the text of `math_functions.h` declares `sinpi` without an exception specification.
fn contradicts_new_libc(header: &str) -> bool {
    header.lines().any(|line| line.trim_end().ends_with(" sinpi(double x);"))
}

fn number_after(line: &str, text: &str) -> Option<u64> {
    let rest = line.split_once(text)?.1;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_limits_are_read_from_headers() {
        let release = |text: &str| version_of(text).map(|version| version.to_string());
        assert_eq!(release("#ifndef X\n#define CUDA_VERSION 13020\n").as_deref(), Some("13.2"));
        assert_eq!(release("  #define CUDA_VERSION 12060").as_deref(), Some("12.6"));
        assert_eq!(release("#define CUDA_VERSION_X 1"), None);
        let new = "#if __GNUC__ > 15\n#error\n#endif\n#if (__clang_major__ >= 21) || (__clang_major__ < 3)\n#endif";
        assert_eq!(limits_of(new), HostLimits { gnu: Some(15), clang: Some(20) });
        assert_eq!(limits_of("/* __GNUC__ > 3 */"), HostLimits::default());
        assert!(contradicts_new_libc("extern __device_builtin__ double                 sinpi(double x);\n"));
        assert!(!contradicts_new_libc("extern __device_builtin__ double sinpi(double x) __NV_IEC_60559_FUNCS_EXCEPTION_SPECIFIER;"));
        assert!(!contradicts_new_libc("extern __device_builtin__ double sinpi(double x) noexcept (true);"));
    }

    #[test]
    fn what_is_missing_is_named_with_what_brings_it() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("venv/lib/python3.12/site-packages/nvidia/cu13");
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        for name in ["nvcc", "cudafe++", "ptxas", "fatbinary"] {
            std::fs::write(dir.join("bin").join(name), "").unwrap();
        }
        let error = CudaToolkit::of_wheels(&dir, "x86_64", "0").unwrap_err();
        let text = error.to_string().replace(&dir.display().to_string(), "DIR");
        assert_eq!(
            text,
            "the CUDA toolkit in `DIR` lacks `cicc`, `libdevice.10.bc`, `crt/host_config.h`, `cuda_runtime.h`, `libcudart.so`, `cub/cub.cuh`"
        );
    }
}
