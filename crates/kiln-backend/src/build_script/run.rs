//! From the description to the archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_graph::{Config, Event, Executor, Graph, Interrupt, OutputRef, PathRef, WorkDir};
use kiln_object::elf::SymbolKind;
use kiln_object::stub::{Stub, Symbol};
use kiln_toolchain::host::{self, HostCompiler};
use kiln_toolchain::stubs::RuntimeNames;
use kiln_toolchain::{LibraryExports, Processor};

use super::archive;
use super::builder::Build;
use super::error::{BuildError, StepFailure};
use super::library::Library;
use super::places::Places;
use super::vendor::{Provided, Request, Vendor};
use crate::backend::{Component, Lowering};
use crate::compile::CompileProfile;
use crate::flags::{FlagFault, FlagList, audit_flags};
use crate::host::FittingHost;
use crate::source::{Language, SourceKind, classify_source};

/// The C++ levels that all compilers of a library take. The first one, where the build script asks for none, is that of kernels that use
/// no framework.
const CXX_STD: [&str; 4] = ["gnu++20", "c++20", "gnu++17", "c++17"];
/// Where Linux says what the processor is.
const CPUINFO: &str = "/proc/cpuinfo";
/// The directory of `OUT_DIR` with the libraries that only tell names to the linker.
const LINK_DIR: &str = "kiln-link";

/// A library whose steps are described.
struct Planned {
    graph: Graph,
    archive: OutputRef,
    component: Component,
    archs: Vec<String>,
    notes: Vec<String>,
}

/// What running the steps came to.
#[derive(Default)]
struct Told {
    failures: Vec<StepFailure>,
    /// What programs wrote that ended well, each text once: several capabilities of a unit say the same.
    outputs: Vec<String>,
}

impl<V: Vendor> Build<V> {
    /// Compiles what is not up to date, and makes `lib<name>.a` in `OUT_DIR`. Print what it gives: cargo knows nothing of the library before.
    ///
    /// # Errors
    /// When a source is missing or does not compile, there is no compiler or toolkit, or `OUT_DIR` cannot be written to. `main` of a build
    /// script may return the error: it is shown as text for people.
    pub fn compile(&self, name: &str) -> Result<Library, BuildError> {
        let name = library_name(name)?;
        let mut places = Places::new(&self.cargo);
        let sources = self.files.iter().map(|file| places.file(file)).collect::<Result<Vec<_>, _>>()?;
        let include_dirs = self.includes.iter().map(|dir| places.directory(dir)).collect::<Result<Vec<_>, _>>()?;
        if !sources.iter().any(|source| classify_source(&source.path) != SourceKind::Header) {
            return Err(BuildError::NoSource { name: name.to_owned() });
        }
        let mut notes = self.check_flags()?;
        let cache_dir = self.cargo.cache_dir();
        let (search, known) = (self.cargo.host_search(), cache_dir.join("host-compilers-v1.json"));
        let usual = host::find(&search, &known)?.compiler;
        let has_device_code = sources.iter().any(|source| classify_source(&source.path) == SourceKind::Other);
        let provided =
            V::default().provide(&Request { cargo: &self.cargo, cache_dir: &cache_dir, device: &self.device, has_device_code })?;
        let host = FittingHost::choose(usual, &[&*provided.backend], &search, &known);
        notes.extend(host.note);
        let host = host.compiler;
        let component = self.component(name, sources, include_dirs.clone(), &provided);
        let planned = self.plan(name, component, &places, &host, &provided)?;
        notes.extend(planned.notes.iter().cloned());

        let work_dir = WorkDir::open(self.cargo.out_dir().join(format!("kiln-{name}")))?.lock(None, &Interrupt::new(), &mut |_| {})?;
        let cache = if self.shared_cache { Some(self.cargo.actions(&cache_dir)?) } else { None };
        let config = Config { jobs: self.cargo.jobs(), job_server: self.cargo.job_server(), cache, ..Config::default() };
        let told = Mutex::new(Told::default());
        let outcome = Executor::new(&work_dir, config).run(&planned.graph, &|event| {
            told.lock().unwrap_or_else(PoisonError::into_inner).take(event);
        });
        let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !outcome.is_ok() {
            return Err(BuildError::Steps { steps: told.failures });
        }
        notes.extend(told.outputs);

        let made = outcome.output_path(&planned.archive);
        let bytes = std::fs::read(&made).map_err(BuildError::io("read", &made))?;
        let wrong = |wrong| BuildError::DeviceCode { name: name.to_owned(), wrong };
        provided.backend.verify(std::slice::from_ref(&planned.component), &bytes).map_err(wrong)?;
        let archive = self.cargo.out_dir().join(&planned.archive.name);
        write_if_other(&archive, &bytes)?;
        let mut reads = work_dir.files_read(&planned.graph);
        reads.extend(planned.component.sources.iter().map(|source| places.path(source)));
        reads.extend(self.watched(&include_dirs, &places));
        let mut library = Library {
            name: name.to_owned(),
            archive,
            archs: planned.archs,
            runtime_dirs: Vec::new(),
            search_dirs: Vec::new(),
            libraries: Vec::new(),
            reads: reads.into_iter().filter(|path| path.to_str().is_some_and(|text| !text.contains('\n'))).collect(),
            variables: self.variables(&provided),
            warnings: notes,
            ran: outcome.counts().ran,
        };
        self.link(&mut library, &planned.component, &provided)?;
        if !self.cargo_metadata {
            library.search_dirs.clear();
            library.libraries.clear();
        }
        Ok(library)
    }

