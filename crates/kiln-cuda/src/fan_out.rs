//! One unit as several steps: its capabilities beside each other, and the host's half beside them.
//!
//! ```text
//! Splitting  preprocess, cudafe++         -> C++ of the host, module id
//! Compiling  preprocess, cicc, ptxas      -> cubins, PTX; the stub        (for each capability; waits for the module id)
//! Joining    fatbinary                    -> fatbin
//! Embedding  (builtin)                    -> object with the fatbin
//! Generating (builtin)                    -> stub, and what it includes in the fatbin's place
//! Compiling  compile                      -> object of the host's half    (waits for the stub of the last capability)
//! ```
//!
//! The module id is the name of the unit in its device code: cudafe++ takes it from the first function that others may call. Device
//! code that has it cannot be compiled before. The stub is the same for all capabilities, but nvcc takes that of the last one, and so do we.
//!
//! A plain call compiles the host's half when all device code is there, because it includes it. Here the fatbin is an object of its own,
//! and what the host's half includes only names it. Preprocessed text never leaves the step that makes it.

use std::sync::Arc;

use kiln_backend::{
    Action, Arg, BackendError, Builtin, BuiltinError, Call, FlagList, Input, Lowering, Machine, ObjectFile, OutputRef, PathRef, Piece,
    Program, ResourceClass, Scope, Step, StepId, UnitPart, Weight, depfile_args, elf, shows_arguments, unit_compiler, write_file,
};

use crate::dry_run::{File, NAME, PIECE, Parts, SOURCE, TOOLKIT, Word, program};
use crate::lower::{Unit, host_file, own_flags};

const PREPROCESSED: &str = "unit.ii";
const HOST_CODE: &str = "unit.cudafe1.cpp";
const MODULE_ID: &str = "unit.module_id";
const PTX: &str = "unit.ptx";
const FATBIN: &str = "unit.fatbin";
const FATBIN_OBJECT: &str = "unit.fatbin.o";
/// Not what an object of nvcc's is called: it has no device code.
const OBJECT: &str = "unit.host.o";
/// The section of device code.
const SECTION: &str = ".nv_fatbin";
/// A define whose value is another one with every list of capabilities, and that few headers look at.
const ARCH_LIST: &str = "__CUDA_ARCH_LIST__";

/// Expected cost of the parts of a unit without framework headers.
const PLAIN_HOST: Weight = Weight { cpu_ms: 300, memory_mib: 150 };
const PLAIN_DEVICE: Weight = Weight { cpu_ms: 350, memory_mib: 150 };
const SMALL: Weight = Weight { cpu_ms: 20, memory_mib: 20 };

/// A unit, and what its call of nvcc does.
pub(crate) struct Fan<'a, 'b> {
    pub(crate) unit: &'a Unit<'b>,
    pub(crate) parts: &'a Parts,
    /// What the placeholders of paths stand for.
    pub(crate) pieces: &'a [Piece],
    /// The unit's name.
    pub(crate) name: &'a str,
    /// The source, as the compiler is given it.
    pub(crate) source: Arg,
    /// The name of its fatbin, equal for equal units alone.
    pub(crate) symbol: String,
}

impl Fan<'_, '_> {
    /// Adds the steps, and gives the two objects.
    ///
    /// # Errors
    /// When the graph refuses a step.
    pub(crate) fn lower(&self, lowering: &mut Lowering<'_>) -> Result<Vec<ObjectFile>, BackendError> {
        let split = self.split(lowering)?;
        let mut images = Vec::new();
        for at in 0..self.parts.passes.len() {
            images.push(self.device(lowering, at, &split)?);
        }
        let fatbin = self.joined(lowering, &images)?;
        let stub = images.last().map(|step| OutputRef { step: step.clone(), name: self.parts.stub_name.clone() });
        let includes = self.includes(lowering, stub)?;
        let host = self.host(lowering, &split, &includes)?;
        self.note_parts(lowering, &split, &images, &host);
        let source = &self.unit.source.path;
        let object = |step: StepId, name: &str| ObjectFile { output: OutputRef { step, name: name.to_owned() }, source: source.clone() };
        Ok(vec![object(host, OBJECT), object(fatbin, FATBIN_OBJECT)])
    }

