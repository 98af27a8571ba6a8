//! A dry run, read strictly.
//!
//! The commands are joined by the files that they make and read, and only the one shape is taken that a compile of a `.cu` file has:
//!
//! ```text
//! host compiler -E -D__CUDA_ARCH__  -> text of one capability    } for each capability
//! cicc      text, module id         -> PTX, stub                 }
//! ptxas     PTX                     -> cubin                     }
//! host compiler -E                  -> text of the host
//! cudafe++  text of the host        -> C++, module id
//! fatbinary cubins, PTX             -> fatbin
//! host compiler -c C++              -> object; includes the stub of the last capability, which includes the fatbin
//! ```
//!
//! Every word that names one of these files has to stand where such a file is known to be named. So a newer nvcc that does more, or
//! other things, is not understood, rather than taken apart wrongly. Options that name no file are taken as they are.

use super::words::{short, words};
use super::{HOST, NotUnderstood, OBJECT, SOURCE, TOOLKIT};

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Text, with the placeholders of the call.
    Text(String),
    /// A file that the commands hand on.
    File(File),
    /// A file behind the text of its option: `--create=FILE`.
    Joined(String, File),
}

/// A file that the commands hand on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// The preprocessed text of the command's own pass.
    Preprocessed,
    /// The C++ that cudafe++ makes of the host's text.
    HostCode,
    /// The name of the unit within the device code of its program.
    ModuleId,
    /// The C++ that registers kernels.
    Stub,
    /// A file that nobody reads.
    Unused(&'static str),
    /// PTX of the pass at an index.
    Ptx(usize),
    /// A cubin: index of the pass, and of the cubin in it.
    Cubin(usize, usize),
    /// All of the device code.
    Fatbin,
    /// The object.
    Object,
}

/// What is compiled for one capability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Its name: `compute_90a`.
    pub(crate) arch: String,
    /// Arguments of the host compiler, which preprocesses.
    pub(crate) preprocess: Vec<Word>,
    /// Arguments of cicc.
    pub(crate) cicc: Vec<Word>,
    /// Each cubin: its architecture, `sm_90a`, and the arguments of ptxas.
    pub(crate) cubins: Vec<(String, Vec<Word>)>,
    /// Whether the fatbin has its PTX.
    pub(crate) keeps_ptx: bool,
}

/// What a call of nvcc does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The directory of the toolkit's other programs.
    pub(crate) programs: String,
    /// The directory of `cicc`.
    pub(crate) cicc_dir: String,
    /// Where `cicc` finds libdevice.
    pub(crate) libdevice: String,
    /// Arguments of the host compiler that preprocesses for the host.
    pub(crate) preprocess: Vec<Word>,
    /// Arguments of cudafe++.
    pub(crate) cudafe: Vec<Word>,
    /// What is compiled for each capability, in order; the stub of the last one counts.
    pub(crate) passes: Vec<Pass>,
    /// Arguments of fatbinary.
    pub(crate) fatbinary: Vec<Word>,
    /// Arguments of the host compiler that compiles.
    pub(crate) host: Vec<Word>,
    /// The name by which the host's C++ includes the stub.
    pub(crate) stub_name: String,
    /// The name by which the stub includes the fatbin.
    pub(crate) fatbin_name: String,
}

/// What nvcc says about its own place. They decide nothing beyond what the commands show.
const KNOWN_VARIABLES: [&str; 15] = [
    "_NVVM_BRANCH_",
    "_SPACE_",
    "_CUDART_",
    "CUDA_ROOT",
    "_THERE_",
    "_TARGET_SIZE_",
    "_TARGET_DIR_",
    "TOP",
    "LD_LIBRARY_PATH",
    "PATH",
    "INCLUDES",
    "SYSTEM_INCLUDES",
    "LIBRARIES",
    "CUDAFE_FLAGS",
    "PTXAS_FLAGS",
];

/// Reads the text of a dry run whose places are placeholders.
///
/// # Errors
/// What about it is not understood.
pub(crate) fn parse(text: &str) -> Result<Parts, NotUnderstood> {
    let mut reader = Reader::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Some(line) = line.strip_prefix("#$ ") else { return wrong(format!("nvcc says `{}`", short(line))) };
        reader.line(line)?;
    }
    reader.finish()
}

/// What is known while the commands are read.
#[derive(Default)]
struct Reader {
    programs: Option<String>,
    cicc_dir: Option<String>,
    libdevice: Option<String>,
    /// The name of the host's preprocessed text, and the arguments that make it.
    host_text: Option<(String, Vec<Word>)>,
    /// For each pass, the names of its preprocessed text, its stub, its PTX and its cubins.
    files: Vec<PassFiles>,
    passes: Vec<Pass>,
    /// The names of all cubins, without those that the fatbin has.
    cubins: Vec<String>,
    cudafe: Option<Cudafe>,
    fatbinary: Option<Vec<Word>>,
    embedded: Option<String>,
    included: Vec<String>,
    host: Option<Vec<Word>>,
}