    /// Refuses flags that no unit can be compiled with, and gives what there is to say of others.
    fn check_flags(&self) -> Result<Vec<String>, BuildError> {
        let mut notes = Vec::new();
        for (list, flags) in [(FlagList::Host, &self.flags), (V::default().flag_list(), &self.device.flags)] {
            for remark in audit_flags(list, flags) {
                match remark.fault {
                    FlagFault::Refused { message, hint } => return Err(BuildError::Flag { message, hint }),
                    FlagFault::MachineBound { message, .. } | FlagFault::NoEffect { message, .. } => notes.push(message),
                    // Its depfile names it, wherever it is.
                    FlagFault::Reads { .. } => {}
                }
            }
        }
        Ok(notes)
    }

    /// The language level of C++ and of device code.
    fn level(&self) -> Result<&'static str, BuildError> {
        let asked = self.std.as_deref().unwrap_or(CXX_STD[0]);
        let hint = "levels are `c++17` and `c++20`, and both with `gnu++`; `.flag(\"-std=..\")` asks the host compiler for another one";
        let none = || BuildError::Capability { entry: asked.to_owned(), what: "C++ level", hint };
        CXX_STD.into_iter().find(|level| *level == asked).ok_or_else(none)
    }

    fn component(&self, name: &str, sources: Vec<PathRef>, include_dirs: Vec<PathRef>, provided: &Provided) -> Component {
        Component {
            sources,
            include_dirs,
            cxx_flags: self.flags.clone(),
            c_flags: self.flags.clone(),
            options: provided.options.clone(),
            ..Component::generated(name)
        }
    }

    /// Describes the steps.
    fn plan(
        &self,
        name: &str,
        component: Component,
        places: &Places,
        host: &HostCompiler,
        provided: &Provided,
    ) -> Result<Planned, BuildError> {
        let backend = &*provided.backend;
        let mut graph = Graph::new();
        places.bind(&mut graph)?;
        let (processor, ambient) = (Processor::described_by(CPUINFO), self.cargo.ambient());
        let architectures = backend.architectures(&component)?;
        let profile = CompileProfile {
            cxx_std: self.level()?,
            defines: std::iter::once(backend.framework_part().define.to_owned()).chain(self.defines.iter().cloned()).collect(),
            mapped_roots: places.others(),
            ..CompileProfile::default()
        };
        let mut lowering = Lowering {
            graph: &mut graph,
            host,
            runtime: Arc::new(RuntimeNames::new(host.runtime.clone())),
            floor: None,
            machine: self.cargo.machine(),
            project: Places::package(),
            launcher: None,
            processor: &processor,
            ambient: &ambient,
            parts: BTreeMap::new(),
            notes: Vec::new(),
        };
        let mut objects = backend.lower(&mut lowering, &component, &profile)?;
        let linked = backend.device_link(&mut lowering, std::slice::from_ref(&component), &objects)?;
        objects.extend(linked);
        let notes = architectures.notes.iter().cloned().chain(std::mem::take(&mut lowering.notes)).collect();
        let archive = archive::add(&mut graph, &format!("lib{name}.a"), &objects)?;
        graph.add_target(name, vec![archive.clone()])?;
        Ok(Planned { graph, archive, component, archs: architectures.names, notes })
    }

    /// Directories in which a new header would count. One that `OUT_DIR` is in changes with every build.
    fn watched(&self, include_dirs: &[PathRef], places: &Places) -> Vec<PathBuf> {
        let dirs = include_dirs.iter().map(|dir| places.path(dir));
        dirs.filter(|dir| dir.starts_with(self.cargo.package()) && !self.cargo.out_dir().starts_with(dir)).collect()
    }

    /// The variables that another value of could lead to another library.
    fn variables(&self, provided: &Provided) -> Vec<String> {
        let compilers = ["CXX", "CC"].into_iter().flat_map(|tool| self.cargo.compiler_variables(tool));
        compilers.chain(provided.variables.iter().cloned()).collect()
    }

    /// What a link needs beside the library.
    fn link(&self, library: &mut Library, component: &Component, provided: &Provided) -> Result<(), BuildError> {
        library.search_dirs.push(self.cargo.out_dir().to_owned());
        let is_cxx = |source: &PathRef| matches!(classify_source(&source.path), SourceKind::Host(Language::Cxx) | SourceKind::Other);
        if let Some(runtime_dir) = &provided.runtime_dir {
            let dir = self.cargo.out_dir().join(LINK_DIR);
            for needed in &provided.backend.framework_part().runtime {
                library.libraries.push(self.names_of(needed, &dir)?);
            }
            library.runtime_dirs.push(runtime_dir.clone());
            library.search_dirs.push(dir);
        }
        if component.sources.iter().any(is_cxx) {
            library.libraries.extend(self.cpp_link_stdlib.clone());
        }
        Ok(())
    }

    /// Writes a library that has the names of `needed` and no code into `dir`, and gives what linkers call it. Toolkits need not have a file
    /// of the name that linkers look for, and a link needs no more than names.
    fn names_of(&self, needed: &LibraryExports, dir: &Path) -> Result<String, BuildError> {
        let LibraryExports { soname, names } = needed;
        let unusable = |cause: String| BuildError::Toolkit { message: format!("`{soname}` cannot be used: {cause}"), hint: None };
        let stem = soname.split(".so").next().unwrap_or_default();
        let name = stem.strip_prefix("lib").unwrap_or(stem).to_owned();
        let names = names.names().ok_or_else(|| unusable("its names are not known".to_owned()))?;
        let symbols = names.iter().map(|name| Symbol::plain(name.clone(), SymbolKind::Function)).collect();
        let stub = Stub::new(soname.clone(), self.cargo.machine(), symbols).write().map_err(|cause| unusable(cause.to_string()))?;
        write_if_other(&dir.join(format!("lib{name}.so")), &stub)?;
        Ok(name)
    }
}