    /// Notes which steps belong together.
    fn note_parts(&self, lowering: &mut Lowering<'_>, split: &StepId, images: &[StepId], host: &StepId) {
        let of_passes = self.parts.passes.iter().map(|pass| capability_of(&pass.arch).into_iter().collect());
        let steps = [(split, Vec::new())].into_iter().chain(images.iter().zip(of_passes)).chain([(host, Vec::new())]);
        for (place, (step, capabilities)) in steps.enumerate() {
            let part = UnitPart { unit: host.to_string(), source: self.unit.source.path.clone(), place, capabilities };
            lowering.parts.insert(step.clone(), part);
        }
    }

    /// The host's C++ and the module id.
    fn split(&self, lowering: &mut Lowering<'_>) -> Result<StepId, BackendError> {
        let cudafe = self.parts.cudafe.iter().map(|word| self.arg(word, &|file| file_name(file).map(Arg::from))).collect();
        let call = self.call(&self.parts.programs, "cudafe++", cudafe);
        let program = Program { then: vec![call], ..self.host_program(lowering, &self.parts.preprocess, &|_| scratch())? };
        let outputs = vec![HOST_CODE.to_owned(), MODULE_ID.to_owned()];
        let step = step("Splitting", &self.unit.source.path, program, outputs, self.host_weight());
        Ok(lowering.graph.add(self.reads_source(step))?)
    }

    /// The cubins of a capability, its PTX if that is kept, and its stub if it is the last one.
    fn device(&self, lowering: &mut Lowering<'_>, at: usize, split: &StepId) -> Result<StepId, BackendError> {
        let Some(pass) = self.parts.passes.get(at) else { return Ok(split.clone()) };
        let module_id = Arg::from(OutputRef { step: split.clone(), name: MODULE_ID.to_owned() });
        let is_last = at + 1 == self.parts.passes.len();
        let own = |file: &File| match file {
            File::ModuleId => Some(module_id.clone()),
            File::Stub => Some(Arg::from(if is_last { self.parts.stub_name.as_str() } else { "unit.stub.c" })),
            File::Cubin(_, index) => pass.cubins.get(*index).map(|(arch, _)| Arg::from(cubin(arch))),
            file => file_name(file).map(Arg::from),
        };
        let args = |words: &[Word]| words.iter().map(|word| self.arg(word, &own)).collect();
        let mut then = vec![self.call(&self.parts.cicc_dir, "cicc", args(&pass.cicc))];
        then.extend(pass.cubins.iter().map(|(_, words)| self.call(&self.parts.programs, "ptxas", args(words))));
        let mut outputs: Vec<String> = pass.cubins.iter().map(|(arch, _)| cubin(arch)).collect();
        outputs.extend(pass.keeps_ptx.then(|| PTX.to_owned()));
        outputs.extend(is_last.then(|| self.parts.stub_name.clone()));
        let arch = match pass.cubins.as_slice() {
            [] => pass.arch.clone(),
            cubins => cubins.iter().map(|(arch, _)| arch.as_str()).collect::<Vec<_>>().join(", "),
        };
        let label = format!("{} ({arch})", self.unit.source.path);
        let program = Program { then, ..self.host_program(lowering, &pass.preprocess, &|_| scratch())? };
        let step = step("Compiling", &label, program, outputs, self.device_weight());
        Ok(lowering.graph.add(self.reads_source(step))?)
    }

    /// The object with all device code.
    fn joined(&self, lowering: &mut Lowering<'_>, images: &[StepId]) -> Result<StepId, BackendError> {
        let image = |at: usize, name: String| images.get(at).map(|step| Arg::from(OutputRef { step: step.clone(), name }));
        let own = |file: &File| match file {
            File::Fatbin => Some(Arg(vec![Piece::Own(FATBIN.to_owned())])),
            File::Ptx(at) => image(*at, PTX.to_owned()),
            File::Cubin(at, index) => {
                let (arch, _) = self.parts.passes.get(*at)?.cubins.get(*index)?;
                image(*at, cubin(arch))
            }
            _ => None,
        };
        let toolkit = self.unit.toolkit;
        let args: Vec<Arg> = self.parts.fatbinary.iter().map(|word| self.arg(word, &own)).collect();
        let program = lowering.program(program(toolkit, &self.parts.programs, "fatbinary"), toolkit.identity.as_str(), args);
        let fatbin = lowering.graph.add(step("Joining", &self.unit.source.path, program, vec![FATBIN.to_owned()], SMALL))?;
        Ok(lowering.graph.add(Step {
            verb: "Embedding",
            label: self.unit.source.path.clone(),
            action: Action::Builtin(fatbin_object(lowering.machine, &self.symbol)),
            inputs: vec![Input::Output(OutputRef { step: fatbin, name: FATBIN.to_owned() })],
            outputs: vec![FATBIN_OBJECT.to_owned()],
            weight: Weight { cpu_ms: 5, memory_mib: 20 },
            resource: ResourceClass::Light,
        })?)
    }

