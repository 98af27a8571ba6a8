//! Link stubs: one small library per real one, with just the names that an extension wants of it.
//!
//! Before a link every name that the objects leave undefined is looked up ([`LinkNames::resolve`]) in what may be linked. The
//! rule is the same whatever the linker is, and a name that nothing offers is an error with the object that wants it
//! instead of an import error on a user's machine. [`link_stubs`] is the step that does it.

mod linker;
mod macos;
mod members;
mod message;
mod resolve;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use data_encoding::HEXLOWER;
use kiln_graph::{Builtin, BuiltinContext, BuiltinError};
use kiln_object::demangle::demangle;
use kiln_object::elf::{self, Machine, Relocatable, SymbolKind};
use kiln_object::stub::{Stub, Symbol};

use crate::floor::{Floor, FloorLevel};
use crate::host::{HostRuntime, RuntimeError};
use crate::names::{LibraryExports, NameSet, PythonVersion, is_of_runtime};

pub use self::macos::{CXX_LIBRARY, link_tbds, tbd_name};
pub use self::message::{Reason, Unresolved};
pub use self::resolve::{Resolution, Wanted};

/// The names of what a compiler links by itself, read when they are first asked for and then kept.
#[derive(Debug)]
pub struct RuntimeNames {
    runtime: HostRuntime,
    floor: Option<Arc<Floor>>,
    digest: String,
    names: OnceLock<Result<NameSet, RuntimeError>>,
    of_host: OnceLock<Result<NameSet, RuntimeError>>,
}

impl RuntimeNames {
    /// The names of `runtime`; reads nothing yet.
    pub fn new(runtime: HostRuntime) -> Self {
        Self { digest: runtime.digest(), runtime, floor: None, names: OnceLock::new(), of_host: OnceLock::new() }
    }

    /// The names of a link that keeps to `floor`, whose directory must be there when they are first asked for; the compiler's own
    /// static parts come from `runtime`.
    pub fn of_floor(floor: Arc<Floor>, runtime: HostRuntime) -> Self {
        let digest = format!("{} {}", floor.key(), runtime.digest());
        Self { digest, floor: Some(floor), ..Self::new(runtime) }
    }

    /// The names.
    ///
    /// # Errors
    /// When a file of the runtime cannot be read; the same error each time.
    pub fn get(&self) -> Result<&NameSet, &RuntimeError> {
        let read = || match &self.floor {
            None => self.runtime.names(),
            Some(floor) => {
                let mut names = floor.names().map_err(|(path, cause)| RuntimeError { path, cause })?;
                names.extend(self.runtime.static_names()?);
                Ok(NameSet::exact(names))
            }
        };
        self.names.get_or_init(read).as_ref()
    }

    /// The floor that the names are of, if any.
    fn level(&self) -> Option<FloorLevel> {
        self.floor.as_ref().map(|floor| floor.level())
    }

    /// The floor that keeps `name` out, when the host's runtime has it.
    fn kept_out(&self, name: &str) -> Option<Reason> {
        let floor = self.floor.as_ref()?;
        let of_host = self.of_host.get_or_init(|| self.runtime.names()).as_ref().ok()?;
        let rest_is_missing = is_of_runtime(name) && self.runtime.static_cxx.is_none();
        of_host.contains(name).then(|| Reason::BeyondFloor { floor: floor.level(), rest_is_missing })
    }
}

/// Everything that an extension may take names from.
#[derive(Clone, Debug)]
pub struct LinkNames {
    /// What the libraries below belong to, for messages: `torch 2.13.0`.
    pub provider: String,
    /// The libraries to link with, in link order. A stub is made for each.
    pub linked: Vec<LibraryExports>,
    /// Libraries of the provider that this variant does not link with: a name that only they have is told so.
    pub unlinked: Vec<LibraryExports>,
    /// What the compiler links by itself.
    pub runtime: Arc<RuntimeNames>,
    /// The oldest Python that the extension is for; none when it may not use Python at all.
    pub python: Option<PythonVersion>,
    /// The processor.
    pub machine: Machine,
}

impl LinkNames {
    /// Digest of everything here that decides a result, as lower-case hexadecimal text.
    pub fn identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        add(&self.provider);
        add(&self.machine.to_string());
        add(&self.python.map(|version| version.to_string()).unwrap_or_default());
        add(&self.runtime.digest);
        for libraries in [&self.linked, &self.unlinked] {
            add(&libraries.len().to_string());
            for library in libraries {
                add(&library.soname);
                add(&library.names.digest());
            }
        }
        HEXLOWER.encode(hasher.finalize().as_bytes())
    }

    /// The outputs of [`link_stubs`]: one file per library to link with, called by its SONAME, in link order.
    pub fn outputs(&self) -> Vec<String> {
        self.linked.iter().map(|library| library.soname.clone()).collect()
    }
}

