//! What is to be compiled.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::cargo::Cargo;
use super::vendor::{DeviceCode, DeviceOptions, Vendor};

/// Compiles sources of a Rust package into a static library. Each backend crate has it as its own `Build`.
///
/// Every unit is compiled as a kernel of `kiln build` is, optimised and position-independent, whatever cargo's profile: `.flag("-O0")`
/// and `.flag("-g")` say otherwise, since flags come last. Paths are relative to the package, as cargo has it.
#[derive(Clone, Debug)]
pub struct Build<V> {
    pub(super) cargo: Cargo,
    pub(super) files: Vec<PathBuf>,
    pub(super) includes: Vec<PathBuf>,
    pub(super) defines: Vec<String>,
    pub(super) flags: Vec<String>,
    pub(super) std: Option<String>,
    pub(super) cpp_link_stdlib: Option<String>,
    pub(super) shared_cache: bool,
    pub(super) cargo_metadata: bool,
    pub(super) device: DeviceOptions,
    vendor: PhantomData<V>,
}

impl<V: Vendor> Build<V> {
    /// An empty library of the package whose build script has this environment.
    pub fn new(cargo: &Cargo) -> Self {
        Self {
            cargo: cargo.clone(),
            files: Vec::new(),
            includes: Vec::new(),
            defines: Vec::new(),
            flags: Vec::new(),
            std: None,
            cpp_link_stdlib: Some("stdc++".to_owned()),
            shared_cache: true,
            cargo_metadata: true,
            device: DeviceOptions::default(),
            vendor: PhantomData,
        }
    }

    /// Adds a source: C, C++, or what the vendor's compiler takes. A header is an input and no unit.
    pub fn file(&mut self, path: impl AsRef<Path>) -> &mut Self {
        self.files.push(path.as_ref().to_owned());
        self
    }

    /// Adds sources.
    pub fn files<P: AsRef<Path>>(&mut self, paths: impl IntoIterator<Item = P>) -> &mut Self {
        self.files.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Adds a directory with headers; they are looked into in the order in which they are added.
    pub fn include(&mut self, dir: impl AsRef<Path>) -> &mut Self {
        self.includes.push(dir.as_ref().to_owned());
        self
    }

    /// Adds directories with headers.
    pub fn includes<P: AsRef<Path>>(&mut self, dirs: impl IntoIterator<Item = P>) -> &mut Self {
        self.includes.extend(dirs.into_iter().map(|dir| dir.as_ref().to_owned()));
        self
    }

    /// Defines a macro in every unit, with a value or without.
    pub fn define<'a>(&mut self, name: &str, value: impl Into<Option<&'a str>>) -> &mut Self {
        self.defines.push(match value.into() {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        });
        self
    }

    /// Adds a flag of the host compiler, for C and C++ units.
    pub fn flag(&mut self, flag: &str) -> &mut Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Adds flags of the host compiler.
    pub fn flags<F: AsRef<str>>(&mut self, flags: impl IntoIterator<Item = F>) -> &mut Self {
        self.flags.extend(flags.into_iter().map(|flag| flag.as_ref().to_owned()));
        self
    }

    /// The language level of C++ and of device code: `c++17`, `gnu++17`, `c++20`, or `gnu++20`, which it is where nothing is said.
    pub fn std(&mut self, level: &str) -> &mut Self {
        self.std = Some(level.to_owned());
        self
    }

    /// The C++ library that is linked beside one that has C++ in it: `stdc++` where nothing is said, none for code that needs none.
    pub fn cpp_link_stdlib<'a>(&mut self, library: impl Into<Option<&'a str>>) -> &mut Self {
        self.cpp_link_stdlib = library.into().map(str::to_owned);
        self
    }

    /// Whether results are taken from the user's action cache and kept there, which `kiln` and all packages share. They are, unless this says no.
    pub fn shared_cache(&mut self, shared: bool) -> &mut Self {
        self.shared_cache = shared;
        self
    }

    /// Whether the library's lines tell cargo what to link. They do, unless this says no; those that say when to come again are always
    /// there.
    pub fn cargo_metadata(&mut self, told: bool) -> &mut Self {
        self.cargo_metadata = told;
        self
    }
}

impl<V: DeviceCode> Build<V> {
    /// What device code is compiled for, in the vendor's words (`8.0`, `9.0a`, `12.0+PTX`): exactly this. Where nothing is said, the whole
    /// default list of the toolkit.
    pub fn capabilities<C: AsRef<str>>(&mut self, list: impl IntoIterator<Item = C>) -> &mut Self {
        self.device.capabilities = Some(list.into_iter().map(|entry| entry.as_ref().to_owned()).collect());
        self
    }

    /// Adds a flag of the device compiler. One that only a host compiler knows is handed on to that.
    pub fn device_flag(&mut self, flag: &str) -> &mut Self {
        self.device.flags.push(flag.to_owned());
        self
    }

    /// The directory of the toolkit; nothing else is looked at then.
    pub fn toolkit(&mut self, dir: impl AsRef<Path>) -> &mut Self {
        self.device.toolkit = Some(dir.as_ref().to_owned());
        self
    }

    /// The release of the toolkit, such as `13.0`.
    pub fn release(&mut self, release: &str) -> &mut Self {
        self.device.release = Some(release.to_owned());
        self
    }
}
