//! What a file is, without loading it, and which file of a directory is meant.

use std::fs;
use std::path::{Path, PathBuf};

use kiln_format::variant::{ArchFramework, ArchVariant, Compute, Variant};
use kiln_object::elf::{Dynamic, dynamic_file};

use super::CallError;
use crate::hash::{VariantDir, find_variants};
use crate::matrix::{Target, matches};

/// How the names of exported functions begin.
const PREFIX: &str = "__tvm_ffi_";
/// The runtime, by the name that kernels need it by.
const RUNTIME: &str = "libtvm_ffi.so";

/// A built tvm-ffi kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The library.
    pub path: PathBuf,
    /// The functions that it exports, sorted.
    pub functions: Vec<String>,
    /// The libraries that it needs.
    pub needed: Vec<String>,
    /// The variant that it is of, as far as its directory says so.
    pub variant: Option<ArchVariant>,
}

/// What of a directory is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The variant, by name; `*` in it stands for any text and `?` for one character.
    pub variant: Option<String>,
    /// Whether it is for CUDA; the host processor otherwise.
    pub cuda: bool,
    /// Whether the directory is that of a variant, whatever its name is now.
    is_variant: bool,
}

impl Wanted {
    /// A variant of a directory: of those with this name, or whose names are of this form, the one for CUDA or the host.
    pub fn variant(name: Option<String>, cuda: bool) -> Self {
        Self { variant: name, cuda, is_variant: false }
    }

    /// The library of a directory that is itself a variant, such as one under construction.
    pub fn library() -> Self {
        Self { is_variant: true, ..Self::default() }
    }
}

/// The kernel at `path`: a library, a variant, or a project or output directory with variants, of which the one for this `machine`
/// that `wanted` fits is taken.
///
/// # Errors
/// When there is none, there are several, or it is another kind of library.
pub fn find(path: &Path, wanted: &Wanted, machine: Target) -> Result<Kernel, CallError> {
    let Ok(meta) = fs::metadata(path) else { return Err(CallError::Missing { path: path.to_owned() }) };
    if !meta.is_dir() && !meta.is_file() {
        // A pipe would be waited for without end.
        return Err(CallError::NotTvmFfi { path: path.to_owned(), what: "it is no regular file".to_owned() });
    }
    if !meta.is_dir() {
        is_asked_for(dir_of(path), wanted)?;
        return open(path, machine);
    }
    if wanted.is_variant || variant_of(path).is_some() {
        is_asked_for(path, wanted)?;
        return in_variant(path, machine);
    }
    let mut variants = find_variants(path)?;
    let names = |variants: &[VariantDir]| variants.iter().map(|variant| variant.name.clone()).collect::<Vec<_>>();
    if let Some(pattern) = &wanted.variant {
        let all = names(&variants);
        variants.retain(|variant| matches(pattern, &variant.name));
        match variants.as_slice() {
            [] => return Err(CallError::UnknownVariant { name: pattern.clone(), found: all }),
            [one] => return in_variant(&one.path, machine),
            _ => {}
        }
    }
    let fits = |arch: &ArchVariant| {
        let compute = if wanted.cuda { matches!(arch.compute, Compute::Cuda(_)) } else { arch.compute == Compute::Cpu };
        matches!(arch.framework, ArchFramework::TvmFfi { .. }) && compute && arch.cpu == machine.cpu && arch.os == machine.os
    };
    let fitting: Vec<_> =
        variants.iter().filter(|variant| matches!(variant.name.parse::<Variant>(), Ok(Variant::Arch(arch)) if fits(&arch))).collect();
    match fitting.as_slice() {
        [one] => in_variant(&one.path, machine),
        [] => {
            let wanted = format!("of tvm-ffi for {} on {machine}", if wanted.cuda { "cuda" } else { "cpu" });
            Err(CallError::NoVariant { path: path.to_owned(), wanted, found: names(&variants) })
        }
        several => Err(CallError::AmbiguousVariant {
            asked: wanted.variant.is_some(),
            names: several.iter().map(|variant| variant.name.clone()).collect(),
        }),
    }
}