#[derive(Default)]
struct PassFiles {
    text: String,
    stub: String,
    ptx: String,
    cubins: Vec<String>,
}

struct Cudafe {
    args: Vec<Word>,
    code: String,
    stub: String,
    module_id: String,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), NotUnderstood> {
        let name = line.split('=').next().unwrap_or_default();
        if line.contains('=') && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return self.variable(name, &line[name.len() + 1..]);
        }
        let all = words(line, self.cicc_dir.as_deref().unwrap_or_default())?;
        let Some((program, args)) = all.split_first() else { return Ok(()) };
        let cicc = self.cicc_dir.as_ref().map(|dir| format!("{dir}/cicc"));
        match program.as_str() {
            "rm" if args.iter().all(|arg| is_made(arg)) => Ok(()),
            HOST if args.iter().any(|arg| arg == "-E") => self.preprocess(args),
            HOST if args.iter().any(|arg| arg == "-c") => self.compile(args),
            "cudafe++" => self.cudafe(args),
            "ptxas" => self.ptxas(args),
            "fatbinary" => self.fatbinary(args),
            program if Some(program) == cicc.as_deref() => self.cicc(args),
            _ => wrong(format!("the command `{}`", short(line))),
        }
    }

    fn variable(&mut self, name: &str, value: &str) -> Result<(), NotUnderstood> {
        match name {
            "_HERE_" => self.programs = Some(in_toolkit(value)?),
            "CICC_PATH" => self.cicc_dir = Some(in_toolkit(value)?),
            "NVVMIR_LIBRARY_DIR" => self.libdevice = Some(in_toolkit(value)?),
            _ if KNOWN_VARIABLES.contains(&name) => {}
            _ => return wrong(format!("the variable `{name}`")),
        }
        Ok(())
    }

    fn preprocess(&mut self, args: &[String]) -> Result<(), NotUnderstood> {
        let mut output = None;
        let words = read(args, |option, value| match option {
            "-o" if is_made(value) => take(&mut output, value, File::Preprocessed),
            _ => None,
        })?;
        let output = output.ok_or_else(|| missing("the output of a preprocessor"))?;
        if args.iter().filter(|arg| *arg == SOURCE).count() != 1 {
            return wrong("a preprocessor without the source");
        }
        match args.iter().any(|arg| arg.starts_with("-D__CUDA_ARCH__=")) {
            true => {
                self.files.push(PassFiles { text: output, ..PassFiles::default() });
                self.passes.push(Pass { preprocess: words, ..Pass::default() });
            }
            false => once(&mut self.host_text, (output, words), "preprocessors for the host")?,
        }
        Ok(())
    }

    fn cudafe(&mut self, args: &[String]) -> Result<(), NotUnderstood> {
        let Some((text, _)) = &self.host_text else { return wrong("cudafe++ before the preprocessor") };
        let (mut code, mut stub, mut module_id, mut input) = (None, None, None, None);
        let words = read(args, |option, value| match option {
            "--gen_c_file_name" if is_made(value) => take(&mut code, value, File::HostCode),
            "--stub_file_name" if is_included(value) => {
                stub = Some(value.to_owned());
                Some(Word::Text(value.to_owned()))
            }
            "--module_id_file_name" if is_made(value) => take(&mut module_id, value, File::ModuleId),
            "" if value == text => take(&mut input, value, File::Preprocessed),
            _ => None,
        })?;
        if !args.iter().any(|arg| arg == "--gen_module_id_file") || input.is_none() {
            return wrong("cudafe++ without a part of what it does");
        }
        let (Some(code), Some(stub), Some(module_id)) = (code, stub, module_id) else { return wrong("cudafe++ without a file") };
        once(&mut self.cudafe, Cudafe { args: words, code, stub, module_id }, "calls of cudafe++")
    }

    fn cicc(&mut self, args: &[String]) -> Result<(), NotUnderstood> {
        let Some(cudafe) = &self.cudafe else { return wrong("cicc before cudafe++") };
        let input = args.iter().find_map(|arg| self.files.iter().position(|files| files.text == *arg));
        let Some((at, (files, pass))) = input.and_then(|at| Some((at, (self.files.get_mut(at)?, self.passes.get_mut(at)?)))) else {
            return wrong("cicc without a preprocessed text");
        };
        let text = files.text.clone();
        let (mut included, mut module_id, mut stub, mut ptx, mut read_text, mut arch) = (None, None, None, None, None, None);
        let words = read(args, |option, value| match option {
            "--include_file_name" if is_included(value) => {
                included = Some(value.to_owned());
                Some(Word::Text(value.to_owned()))
            }
            "--module_id_file_name" if value == cudafe.module_id => take(&mut module_id, value, File::ModuleId),
            "--gen_c_file_name" if is_made(value) => Some(Word::File(File::Unused("c"))),
            "--gen_device_file_name" if is_made(value) => Some(Word::File(File::Unused("gpu"))),
            "--stub_file_name" if is_made(value) => take(&mut stub, value, File::Stub),
            "-o" if is_made(value) => take(&mut ptx, value, File::Ptx(at)),
            "-arch" => {
                arch = Some(value.to_owned());
                Some(Word::Text(value.to_owned()))
            }
            "" if value == text => take(&mut read_text, value, File::Preprocessed),
            _ => None,
        })?;
        let (Some(included), Some(_), Some(stub), Some(ptx), Some(_), Some(arch)) = (included, module_id, stub, ptx, read_text, arch)
        else {
            return wrong("cicc without a file");
        };
        if !pass.cicc.is_empty() || !ptx.ends_with(".ptx") {
            return wrong(format!("what cicc makes for `{arch}`"));
        }
        (pass.cicc, pass.arch) = (words, arch);
        (files.stub, files.ptx) = (stub, ptx);
        self.included.push(included);
        Ok(())
    }

    fn ptxas(&mut self, args: &[String]) -> Result<(), NotUnderstood> {
        let input = args.iter().find_map(|arg| self.files.iter().position(|files| !files.ptx.is_empty() && files.ptx == *arg));
        let Some((at, (files, pass))) = input.and_then(|at| Some((at, (self.files.get_mut(at)?, self.passes.get_mut(at)?)))) else {
            return wrong("ptxas without PTX");
        };
        let (ptx, index) = (files.ptx.clone(), files.cubins.len());
        let (mut cubin, mut read_ptx) = (None, None);
        let words = read(args, |option, value| match option {
            "-o" if is_made(value) => take(&mut cubin, value, File::Cubin(at, index)),
            "" if value == ptx => take(&mut read_ptx, value, File::Ptx(at)),
            _ => None,
        })?;
        let arch = args.iter().find_map(|arg| arg.strip_prefix("-arch=")).ok_or_else(|| missing("an architecture of ptxas"))?;
        let cubin = cubin.ok_or_else(|| missing("the output of ptxas"))?;
        if pass.cubins.iter().any(|(known, _)| known == arch) || self.cubins.contains(&cubin) {
            return wrong(format!("several cubins for `{arch}` of one pass"));
        }
        self.cubins.push(cubin.clone());
        files.cubins.push(cubin);
        pass.cubins.push((arch.to_owned(), words));
        Ok(())
    }

    fn fatbinary(&mut self, args: &[String]) -> Result<(), NotUnderstood> {
        let (mut created, mut words) = (false, Vec::new());
        for arg in args {
            if arg.strip_prefix("--create=").is_some_and(is_made) {
                created = true;
                words.push(Word::Joined("--create=".to_owned(), File::Fatbin));
            } else if let Some(name) = arg.strip_prefix("--embedded-fatbin=").filter(|name| is_made(name)) {
                once(&mut self.embedded, name.to_owned(), "fatbins")?;
            } else if let Some((start, file)) = arg.strip_prefix("--image3=").and_then(|image| image.split_once(",file=")) {
                words.push(Word::Joined(format!("--image3={start},file="), self.image(start, file)?));
            } else {
                words.push(plain(arg)?);
            }
        }
        if !created {
            return wrong("fatbinary without an output");
        }
        once(&mut self.fatbinary, words, "calls of fatbinary")
    }

    /// The file of an image: `kind=elf,sm=90a` or `kind=ptx,sm=90a`.
    fn image(&mut self, start: &str, name: &str) -> Result<File, NotUnderstood> {
        let kind = match start.split_once(',') {
            Some((kind, arch)) if arch.starts_with("sm=") && !arch.contains(',') => kind,
            _ => return wrong(format!("the image `{start}`")),
        };
        for (at, (files, pass)) in self.files.iter().zip(&mut self.passes).enumerate() {
            if kind == "kind=ptx" && files.ptx == name {
                pass.keeps_ptx = true;
                return Ok(File::Ptx(at));
            }
            if kind == "kind=elf"
                && let Some(index) = files.cubins.iter().position(|cubin| cubin == name)
            {
                self.cubins.retain(|cubin| cubin != name);
                return Ok(File::Cubin(at, index));
            }
        }
        wrong(format!("the image `{start}` of a file that nothing made"))
    }

    fn compile(&mut self, args: &[String]) -> Result<(), NotUnderstood> {
        let Some(cudafe) = &self.cudafe else { return wrong("a compile before cudafe++") };
        let (mut object, mut input) = (None, None);
        let words = read(args, |option, value| match option {
            "-o" if value == OBJECT => take(&mut object, value, File::Object),
            "" if value == cudafe.code => take(&mut input, value, File::HostCode),
            _ => None,
        })?;
        if object.is_none() || input.is_none() {
            return wrong("a compile of something else");
        }
        once(&mut self.host, words, "compiles for the host")
    }

    /// All of it, if it fits together.
    fn finish(self) -> Result<Parts, NotUnderstood> {
        let cudafe = self.cudafe.ok_or_else(|| missing("cudafe++"))?;
        let embedded = self.embedded.ok_or_else(|| missing("an embedded fatbin"))?;
        let last = self.files.last().ok_or_else(|| missing("a capability"))?;
        if self.passes.iter().any(|pass| pass.cicc.is_empty() || (pass.cubins.is_empty() && !pass.keeps_ptx)) {
            return wrong("a capability that nothing comes of");
        }
        if let Some(cubin) = self.cubins.first() {
            return wrong(format!("`{}`, which is in no fatbin", base(cubin)));
        }
        let fatbin_name = base(&embedded).to_owned();
        if base(&last.stub) != cudafe.stub || self.included.iter().any(|name| *name != fatbin_name) {
            return wrong("which file includes which");
        }
        Ok(Parts {
            programs: self.programs.ok_or_else(|| missing("the place of nvcc"))?,
            cicc_dir: self.cicc_dir.ok_or_else(|| missing("the place of cicc"))?,
            libdevice: self.libdevice.ok_or_else(|| missing("the place of libdevice"))?,
            preprocess: self.host_text.ok_or_else(|| missing("a preprocessor for the host"))?.1,
            cudafe: cudafe.args,
            passes: self.passes,
            fatbinary: self.fatbinary.ok_or_else(|| missing("fatbinary"))?,
            host: self.host.ok_or_else(|| missing("a compile for the host"))?,
            stub_name: cudafe.stub,
            fatbin_name,
        })
    }
}