    /// What the host's half includes, in steps of its own: what else a capability's step makes is nothing to it.
    fn includes(&self, lowering: &mut Lowering<'_>, stub: Option<OutputRef>) -> Result<[StepId; 2], BackendError> {
        let step = |what: &str, action: Builtin, inputs: Vec<Input>, output: &str| Step {
            verb: "Generating",
            label: format!("{what} of {}", self.unit.source.path),
            action: Action::Builtin(action),
            inputs,
            outputs: vec![output.to_owned()],
            weight: Weight { cpu_ms: 1, memory_mib: 1 },
            resource: ResourceClass::Light,
        };
        let fatbin = write_file(self.parts.fatbin_name.as_str(), declaration(&self.symbol).into_bytes());
        let stub_name = self.parts.stub_name.as_str();
        Ok([
            lowering.graph.add(step("stub", copy(stub_name), stub.map(Input::Output).into_iter().collect(), stub_name))?,
            lowering.graph.add(step("fatbin", fatbin, Vec::new(), &self.parts.fatbin_name))?,
        ])
    }

    /// The object of the host's half.
    fn host(&self, lowering: &mut Lowering<'_>, split: &StepId, includes: &[StepId]) -> Result<StepId, BackendError> {
        let own = |file: &File| match file {
            File::HostCode => Some(Arg::from(OutputRef { step: split.clone(), name: HOST_CODE.to_owned() })),
            File::Object => Some(Arg(vec![Piece::Own(OBJECT.to_owned())])),
            _ => None,
        };
        let mut program = self.host_program(lowering, &self.parts.host, &own)?;
        program.args.extend(includes.iter().flat_map(|step| [Arg::from("-iquote"), Arg(vec![Piece::OutputDir(step.clone())])]));
        Ok(lowering.graph.add(step("Compiling", &self.unit.source.path, program, vec![OBJECT.to_owned()], self.host_weight()))?)
    }

    /// The source stands in the arguments as text.
    fn reads_source(&self, step: Step) -> Step {
        Step { inputs: vec![Input::File(self.unit.source.clone())], ..step }
    }

    /// A run of the host compiler, with a depfile.
    fn host_program(&self, lowering: &Lowering<'_>, words: &[Word], own: &dyn Fn(&File) -> Option<Arg>) -> Result<Program, BackendError> {
        let mut args = self.scoped(words, own);
        args.extend(depfile_args());
        let program = lowering.unit_program(host_file(lowering), lowering.host.identity.as_str(), args);
        unit_compiler(lowering, &[(FlagList::Nvcc, &own_flags(self.unit))], program)
    }

    fn call(&self, dir: &str, name: &str, args: Vec<Arg>) -> Call {
        let toolkit = self.unit.toolkit;
        let libdevice = self.text(&self.parts.libdevice);
        let env = if name == "cicc" { [("NVVMIR_LIBRARY_DIR".to_owned(), libdevice)].into() } else { Default::default() };
        Call { path: program(toolkit, dir, name), tool: toolkit.identity.clone(), args, env }
    }

