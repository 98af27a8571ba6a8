//! Building loadable libraries that offer names and do nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Missing};

/// What a made-up function returns.
///
/// - `cudaGetDeviceCount` and what asks for the last error: 100, "no CUDA-capable device is detected";
/// - what the compiler of device code puts into start-up code (`__cudaRegister...`): 0, the call is only noted;
/// - everything else: 999, "unknown error" (other libraries' codes differ, but none has it for success).
pub fn code(name: &str) -> u32 {
    match name {
        "cudaGetDeviceCount" | "cudaGetLastError" | "cudaPeekAtLastError" => 100,
        _ if name.starts_with("__cuda") => 0,
        _ => 999,
    }
}

/// Functions that return text, which callers do not expect to be null.
const TEXT: &[&str] = &[
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cublasGetStatusString",
    "cublasLtGetStatusString",
    "cudnnGetErrorString",
    "cusparseGetErrorString",
    "ncclGetErrorString",
    "ncclGetLastError",
    "nvrtcGetErrorString",
];

/// Writes one shared library per entry to `dir`, with the C compiler `cc`, and gives their paths. A library that is there
/// already is left as it is: a real one is better.
///
/// # Errors
/// When the directory cannot be written or the compiler fails.
pub fn build(missing: &[Missing], dir: &Path, cc: &Path) -> Result<Vec<PathBuf>, Error> {
    std::fs::create_dir_all(dir).map_err(Error::io(dir))?;
    let mut made = Vec::new();
    for library in missing {
        let target = dir.join(&library.soname);
        if target.exists() {
            continue;
        }
        let part = |extension: &str| dir.join(format!(".{}.{extension}", library.soname));
        let (source, map, output) = (part("s"), part("map"), part("so"));
        std::fs::write(&source, assembly(library)).map_err(Error::io(&source))?;
        std::fs::write(&map, version_script(library)).map_err(Error::io(&map))?;
        let result = link(library, cc, &source, &map, &output);
        for file in [&source, &map] {
            std::fs::remove_file(file).map_err(Error::io(file))?;
        }
        result?;
        std::fs::rename(&output, &target).map_err(Error::io(&target))?;
        made.push(target);
    }
    Ok(made)
}

fn link(library: &Missing, cc: &Path, source: &Path, map: &Path, output: &Path) -> Result<(), Error> {
    let failed = |message: String| Error::Compiler { soname: library.soname.clone(), message };
    let mut command = Command::new(cc);
    command.args(["-shared", "-nostdlib", "-Wl,-z,noexecstack"]).arg(format!("-Wl,-soname,{}", library.soname));
    command.arg("-Wl,--version-script").arg(format!("-Wl,{}", map.display())).arg("-o").arg(output).arg(source);
    let result = command.output().map_err(|cause| failed(cause.to_string()))?;
    if result.status.success() { Ok(()) } else { Err(failed(String::from_utf8_lossy(&result.stderr).into_owned())) }
}

/// One function a name. Assembly, since a C compiler has opinions on some of the names.
fn assembly(library: &Missing) -> String {
    let (code_register, text_address) = if cfg!(target_arch = "aarch64") {
        ("mov w0, #", "adrp x0, message\n\tadd x0, x0, :lo12:message")
    } else {
        ("movl $", "leaq message(%rip), %rax")
    };
    let end = if cfg!(target_arch = "aarch64") { "" } else { ", %eax" };
    let mut text = String::from(".section .rodata\nmessage:\t.asciz \"no CUDA here: made for tests\"\n.text\n");
    let mut previous = None;
    for (index, name) in library.names.iter().enumerate() {
        let body = match name.name.as_str() {
            known if TEXT.contains(&known) => text_address.to_owned(),
            other => format!("{code_register}{}{end}", code(other)),
        };
        let symbol = &name.name;
        let label = if name.version.is_some() { format!("{LABEL}{index}") } else { format!("\"{symbol}\"") };
        let _ = writeln!(text, ".globl {label}\n.type {label}, %function\n{label}:\n\t{body}\n\tret");
        if let Some(version) = &name.version {
            // A name at several versions: the first one is the default.
            let at = if previous == Some(symbol) { "@" } else { "@@" };
            let _ = writeln!(text, ".symver {LABEL}{index}, {symbol}{at}{version}");
        }
        previous = Some(symbol);
    }
    text + ".section .note.GNU-stack,\"\",%progbits\n"
}

/// What the labels of versioned names begin with. They are not exported.
const LABEL: &str = "kiln_test_label_";

fn version_script(library: &Missing) -> String {
    let nodes: BTreeSet<&str> = library.names.iter().filter_map(|name| name.version.as_deref()).collect();
    if nodes.is_empty() {
        return "{ global: *; };\n".to_owned();
    }
    nodes.iter().map(|node| format!("{node} {{ local: {LABEL}*; }};\n")).collect()
}
