//! Where the tools for Metal and the compiler for macOS of a variant come from.
//!
//! On a Mac both are Xcode's. Elsewhere a directory with Apple's tools can only be named (DEVELOPER_DIR), and `zig` compiles and links the
//! host's part: what has no shader is built without any of Apple's tools. A plan needs neither.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::discover::apple::{self, MetalPrograms, Zig};
use kiln_backend::discover::{Candidate, Findings, KitKind, Need, View, find};
use kiln_backend::{
    Asked, Backend, BackendName, Family, HostCompiler, HostRuntime, ProvideError, RuntimeFile, SettingKey, Sources, Toolkits, Version,
    Wanted,
};

use crate::backend::MetalBackend;
use crate::settings::{MetalSettings, SettingError};
use crate::shaders::{ShaderGroup, is_shader};
use crate::toolkit::{MetalToolkit, MissingMetal, search_path};

/// The code of errors of toolkits.
const NO_METAL: fn(String) -> ProvideError = |message| ProvideError::new("no-metal", message).with_need(Need::AppleTools);

/// The variable that names a directory of Apple's tools, and that which names a toolchain in one.
const DEVELOPER_DIR: &str = "DEVELOPER_DIR";
const TOOLCHAINS: &str = "TOOLCHAINS";

/// Apple's tools.
#[derive(Clone, Copy, Debug)]
pub struct MetalToolkits;

impl Toolkits for MetalToolkits {
    fn backend(&self) -> BackendName {
        BackendName::Metal
    }

    fn kit(&self) -> Option<KitKind> {
        Some(KitKind::Metal)
    }