    /// Arguments of the host compiler. Those that may not matter have their scopes.
    fn scoped(&self, words: &[Word], own: &dyn Fn(&File) -> Option<Arg>) -> Vec<Arg> {
        let profile = self.unit.profile;
        let texts: Vec<String> =
            words.iter().filter_map(|word| if let Word::Text(text) = word { Some(text.clone()) } else { None }).collect();
        let scoped = !shows_arguments(&texts);
        let names: Vec<&str> = profile.scoped_defines.iter().filter_map(|define| define.split('=').next()).chain([ARCH_LIST]).collect();
        let scope_of = |arg: &Arg| {
            if let Some(Piece::Text(text)) = arg.0.first()
                && let Some(define) = text.strip_prefix("-D")
            {
                let name = define.split('=').next().unwrap_or_default();
                return names.contains(&name).then(|| Scope::Word(name.into()));
            }
            let root = arg.0.iter().find_map(|piece| if let Piece::Path(path) = piece { Some(&path.root) } else { None })?;
            let mut libraries = profile.include_dirs.iter().chain(&profile.system_include_dirs);
            libraries.any(|dir| dir.root == *root).then(|| Scope::Root(root.clone()))
        };
        let mut args: Vec<Arg> = Vec::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let arg = self.arg(word, own);
            match word {
                Word::Text(option) if option == "-D" => {
                    let value = words.next().map(|word| self.arg(word, own)).unwrap_or_default();
                    let arg = value.0.into_iter().fold(Arg::from("-D"), and);
                    args.push(in_scope(scoped, &scope_of, arg));
                }
                Word::Text(option) if option == "-isystem" => {
                    let dir = words.next().map(|word| self.arg(word, own)).unwrap_or_default();
                    let scope = scope_of(&dir).filter(|_| scoped);
                    let with = |arg: Arg| match &scope {
                        Some(scope) => arg.scoped(scope.clone()),
                        None => arg,
                    };
                    args.extend([with(arg), with(dir)]);
                }
                _ => args.push(in_scope(scoped, &scope_of, arg)),
            }
        }
        args
    }

    fn arg(&self, word: &Word, own: &dyn Fn(&File) -> Option<Arg>) -> Arg {
        match word {
            Word::Text(text) => self.text(text),
            Word::File(file) => own(file).unwrap_or_default(),
            Word::Joined(text, file) => own(file).unwrap_or_default().0.into_iter().fold(self.text(text), and),
        }
    }

    /// Text with what its placeholders stand for.
    fn text(&self, mut text: &str) -> Arg {
        let mut arg = Arg::default();
        loop {
            let places = [PIECE, TOOLKIT, SOURCE, NAME].into_iter().filter_map(|mark| Some((text.find(mark)?, mark)));
            let Some((at, mark)) = places.min() else { break };
            arg = push(arg, text.get(..at).unwrap_or_default());
            text = text.get(at + mark.len()..).unwrap_or_default();
            arg = match mark {
                SOURCE => self.source.0.iter().cloned().fold(arg, and),
                NAME => push(arg, self.name),
                TOOLKIT => arg.with(Piece::Path(PathRef { root: self.unit.toolkit.root.clone(), path: String::new() })),
                _ => {
                    let (number, rest) = text.split_once('-').unwrap_or((text, ""));
                    text = rest;
                    match number.parse().ok().and_then(|number: usize| self.pieces.get(number)) {
                        Some(piece) => arg.with(piece.clone()),
                        None => arg,
                    }
                }
            };
        }
        push(arg, text)
    }

    fn host_weight(&self) -> Weight {
        // Measured: cudafe++ takes about as long for the host's text as the compiler for what comes of it.
        self.unit.profile.weight.map_or(PLAIN_HOST, |host| Weight { cpu_ms: host.cpu_ms, memory_mib: host.memory_mib.saturating_mul(2) })
    }

    fn device_weight(&self) -> Weight {
        let of_torch = |host: Weight| Weight { cpu_ms: host.cpu_ms.saturating_mul(5) / 4, memory_mib: host.memory_mib.saturating_mul(2) };
        self.unit.profile.weight.map_or(PLAIN_DEVICE, of_torch)
    }
}

fn step(verb: &'static str, label: &str, program: Program, outputs: Vec<String>, weight: Weight) -> Step {
    Step { verb, label: label.to_owned(), action: Action::Run(program), inputs: Vec::new(), outputs, weight, resource: ResourceClass::Cpu }
}

fn in_scope(scoped: bool, scope_of: &dyn Fn(&Arg) -> Option<Scope>, arg: Arg) -> Arg {
    match scope_of(&arg).filter(|_| scoped) {
        Some(scope) => arg.scoped(scope),
        None => arg,
    }
}