impl Told {
    fn take(&mut self, event: &Event) {
        match event {
            Event::StepFailed { label, failure, command, output, .. } => {
                // Several parts of a unit fail alike.
                if !output.is_empty() && self.failures.iter().any(|known| known.output == *output) {
                    return;
                }
                let (label, failure) = (label.clone(), failure.clone());
                self.failures.push(StepFailure { label, failure, command: command.clone(), output: output.clone() });
            }
            Event::StepFinished { output, .. } | Event::StepRestored { output, .. } => {
                let text = String::from_utf8_lossy(output).trim_end().to_owned();
                if !text.is_empty() && !self.outputs.contains(&text) {
                    self.outputs.push(text);
                }
            }
            _ => {}
        }
    }
}

/// What a linker calls the library: `libx.a` is `x`.
fn library_name(name: &str) -> Result<&str, BuildError> {
    let plain = name.strip_prefix("lib").and_then(|name| name.strip_suffix(".a")).unwrap_or(name);
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-+.".contains(letter);
    if plain.is_empty() || plain.starts_with(['-', '.']) || !plain.chars().all(allowed) {
        return Err(BuildError::Name { name: name.to_owned() });
    }
    Ok(plain)
}

/// Writes a file unless it is there already: what has the same time is not linked again.
fn write_if_other(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    // `OUT_DIR` is this build script's alone, and with it the name.
    let beside = path.with_extension("new");
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&beside, bytes));
    made.and_then(|()| std::fs::rename(&beside, path)).map_err(BuildError::io("write", path))
}