/// The builtin that reads the objects of an extension and writes a stub for every library of `names.linked`.
///
/// Its step's inputs are the objects, in the order of `labels`, which name them in messages (`cpu/relu.cpp`), and behind them static
/// libraries, whose members count as objects where they define what is wanted and nothing else has. Its outputs are [`LinkNames::outputs`]; a library that nothing is wanted of gets a stub without names, which `--as-needed` drops.
/// It fails when an object cannot be read or is for another processor (`object`), when the host's runtime cannot be read
/// (`host-compiler`), and when names are wanted that nothing offers (`undefined-symbol`); all such names are told.
pub fn link_stubs(names: Arc<LinkNames>, labels: Vec<String>) -> Builtin {
    let mut key = names.identity();
    for label in &labels {
        key.push('\n');
        key.push_str(label);
    }
    Builtin { name: "link-stubs", version: 3, key, run: Arc::new(move |context| run(&names, &labels, context)) }
}

fn run(names: &LinkNames, labels: &[String], context: &BuiltinContext<'_>) -> Result<(), BuiltinError> {
    for (library, wanted) in names.linked.iter().zip(look_up(names, labels, context, read)?) {
        let symbols = wanted.into_iter().map(|wanted| Symbol { kind: kind(&wanted), ..Symbol::plain(wanted.name, wanted.kind) }).collect();
        let bytes = Stub::new(&*library.soname, names.machine, symbols)
            .write()
            .map_err(|cause| BuiltinError::new("internal", format!("the stub of `{}`: {cause}", library.soname)))?;
        write(context, &library.soname, &bytes)?;
    }
    Ok(())
}

fn write(context: &BuiltinContext<'_>, name: &str, bytes: &[u8]) -> Result<(), BuiltinError> {
    std::fs::write(context.out_dir.join(name), bytes)
        .map_err(|cause| BuiltinError::new("work-directory", format!("cannot write the stub of `{name}`: {cause}")))
}

/// What is wanted of each library, in their order. Objects are read by `read`.
fn look_up(
    names: &LinkNames,
    labels: &[String],
    context: &BuiltinContext<'_>,
    read: fn(&str, &Path) -> Result<Relocatable, BuiltinError>,
) -> Result<Vec<Vec<Wanted>>, BuiltinError> {
    if context.inputs.len() < labels.len() {
        let message = format!("{} objects, but {} labels", context.inputs.len(), labels.len());
        return Err(BuiltinError::new("internal", message));
    }
    let (paths, archives) = context.inputs.split_at(labels.len());
    let objects = labels.iter().zip(paths).map(|(label, path)| Ok((label.as_str(), read(label, path)?)));
    let mut objects: Vec<(&str, Relocatable)> = objects.collect::<Result<_, BuiltinError>>()?;
    if let Some((label, object)) = objects.iter().find(|(_, object)| object.machine != names.machine) {
        let message = format!("the object of `{label}` is for {}, not for {}", object.machine, names.machine);
        return Err(BuiltinError::new("object", message));
    }
    let failed = |cause: &RuntimeError| BuiltinError::new("host-compiler", cause.to_string());
    let mut resolution = names.resolve(&objects).map_err(failed)?;
    // A static library may be larger than all else together: it is read only for something.
    if !resolution.unresolved.is_empty() && !archives.is_empty() {
        objects.extend(members::wanted(names, &objects, archives)?.into_iter().map(|object| (members::LABEL, object)));
        resolution = names.resolve(&objects).map_err(failed)?;
    }
    if !resolution.unresolved.is_empty() {
        return Err(message::undefined(&resolution.unresolved));
    }
    Ok(resolution.wanted)
}

/// What a stub says that a name is. Objects say it of thread-local data only, and GNU ld warns of data without a type. Wrong
/// is harmless otherwise: a shared library reaches both through its tables.
fn kind(wanted: &Wanted) -> SymbolKind {
    match wanted.kind {
        SymbolKind::Untyped if demangle(&wanted.name).is_some_and(|text| !text.contains('(')) => SymbolKind::Object,
        SymbolKind::Untyped => SymbolKind::Function,
        known => known,
    }
}

fn read(label: &str, path: &Path) -> Result<Relocatable, BuiltinError> {
    let failed = |cause: String| BuiltinError::new("object", format!("cannot read the object of `{label}`: {cause}"));
    let data = std::fs::read(path).map_err(|cause| failed(cause.to_string()))?;
    elf::relocatable(&data).map_err(|cause| failed(cause.to_string()))
}
