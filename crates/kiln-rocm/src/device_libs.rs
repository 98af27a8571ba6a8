//! The device libraries that a compiler looks for and does not find, because it is newer than they are.
//!
//! They hold mathematics for all processors (`ocml`, `ockl`), and for each setting a module with one constant that says which it is. For
//! processors that are newer than the libraries, the modules with the numbers of the processor and of the layout of code objects
//! are made here, by the compiler that reads them, and stand in a directory with the others.

use std::sync::Arc;

use kiln_backend::{
    Action, Arg, BackendError, Builtin, BuiltinError, Input, Lowering, OutputRef, PathRef, Piece, ResourceClass, Step, StepId, Weight,
    generate,
};

use crate::arch::Target;
use crate::toolkit::RocmToolkit;

const SMALL: Weight = Weight { cpu_ms: 50, memory_mib: 60 };
/// The layout of code objects that compilers since Clang 18 write, and the one that generic targets need.
const LAYOUT: u32 = 500;
const LAYOUT_OF_GENERIC: u32 = 600;

/// Where a compilation finds its device libraries.
pub(crate) enum DeviceLibs {
    /// Those of the toolkit serve.
    Own,
    /// They stand in the outputs of this step.
    Made(StepId),
}

/// A module with one constant.
struct Constant {
    file: String,
    name: &'static str,
    value: u32,
}

/// The modules that a compilation for `target` needs beside the libraries: its processor's, and the layout's.
fn constants(target: &Target) -> [Constant; 2] {
    let (major, minor, stepping) = target.numbers();
    let layout = if target.is_generic() { LAYOUT_OF_GENERIC } else { LAYOUT };
    let arch = target.processor().strip_prefix("gfx").unwrap_or_default();
    // What the libraries ask of the number is the generation alone. Of a family, it is that of its first member.
    let number = major * 1000 + minor * 100 + stepping;
    [
        Constant { file: format!("oclc_isa_version_{arch}.bc"), name: "__oclc_ISA_version", value: number },
        Constant { file: format!("oclc_abi_version_{layout}.bc"), name: "__oclc_ABI_version", value: layout },
    ]
}

/// The device libraries for `target`; adds the steps that make what the toolkit lacks.
///
/// # Errors
/// When the graph refuses a step.
pub(crate) fn provide(lowering: &mut Lowering<'_>, toolkit: &RocmToolkit, target: &Target) -> Result<DeviceLibs, BackendError> {
    let missing: Vec<Constant> =
        constants(target).into_iter().filter(|constant| !toolkit.device_lib_names.contains(&constant.file)).collect();
    if missing.is_empty() {
        return Ok(DeviceLibs::Own);
    }
    let mut inputs = Vec::new();
    let mut names = Vec::new();
    for name in &toolkit.device_lib_names {
        inputs.push(Input::File(PathRef { path: format!("{}/{name}", toolkit.device_libs.path), ..toolkit.device_libs.clone() }));
        names.push(name.clone());
    }
    for constant in missing {
        let module = assemble(lowering, toolkit, &constant)?;
        inputs.push(Input::Output(OutputRef { step: module, name: constant.file.clone() }));
        names.push(constant.file);
    }
    let step = lowering.graph.add(Step {
        verb: "Generating",
        label: format!("device libraries ({target})"),
        action: Action::Builtin(gather(&names)),
        inputs,
        outputs: names,
        weight: Weight { cpu_ms: 5, memory_mib: 5 },
        resource: ResourceClass::Light,
    })?;
    Ok(DeviceLibs::Made(step))
}

/// Adds the steps that make a module with one constant.
fn assemble(lowering: &mut Lowering<'_>, toolkit: &RocmToolkit, constant: &Constant) -> Result<StepId, BackendError> {
    let Constant { file, name, value } = constant;
    // Without a layout of data in the text the compiler takes its own. Debian's libraries are made with the same attributes.
    let text = format!(
        "target triple = \"amdgcn-amd-amdhsa\"\n@{name} = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {value}, align 4\n"
    );
    let source = OutputRef { step: generate(lowering.graph, "module.ll", &text)?, name: "module.ll".to_owned() };
    let mut args: Vec<Arg> =
        ["--target=amdgcn-amd-amdhsa", "-nogpulib", "-x", "ir", "-emit-llvm", "-Wno-override-module", "-c"].map(Arg::from).to_vec();
    args.extend([Arg::from(source), Arg::from("-o"), Arg(vec![Piece::Own(file.clone())])]);
    let program = lowering.program(toolkit.clang.as_path(), toolkit.identity.as_str(), args);
    Ok(lowering.graph.add(Step {
        verb: "Generating",
        label: file.clone(),
        action: Action::Run(program),
        inputs: Vec::new(),
        outputs: vec![file.clone()],
        weight: SMALL,
        resource: ResourceClass::Cpu,
    })?)
}

/// A builtin that gives its inputs one directory, by these names.
fn gather(names: &[String]) -> Builtin {
    let names = names.to_vec();
    Builtin {
        name: "gather",
        version: 1,
        key: names.join("\n"),
        run: Arc::new(move |context| {
            for (input, name) in context.inputs.iter().zip(&names) {
                context.copy(input, name).map_err(|cause| BuiltinError::new("work-directory", format!("cannot copy `{name}`: {cause}")))?;
            }
            Ok(())
        }),
    }
}

/// Whether code for `target` must ask for the newer layout.
pub(crate) fn layout_flag(target: &Target) -> Option<&'static str> {
    target.is_generic().then_some("-mcode-object-version=6")
}
