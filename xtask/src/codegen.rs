//! `codegen`: writes the bindings of `kiln-ffi` from the headers that they are of, or says whether they still are what these give.
//!
//! The headers come out of packages of the registries. Types alone are taken from them, the types of the functions among them:
//! what is loaded at run time must not be declared, or a linker would look for it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::process;
use crate::setup::{self, FfiHeaders};
use crate::stages::Counts;
use crate::workspace::Workspace;

/// Options of `codegen`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail when a file differs
    #[arg(long)]
    check: bool,
}

/// Bindings of one library.
struct Library {
    /// Name of the module.
    module: &'static str,
    /// Where the headers come from, for people.
    source: &'static str,
    /// What is included.
    headers: &'static [&'static str],
    /// Definitions for the preprocessor.
    defines: &'static [&'static str],
    /// Functions whose types are wanted, by the names that the library exports.
    functions: &'static [&'static str],
    /// Types that are wanted beside those that the functions name.
    types: &'static [&'static str],
    /// Values of enumerations that are wanted: they have many, and releases add to them.
    constants: &'static [&'static str],
    /// Declarations of our own, of functions whose types name what differs between releases: each with its name.
    declared: &'static [(&'static str, &'static str)],
}

impl Library {
    /// All functions that are bound.
    fn loaded(&self) -> impl Iterator<Item = &'static str> {
        self.functions.iter().copied().chain(self.declared.iter().map(|(name, _)| *name))
    }
}