    fn settings(&self) -> &'static [SettingKey] {
        fn checked(settings: Result<MetalSettings, SettingError>) -> Result<(), String> {
            settings.map(drop).map_err(|error| error.to_string())
        }
        &[
            SettingKey { name: "deployment-target", check: |text| checked(MetalSettings::of(Some(text), None)) },
            SettingKey { name: "language", check: |text| checked(MetalSettings::of(None, Some(text))) },
        ]
    }

    fn unit_extensions(&self) -> &'static [&'static str] {
        &["m", "mm", "metal"]
    }

    fn stand_in(&self) -> &'static [&'static str] {
        &["unit.metal", "unit.mm"]
    }

    fn has_tvm_ffi(&self) -> bool {
        false
    }

    fn crosses_systems(&self) -> bool {
        true
    }

    fn plans_without_toolkit(&self) -> bool {
        true
    }

    fn has(&self, asked: &Asked<'_>, sources: &Sources<'_>) -> Result<(), String> {
        let found = apple(sources);
        let told = |error: ProvideError| error.told();
        let settings = settings(asked.settings).map_err(told)?;
        let mut sources_of_kernels = asked.build.kernels_for(BackendName::Metal).flat_map(|kernel| &kernel.src);
        // What has no shader needs no compiler of them.
        if sources_of_kernels.any(|source| is_shader(source.value.as_str())) {
            programs(&found, sources).map_err(told)?;
        }
        compiler(&found, &settings, sources).map_err(told).map(drop)
    }

    fn provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError> {
        let settings = settings(wanted.settings)?;
        let shaders = shaders(wanted);
        let found = apple(sources);
        let has_shaders = shaders.iter().any(|group| !group.sources.is_empty());
        let (programs, version, origin, identity) = match programs(&found, sources) {
            Ok((programs, origin)) => {
                let version = version_of(&programs, wanted.fetch, sources);
                let identity = identity(&[&programs.metal, &programs.metallib], &version)?;
                (programs, version, origin, identity)
            }
            // What is only planned is called as it would be on a Mac, and so is what is not called at all.
            Err(_) if wanted.bare || !has_shaders => (MetalPrograms::planned(), String::new(), String::new(), "planned".to_owned()),
            Err(error) => return Err(error),
        };
        let (compiler, ambient) = match compiler(&found, &settings, sources) {
            Ok(compiler) => compiler,
            Err(_) if wanted.bare => (planned_compiler(&settings), BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let toolkit = MetalToolkit { version, origin, programs, identity, compiler, ambient };
        Ok(Arc::new(MetalBackend::new(toolkit, settings, shaders)))
    }
}

/// The shaders of the kernels, each with what its component includes from.
fn shaders(wanted: &Wanted<'_>) -> Vec<ShaderGroup> {
    let kernels = wanted.build.kernels_for(BackendName::Metal).map(|kernel| ShaderGroup {
        sources: kernel
            .src
            .iter()
            .map(|path| path.value.as_str())
            .filter(|path| is_shader(path))
            .map(|path| wanted.in_project(path))
            .collect(),
        include_dirs: wanted.include_dirs(kernel),
    });
    kernels.filter(|group| !group.sources.is_empty()).collect()
}

/// What the table of `kiln.toml` says.
fn settings(table: &BTreeMap<String, String>) -> Result<MetalSettings, ProvideError> {
    let value = |key: &str| table.get(key).map(String::as_str);
    MetalSettings::of(value("deployment-target"), value("language")).map_err(|error| ProvideError::new("metal-setting", error.to_string()))
}

/// What there is of Apple's tools: on a Mac its own, elsewhere what is named.
fn apple(sources: &Sources<'_>) -> Findings {
    let view = sources.view();
    let is_named = sources.environment.get(DEVELOPER_DIR).is_some_and(|dir| !dir.is_empty());
    // Discovery looks for them where they exist; whoever names a directory has a reason.
    find(KitKind::Metal, &View { os: if is_named { "macos" } else { view.os }, ..view }, None)
}

/// The programs that make a library of shaders, and by what they were found.
fn programs(found: &Findings, sources: &Sources<'_>) -> Result<(MetalPrograms, String), ProvideError> {
    let named = sources.environment.get(TOOLCHAINS).map(String::as_str).filter(|value| !value.is_empty());
    if let Some(programs) = named.filter(|value| value.starts_with('/')).and_then(|dir| MetalPrograms::of(Path::new(dir))) {
        return Ok((programs, TOOLCHAINS.to_owned()));
    }
    // What is selected counts, and nothing behind it: two Xcodes are never mixed.
    let selected = found.candidates.first();
    let place = |name: &str| selected.and_then(|kit| apple::developer_program(&kit.root, name));
    let component = place("xcodebuild").and_then(|program| (sources.ask)(&program, &["-showComponent", "MetalToolchain"]));
    if let Some(programs) = component.as_deref().and_then(search_path).and_then(MetalPrograms::of_component) {
        return Ok((programs, "`xcodebuild -showComponent MetalToolchain`".to_owned()));
    }
    if let Some(xcrun) = place("xcrun") {
        let by_name = named.filter(|value| !value.starts_with('/'));
        let question: &[&str] = match by_name {
            Some(name) => &["--toolchain", name, "--find", "metal"],
            None => &["--sdk", "macosx", "--find", "metal"],
        };
        let said = (sources.ask)(&xcrun, question).unwrap_or_default();
        if let Some(programs) = said.lines().next().map(Path::new).filter(|path| path.is_absolute()).and_then(MetalPrograms::of) {
            return Ok((programs, "`xcrun --find metal`".to_owned()));
        }
    }
    let parts = |kit: &Candidate| Some(MetalPrograms { metal: kit.part("metal")?.to_owned(), metallib: kit.part("metallib")?.to_owned() });
    // From Xcode 26 on what stands here only says that the component is missing; it has no `xcodebuild` that knows of one before.
    if let (Some(kit), None) = (selected, place("xcodebuild"))
        && let Some(programs) = parts(kit)
    {
        return Ok((programs, kit.origin.to_string()));
    }
    let missing = MissingMetal::of(&found.candidates);
    let looked =
        if found.looked.is_empty() { format!("looked at {DEVELOPER_DIR}") } else { format!("looked at {}", found.looked.join(", ")) };
    Err(NO_METAL(format!("{missing}; {looked}")).with_hint(missing.hint()))
}

/// What the compiler of shaders says that it is.
fn version_of(programs: &MetalPrograms, ask: bool, sources: &Sources<'_>) -> String {
    let said = if ask { (sources.ask)(&programs.metal, &["--version"]).unwrap_or_default() } else { String::new() };
    said.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit())).unwrap_or("unknown").to_owned()
}

/// The compiler of the host's part, and variables that it needs to work.
type Compiler = (HostCompiler, BTreeMap<String, PathBuf>);

fn compiler(found: &Findings, settings: &MetalSettings, sources: &Sources<'_>) -> Result<Compiler, ProvideError> {
    if let Some(kit) = found.candidates.first()
        && let (Some(clang), Some(sdk)) = (kit.part("clang++"), kit.part("MacOSX.sdk"))
        && sources.view().os == "macos"
    {
        return apple_compiler(clang, sdk, settings, sources);
    }
    match Zig::find(sources.environment) {
        Some(zig) => zig_compiler(&zig, settings, sources),
        None => Err(NO_METAL("there is no compiler for macOS: neither Xcode's `clang++` nor `zig` on PATH or in VIRTUAL_ENV".to_owned())
            .with_hint("on a Mac install Xcode 26 or newer; elsewhere run `pip install ziglang` in a virtual environment".to_owned())),
    }
}