/// Reads arguments: `file` says what stands for the value of an option, or for an argument without one (`""`), that names a file.
fn read(args: &[String], mut file: impl FnMut(&str, &str) -> Option<Word>) -> Result<Vec<Word>, NotUnderstood> {
    let mut words: Vec<Word> = Vec::new();
    let mut option = "";
    for arg in args {
        let valued = if option.is_empty() { None } else { file(option, arg) };
        let word = match valued.or_else(|| file("", arg)) {
            Some(word) => word,
            None => plain(arg)?,
        };
        option = match &word {
            Word::Text(_) if arg.starts_with('-') => arg,
            _ => "",
        };
        words.push(word);
    }
    Ok(words)
}

/// A word that names none of the files that commands hand on.
fn plain(arg: &str) -> Result<Word, NotUnderstood> {
    match arg.contains(base(OBJECT)) {
        true => wrong(format!("the argument `{}`", short(arg))),
        false => Ok(Word::Text(arg.to_owned())),
    }
}

fn take(place: &mut Option<String>, value: &str, file: File) -> Option<Word> {
    // A second one is left to be not understood.
    place.is_none().then(|| {
        *place = Some(value.to_owned());
        Word::File(file)
    })
}

fn once<T>(place: &mut Option<T>, value: T, what: &str) -> Result<(), NotUnderstood> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => wrong(format!("several {what}")),
    }
}

/// Whether it is a file that nvcc names after the object.
fn is_made(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|rest| rest.starts_with('.') && !rest.contains('/'))
}

/// Whether it is the bare name of such a file.
fn is_included(name: &str) -> bool {
    name.strip_prefix(base(OBJECT)).is_some_and(|rest| rest.starts_with('.') && !rest.contains('/'))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn in_toolkit(value: &str) -> Result<String, NotUnderstood> {
    match value.starts_with(TOOLKIT) {
        true => Ok(value.to_owned()),
        false => wrong("a part of the toolkit that is not in its directory"),
    }
}

fn missing(what: &str) -> NotUnderstood {
    NotUnderstood(format!("{what} is missing"))
}

fn wrong<T>(what: impl Into<String>) -> Result<T, NotUnderstood> {
    Err(NotUnderstood(what.into()))
}