/// Sees that the one variant that is meant anyway is also the one that is asked for.
fn is_asked_for(dir: &Path, wanted: &Wanted) -> Result<(), CallError> {
    let Some(pattern) = &wanted.variant else { return Ok(()) };
    let name = variant_of(dir).map(|variant| Variant::Arch(variant).name());
    match name {
        Some(name) if matches(pattern, &name) => Ok(()),
        name => Err(CallError::UnknownVariant { name: pattern.clone(), found: name.into_iter().collect() }),
    }
}

/// The directory that a file lies in.
fn dir_of(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The variant that a directory is named after.
fn variant_of(dir: &Path) -> Option<ArchVariant> {
    // `.` and `build/..` have names too.
    let dir = fs::canonicalize(dir).ok()?;
    match dir.file_name()?.to_str()?.parse() {
        Ok(Variant::Arch(arch)) => Some(arch),
        _ => None,
    }
}

/// The kernel in the directory of a variant.
fn in_variant(dir: &Path, machine: Target) -> Result<Kernel, CallError> {
    let io = |source| CallError::Read { path: dir.to_owned(), source };
    let mut libraries = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "so" || extension == "dylib" || extension == "dll") {
            libraries.push(path);
        }
    }
    libraries.sort();
    match libraries.as_slice() {
        [one] => open(one, machine),
        [] => Err(CallError::NoLibrary { path: dir.to_owned() }),
        several => Err(CallError::Libraries { paths: several.to_vec() }),
    }
}

/// The kernel in a file.
fn open(path: &Path, machine: Target) -> Result<Kernel, CallError> {
    let other = |what: String| CallError::NotTvmFfi { path: path.to_owned(), what };
    let dynamic = match dynamic_file(path) {
        Ok(dynamic) => dynamic,
        Err(error) => {
            let source = fs::File::open(path).and_then(|mut file| {
                let mut head = [0; 4];
                std::io::Read::read_exact(&mut file, &mut head).map(|()| head)
            });
            return match source {
                Err(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => Err(CallError::Read { path: path.to_owned(), source }),
                Ok([0xcf, 0xfa, 0xed, 0xfe]) => Err(CallError::OtherMachine { path: path.to_owned(), machine: "macOS".to_owned() }),
                Ok([b'M', b'Z', ..]) => Err(CallError::OtherMachine { path: path.to_owned(), machine: "Windows".to_owned() }),
                _ => Err(other(format!("it is no shared library: {error}"))),
            };
        }
    };
    let functions = exported(&dynamic);
    if functions.is_empty() {
        return Err(other(what_it_is(&dynamic)));
    }
    let own = machine.machine();
    if dynamic.machine != own {
        return Err(CallError::OtherMachine { path: path.to_owned(), machine: dynamic.machine.to_string() });
    }
    Ok(Kernel { path: path.to_owned(), functions, needed: dynamic.needed, variant: variant_of(dir_of(path)) })
}

/// The names of the functions that a library exports for tvm-ffi, sorted. What the runtime itself looks for is none.
pub fn exported(dynamic: &Dynamic) -> Vec<String> {
    let names = dynamic.exports.iter().filter_map(|export| export.name.strip_prefix(PREFIX));
    let mut names: Vec<String> = names.filter(|name| !name.is_empty() && !name.starts_with('_')).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// What a library is that exports no function for tvm-ffi.
fn what_it_is(dynamic: &Dynamic) -> String {
    let init = dynamic.exports.iter().find(|export| export.name.starts_with("PyInit_"));
    let needs = |start: &str| dynamic.needed.iter().any(|name| name.starts_with(start));
    match init {
        Some(init) if needs("libtorch") || needs("libc10") => format!("it is an extension of torch, with `{}`", init.name),
        Some(init) => format!("it is an extension of Python, with `{}`", init.name),
        None if dynamic.soname.as_deref() == Some(RUNTIME) => "it is the runtime of tvm-ffi itself".to_owned(),
        None => format!("it exports no `{PREFIX}*` function"),
    }
}