/// Xcode's own.
fn apple_compiler(clang: &Path, sdk: &Path, settings: &MetalSettings, sources: &Sources<'_>) -> Result<Compiler, ProvideError> {
    let stub = apple::sdk_stub(sdk);
    let said = (sources.ask)(clang, &["-dumpversion"]).unwrap_or_default();
    see_release(sdk, settings)?;
    let args = ["-arch", "arm64"].map(str::to_owned).into_iter();
    let args = args.chain([format!("-mmacosx-version-min={}", settings.minimum()), "-isysroot".to_owned(), sdk.display().to_string()]);
    let compiler = HostCompiler {
        path: clang.to_owned(),
        args: args.collect(),
        target: "arm64-apple-darwin".to_owned(),
        ..host_compiler(&said, identity(&[clang, &stub], &said)?, Some(&stub))?
    };
    Ok((compiler, BTreeMap::new()))
}

/// Refuses tools that do not know the oldest macOS that extensions are for.
fn see_release(sdk: &Path, settings: &MetalSettings) -> Result<(), ProvideError> {
    match apple::sdk_version(sdk) {
        Some(known) if known < settings.deployment_target => {
            let missing = MissingMetal::TooOld { dir: sdk.to_owned(), sdk: known.to_string(), wanted: settings.minimum() };
            Err(NO_METAL(missing.to_string()).with_hint(missing.hint()))
        }
        _ => Ok(()),
    }
}

/// zig's C++ library is newer than those of macOS, and is linked statically elsewhere. Extensions take that of the system: its headers are to
/// use what the system has, as Apple's own do.
const OF_APPLE: [&str; 2] = ["-U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS", "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1"];

/// `zig c++`, with the names of macOS's library that come with it. What it keeps between calls is below the cache directory.
fn zig_compiler(zig: &Zig, settings: &MetalSettings, sources: &Sources<'_>) -> Result<Compiler, ProvideError> {
    let said = (sources.ask)(&zig.program, &["c++", "-dumpversion"]).unwrap_or_default();
    let compiler = HostCompiler {
        path: zig.program.clone(),
        args: ["c++", "-target", &format!("aarch64-macos.{}", settings.minimum())].into_iter().chain(OF_APPLE).map(str::to_owned).collect(),
        target: "aarch64-unknown-macos".to_owned(),
        ..host_compiler(&said, identity(&[&zig.program], &said)?, zig.stub.as_deref())?
    };
    Ok((compiler, Zig::ambient(sources.cache_dir)))
}

/// A compiler for a plan on a machine that has none: Xcode's, as it is called on a Mac.
fn planned_compiler(settings: &MetalSettings) -> HostCompiler {
    HostCompiler {
        path: apple::planned_clang().to_owned(),
        args: vec!["-arch".to_owned(), "arm64".to_owned(), format!("-mmacosx-version-min={}", settings.minimum())],
        family: Family::Clang,
        version: Version::from(kiln_backend::MajorMinor::new(0, 0)),
        target: "arm64-apple-darwin".to_owned(),
        identity: "planned".to_owned(),
        runtime: HostRuntime::default(),
        accepts_no_gnu_unique: false,
    }
}

/// What all compilers for macOS have in common.
fn host_compiler(said: &str, identity: String, stub: Option<&Path>) -> Result<HostCompiler, ProvideError> {
    let version = said.lines().next().and_then(|line| Version::parse(line.trim()).ok());
    let version = version.unwrap_or(Version::from(kiln_backend::MajorMinor::new(0, 0)));
    let stub = stub.ok_or_else(|| NO_METAL("the compiler for macOS lacks `libSystem.tbd`, the names of macOS's own library".to_owned()))?;
    let digest = self::identity(&[stub], "")?;
    let libraries = vec![RuntimeFile { name: "libSystem.tbd".to_owned(), path: stub.to_owned(), digest }];
    Ok(HostCompiler {
        path: PathBuf::new(),
        args: Vec::new(),
        family: Family::Clang,
        version,
        target: String::new(),
        identity,
        runtime: HostRuntime { libraries, ..HostRuntime::default() },
        accepts_no_gnu_unique: false,
    })
}

/// Digest of these files and of what one of them says, as lower-case hexadecimal text.
fn identity(files: &[&Path], said: &str) -> Result<String, ProvideError> {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let bytes = std::fs::read(file).map_err(|cause| NO_METAL(format!("cannot read `{}`: {cause}", file.display())))?;
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
    }
    Ok(hasher.update(said.as_bytes()).finalize().to_hex().to_string())
}