const LIBRARIES: [Library; 4] = [
    Library {
        module: "tvm_ffi",
        source: setup::TVM_FFI_OLDEST,
        headers: &["tvm/ffi/c_api.h", "tvm/ffi/extra/c_env_api.h"],
        defines: &[],
        functions: &[
            "TVMFFIGetVersion",
            "TVMFFIObjectDecRef",
            "TVMFFIFunctionGetGlobal",
            "TVMFFIFunctionCall",
            "TVMFFIErrorMoveFromRaised",
            "TVMFFIErrorSetRaisedFromCStr",
            "TVMFFIStringFromByteArray",
            "TVMFFITensorFromDLPackVersioned",
            "TVMFFIEnvSetDLPackManagedTensorAllocator",
        ],
        types: &["TVMFFIObject", "TVMFFIErrorCell", "TVMFFISafeCallType", "DLManagedTensorVersioned", "TVMFFITypeIndex", "DLDataTypeCode"],
        constants: &[
            "kTVMFFINone",
            "kTVMFFIInt",
            "kTVMFFIBool",
            "kTVMFFIFloat",
            "kTVMFFIOpaquePtr",
            "kTVMFFIDataType",
            "kTVMFFIDevice",
            "kTVMFFIRawStr",
            "kTVMFFISmallStr",
            "kTVMFFIStr",
            "kTVMFFITensor",
            "kTVMFFIStaticObjectBegin",
            "kDLCPU",
            "kDLCUDA",
            "kDLInt",
            "kDLUInt",
            "kDLFloat",
            "kDLBfloat",
            "kDLBool",
        ],
        declared: &[],
    },
    Library {
        module: "cuda",
        source: setup::CUDA_HEADERS,
        headers: &["cuda.h"],
        defines: &[],
        functions: &[
            "cuInit",
            "cuGetErrorName",
            "cuGetErrorString",
            "cuDeviceGetCount",
            "cuDeviceGet",
            "cuDeviceGetName",
            "cuDeviceGetAttribute",
            "cuDeviceTotalMem_v2",
            "cuDevicePrimaryCtxRetain",
            "cuCtxSetCurrent",
            "cuCtxSynchronize",
            "cuMemAlloc_v2",
            "cuMemFree_v2",
            "cuMemcpyHtoD_v2",
            "cuMemcpyDtoH_v2",
            "cuMemcpyDtoD_v2",
        ],
        types: &[],
        constants: &[
            "CUDA_SUCCESS",
            "CUDA_ERROR_NO_DEVICE",
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
        ],
        declared: &[],
    },
    Library {
        module: "hip",
        source: "the Debian package libamdhip64-dev",
        headers: &["hip/hip_runtime_api.h"],
        defines: &["__HIP_PLATFORM_AMD__"],
        functions: &["hipInit", "hipGetDeviceCount", "hipGetErrorName"],
        types: &[],
        constants: &["hipSuccess", "hipErrorNoDevice"],
        declared: &[("hipGetDeviceProperties", "hipError_t (*hipGetDeviceProperties_fn)(void*, int)")],
    },
    Library {
        module: "level_zero",
        source: "the Debian package libze-dev",
        headers: &["level_zero/ze_api.h"],
        defines: &[],
        functions: &["zeInit", "zeDriverGet", "zeDeviceGet", "zeDeviceGetProperties"],
        types: &[],
        constants: &["ZE_RESULT_SUCCESS", "ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES", "ZE_DEVICE_TYPE_GPU"],
        declared: &[],
    },
];

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let mut differing = Vec::new();
    for file in made(workspace)? {
        if file.is_fresh() {
            continue;
        }
        if !options.check {
            std::fs::write(&file.path, &file.text).with_context(|| format!("cannot write `{}`", file.path.display()))?;
            println!("wrote {}", file.path.display());
        }
        differing.push(file.name);
    }
    if options.check && !differing.is_empty() {
        bail!("{} differ from what `cargo xtask codegen` writes", differing.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares all bindings with their headers. Counts files.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    for file in made(workspace)? {
        if !file.is_fresh() {
            println!("{} differs from what `cargo xtask codegen` writes", file.name);
        }
        counts = counts.plus(if file.is_fresh() { Counts::ONE } else { Counts { passed: 0, failed: 1 } });
    }
    Ok(counts)
}

/// Bindings as the headers give them.
struct Made {
    name: String,
    path: PathBuf,
    text: String,
}

impl Made {
    fn is_fresh(&self) -> bool {
        std::fs::read_to_string(&self.path).is_ok_and(|old| old == self.text)
    }
}

fn made(workspace: &Workspace) -> anyhow::Result<Vec<Made>> {
    let headers = setup::ffi_headers(workspace)?;
    let bindgen = setup::bindgen(workspace)?;
    let mut all = Vec::new();
    for library in &LIBRARIES {
        let bindings = |include: &[PathBuf]| {
            bindings(workspace, &bindgen, &headers, library, include).with_context(|| format!("no bindings for {}", library.module))
        };
        let text = bindings(&headers.include_of(library.module))?;
        if library.module == "tvm_ffi" {
            // What is bound must be the same in every release that a kernel may meet.
            let newest = bindings(&headers.newest_tvm_ffi())?;
            let newest: BTreeSet<&str> = newest.lines().collect();
            if let Some(line) = text.lines().find(|line| !newest.contains(line)) {
                bail!("{} has it otherwise than {}: `{line}`", setup::TVM_FFI_NEWEST, setup::TVM_FFI_OLDEST);
            }
        }
        let name = format!("kiln-ffi/src/ffi/generated/{}.rs", library.module);
        all.push(Made { path: workspace.root.join("crates").join(&name), name, text });
    }
    Ok(all)
}

fn bindings(
    workspace: &Workspace,
    bindgen: &setup::Bindgen,
    headers: &FfiHeaders,
    library: &Library,
    include: &[PathBuf],
) -> anyhow::Result<String> {
    let scratch = tempfile::tempdir()?;
    let wrapper = scratch.path().join("wrapper.h");
    let mut text: String = library.headers.iter().map(|header| format!("#include <{header}>\n")).collect();
    for name in library.functions {
        text.push_str(&format!("typedef __typeof__(&{name}) {name}_fn;\n"));
    }
    for (_, declaration) in library.declared {
        text.push_str(&format!("typedef {declaration};\n"));
    }
    std::fs::write(&wrapper, text)?;

    let mut command = Command::new(&bindgen.program);
    command.env("LIBCLANG_PATH", &bindgen.libclang).env_remove("BINDGEN_EXTRA_CLANG_ARGS");
    command.args(["--no-doc-comments", "--no-prepend-enum-name", "--use-core", "--disable-header-comment"]);
    command.args(["--generate", "types,vars", "--default-enum-style", "consts", "--formatter", "rustfmt"]);
    command.arg("--rustfmt-configuration-file").arg(workspace.root.join("rustfmt.toml"));
    command.args(["--rust-edition", "2024", "--rust-target", "1.85"]);
    // What a kernel throws and nobody catches comes out of these.
    command.args(["--override-abi", "TVMFFI(SafeCallType|FunctionCall).*=C-unwind"]);
    for name in library.types.iter().map(|name| (*name).to_owned()).chain(library.loaded().map(|name| format!("{name}_fn"))) {
        command.args(["--allowlist-type", &name]);
    }
    for name in library.constants {
        command.args(["--allowlist-var", name]);
    }
    command.arg(&wrapper).args(["--", "-xc", "-std=c11", "--target=x86_64-linux-gnu"]);
    command.args(library.defines.iter().map(|name| format!("-D{name}")));
    for dir in include.iter().chain(&headers.builtin) {
        command.arg("-isystem").arg(dir);
    }
    let written = process::output(&mut command)?;
    let made = scratch.path().join("made.rs");
    std::fs::write(&made, format!("{}{}", head(library), chosen(&written, library)?))?;
    // What was left out leaves room on its line.
    process::output(
        Command::new("rustfmt").args(["--edition", "2024", "--config-path"]).arg(workspace.root.join("rustfmt.toml")).arg(&made),
    )?;
    Ok(std::fs::read_to_string(&made)?)
}

fn head(library: &Library) -> String {
    format!("// Types of {}, from {}. Written by `cargo xtask codegen`.\n\n", library.headers.join(" and "), library.source)
}

/// What is kept of `written`: everything but the values of enumerations that nobody asked for, and attributes that the module has.
fn chosen(written: &str, library: &Library) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut found = BTreeSet::new();
    for line in written.lines().filter(|line| !line.starts_with("#[allow(")) {
        let Some((name, _)) = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(':')) else {
            // `size_t` was resolved to what it is on the system that the headers were read for.
            text.push_str(&line.replace("::core::ffi::c_ulong,", "usize,").replace("::core::ffi::c_ulong)", "usize)"));
            text.push('\n');
            continue;
        };
        if !line.ends_with(';') {
            bail!("a constant of more than one line: `{line}`");
        }
        if library.constants.contains(&name) {
            found.insert(name);
            text.push_str(line);
            text.push('\n');
        }
    }
    if let Some(name) = library.constants.iter().find(|name| !found.contains(**name)) {
        bail!("there is no constant `{name}`");
    }
    if let Some(name) = library.loaded().find(|name| !text.contains(&format!("pub type {name}_fn "))) {
        bail!("there is no function `{name}`");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_enumeration_only_what_is_named_is_kept() {
        let library = Library {
            constants: &["B"],
            functions: &["f"],
            ..Library { module: "", source: "", headers: &[], defines: &[], functions: &[], types: &[], constants: &[], declared: &[] }
        };
        let written = "pub const A: E = 0;\npub const B: E = 1;\npub type E = u32;\n#[allow(x)]\npub type f_fn = u8;\n";
        assert_eq!(chosen(written, &library).unwrap(), "pub const B: E = 1;\npub type E = u32;\npub type f_fn = u8;\n");
        assert!(chosen("pub type f_fn = u8;\n", &library).unwrap_err().to_string().contains("no constant `B`"));
        assert!(chosen("pub const B: E = 1;\n", &library).unwrap_err().to_string().contains("no function `f`"));
    }
}
