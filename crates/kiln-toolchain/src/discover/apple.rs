//! The places of Apple's tools, and of a compiler for macOS on other systems.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln_format::Version;

/// The programs that make a library of Metal shaders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetalPrograms {
    /// Compiles a shader.
    pub metal: PathBuf,
    /// Joins what was compiled.
    pub metallib: PathBuf,
}

impl MetalPrograms {
    /// Those of a toolchain, by its directory or by the path of its `metal`, if both are there.
    pub fn of(toolchain: &Path) -> Option<Self> {
        let bin = if toolchain.file_name()? == "metal" { toolchain.parent()?.to_owned() } else { toolchain.join("usr/bin") };
        let programs = Self { metal: bin.join("metal"), metallib: bin.join("metallib") };
        (programs.metal.is_file() && programs.metallib.is_file()).then_some(programs)
    }

    /// Those of the toolchain that is called `Metal` in a directory of toolchains.
    pub fn of_component(search_path: &str) -> Option<Self> {
        Self::of(&Path::new(search_path).join("Metal.xctoolchain"))
    }

    /// Where Xcode has them, for a plan on a machine that has none.
    pub fn planned() -> Self {
        let bin = Path::new("/Applications/Xcode.app/Contents/Developer/Toolchains/Metal.xctoolchain/usr/bin");
        Self { metal: bin.join("metal"), metallib: bin.join("metallib") }
    }
}

/// Where Xcode has its compiler of C++, for a plan on a machine that has none.
pub fn planned_clang() -> &'static Path {
    Path::new("/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/bin/clang++")
}

/// A program of the developer directory itself, such as `xcrun`, if it is there.
pub fn developer_program(developer: &Path, name: &str) -> Option<PathBuf> {
    Some(developer.join("usr/bin").join(name)).filter(|path| path.is_file())
}

/// The stub of the system's own library in an SDK.
pub fn sdk_stub(sdk: &Path) -> PathBuf {
    sdk.join("usr/lib/libSystem.tbd")
}

/// The release of macOS that an SDK is of, by its settings.
pub fn sdk_version(sdk: &Path) -> Option<Version> {
    let text = std::fs::read_to_string(sdk.join("SDKSettings.json")).ok()?;
    let value = text.split("\"Version\"").nth(1)?.split('"').nth(1)?;
    Version::parse(value).ok()
}

/// `zig`, a compiler for every system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zig {
    /// The program.
    pub program: PathBuf,
    /// The stub of macOS's own library that comes with it.
    pub stub: Option<PathBuf>,
}

impl Zig {
    /// The first on `PATH`, or else that of the wheel in the virtual environment that `VIRTUAL_ENV` names.
    pub fn find(environment: &BTreeMap<String, String>) -> Option<Self> {
        let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
        let on_path = path.split(':').filter(|dir| dir.starts_with('/')).map(|dir| Path::new(dir).join("zig"));
        let lib = environment.get("VIRTUAL_ENV").map(|dir| Path::new(dir).join("lib"));
        let pythons = lib.and_then(|lib| std::fs::read_dir(lib).ok()).into_iter().flatten().filter_map(Result::ok);
        let mut of_wheels: Vec<PathBuf> = pythons.map(|entry| entry.path().join("site-packages/ziglang/zig")).collect();
        of_wheels.sort();
        let found = on_path.chain(of_wheels).find(|zig| zig.is_file())?;
        // Its library lies beside what a link leads to.
        let program = found.canonicalize().unwrap_or(found);
        let dir = program.parent()?;
        let places = ["lib/libc/darwin/libSystem.tbd", "../lib/zig/libc/darwin/libSystem.tbd", "../lib/libc/darwin/libSystem.tbd"];
        let stub = places.iter().map(|place| dir.join(place)).find(|path| path.is_file());
        Some(Self { program, stub })
    }

    /// The variables by which what it keeps between calls goes below `cache_dir`.
    pub fn ambient(cache_dir: &Path) -> BTreeMap<String, PathBuf> {
        let cache = cache_dir.join("zig");
        ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"].map(|name| (name.to_owned(), cache.clone())).into()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn programs_are_there_together() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("Metal.xctoolchain/usr/bin");
        file(&bin.join("metal"), "");
        assert_eq!(MetalPrograms::of_component(&dir.path().display().to_string()), None);
        file(&bin.join("metallib"), "");
        let found = MetalPrograms::of_component(&dir.path().display().to_string()).unwrap();
        assert_eq!(MetalPrograms::of(&bin.join("metal")), Some(found));
    }

    #[test]
    fn an_sdk_says_its_release() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(sdk_version(dir.path()), None);
        file(&dir.path().join("SDKSettings.json"), "{\"CanonicalName\":\"macosx15.5\", \"Version\" : \"15.5\"}");
        assert_eq!(sdk_version(dir.path()).unwrap().to_string(), "15.5");
    }

    #[test]
    fn zig_is_found_on_path_before_that_of_a_wheel() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().canonicalize().unwrap().join(path);
        let environment = |names: &[(&str, &str)]| -> BTreeMap<String, String> {
            names.iter().map(|(name, path)| ((*name).to_owned(), at(path).display().to_string())).collect()
        };
        let both = [("PATH", "bin"), ("VIRTUAL_ENV", "venv")];
        assert_eq!(Zig::find(&environment(&both)), None);
        file(&at("venv/lib/python3.12/site-packages/ziglang/zig"), "");
        file(&at("venv/lib/python3.12/site-packages/ziglang/lib/libc/darwin/libSystem.tbd"), "");
        let found = Zig::find(&environment(&both)).unwrap();
        assert!(found.program.ends_with("ziglang/zig") && found.stub.unwrap().ends_with("ziglang/lib/libc/darwin/libSystem.tbd"));
        file(&at("bin/zig"), "");
        assert_eq!(Zig::find(&environment(&both)).unwrap(), Zig { program: at("bin/zig"), stub: None });
    }
}