fn push(arg: Arg, text: &str) -> Arg {
    if text.is_empty() && !arg.0.is_empty() { arg } else { and(arg, Piece::Text(text.to_owned())) }
}

/// `arg` and a piece more; texts beside each other are one.
fn and(mut arg: Arg, piece: Piece) -> Arg {
    match (arg.0.last_mut(), piece) {
        (Some(Piece::Text(last)), Piece::Text(text)) => last.push_str(&text),
        (_, piece) => arg.0.push(piece),
    }
    arg
}

fn scratch() -> Option<Arg> {
    Some(Arg(vec![Piece::Scratch(PREPROCESSED.to_owned())]))
}

/// The name of a file in the directory of the step that makes it.
fn file_name(file: &File) -> Option<&'static str> {
    match file {
        File::Preprocessed => Some(PREPROCESSED),
        File::HostCode => Some(HOST_CODE),
        File::ModuleId => Some(MODULE_ID),
        File::Unused("c") => Some("unit.c"),
        File::Unused(_) => Some("unit.gpu"),
        File::Ptx(_) => Some(PTX),
        File::Stub | File::Cubin(..) | File::Fatbin | File::Object => None,
    }
}

/// What nvcc's `compute_90a` is called in metadata: `9.0a`.
fn capability_of(arch: &str) -> Option<String> {
    let number = arch.strip_prefix("compute_")?;
    let digits = number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    Some(format!("{major}.{minor}{}", number.get(digits.len()..)?))
}

fn cubin(arch: &str) -> String {
    format!("unit.{arch}.cubin")
}

/// What stands in the place of the text with the fatbin that nvcc lets the stub include: the same variable, whose data are elsewhere.
/// The magic number and the version are those that `fatbinary` writes there.
fn declaration(symbol: &str) -> String {
    format!(
        "#ifndef __SKIP_INTERNAL_FATBINARY_HEADERS\n#include \"fatbinary_section.h\"\n#endif\n\
         #define __CUDAFATBINSECTION \".nvFatBinSegment\"\n#define __CUDAFATBINDATASECTION \"{SECTION}\"\n\
         extern \"C\" {{ extern const unsigned long long {symbol}[] __attribute__((visibility(\"hidden\"))); }}\n\
         static const __fatBinC_Wrapper_t __fatDeviceText __attribute__((aligned(8))) __attribute__((section(__CUDAFATBINSECTION))) =\n\
         {{ 0x466243b1, 1, {symbol}, 0 }};\n"
    )
}

/// A builtin that gives its only input another step.
fn copy(name: &str) -> Builtin {
    let name = name.to_owned();
    Builtin {
        name: "copy",
        version: 1,
        key: name.clone(),
        run: Arc::new(move |context| {
            let failed = |cause: std::io::Error| BuiltinError::new("work-directory", format!("cannot copy `{name}`: {cause}"));
            for input in context.inputs {
                context.copy(input, &name).map_err(failed)?;
            }
            Ok(())
        }),
    }
}

/// A builtin that makes an object of a fatbin.
fn fatbin_object(machine: Machine, symbol: &str) -> Builtin {
    let symbol = symbol.to_owned();
    Builtin {
        name: "fatbin-object",
        version: 1,
        key: format!("{machine:?} {symbol}"),
        run: Arc::new(move |context| {
            let failed = |what: &str, cause: &dyn std::fmt::Display| BuiltinError::new("work-directory", format!("cannot {what}: {cause}"));
            let mut bytes = Vec::new();
            for input in context.inputs {
                bytes = std::fs::read(input).map_err(|cause| failed("read a fatbin", &cause))?;
            }
            let object = elf::data_object(machine, SECTION, &symbol, &bytes).map_err(|cause| failed("write a fatbin", &cause))?;
            context.write(FATBIN_OBJECT, object).map_err(|cause| failed("write a fatbin", &cause))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_the_names_of_metadata() {
        let names = ["compute_80", "compute_90a", "compute_100f", "compute_120"].map(|arch| capability_of(arch).unwrap());
        assert_eq!(names, ["8.0", "9.0a", "10.0f", "12.0"]);
        assert_eq!(capability_of("sm_80"), None);
    }
}
