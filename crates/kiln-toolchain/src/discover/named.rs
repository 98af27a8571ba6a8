//! A kit that is named by its compiler instead of by its directory.

use std::fs;
use std::path::{Path, PathBuf};

use super::find::{Candidate, FoundPart};
use super::kits::KitKind;

/// The part that a kit has besides those of its table when it is used through a program that starts its compiler.
pub const STARTER: &str = "compiler";

/// The longest script that is read.
const LONGEST: u64 = 4 << 20;

/// Whether a program with this name may stand for a kit.
pub(super) fn stands_for(kind: KitKind, program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    kind == KitKind::Rocm && (is_starter(name) || ["clang++", "clang", "amdclang++"].iter().any(|stem| called(name, stem)))
}

/// Directories that a program may be a part of, the nearest first: those above it, and those above what it leads to.
pub(super) fn homes(program: &Path) -> Vec<PathBuf> {
    let real = program.canonicalize().ok();
    let above = |path: &Path| path.ancestors().skip(2).filter(|dir| dir.parent().is_some()).map(Path::to_owned).collect::<Vec<_>>();
    let mut homes = above(program);
    homes.extend(real.iter().flat_map(|real| above(real)));
    homes
}

/// Makes `program` the compiler of a kit that was found.
pub(super) fn take(kit: &mut Candidate, program: &Path) {
    let is_starter = program.file_name().and_then(|name| name.to_str()).is_some_and(is_starter);
    let clang = if is_starter { started_by(program) } else { Some(program.to_owned()) };
    if is_starter {
        kit.parts.push(FoundPart { name: STARTER, path: program.to_owned() });
    }
    let Some(clang) = clang else { return };
    let linker = linker_of(&clang);
    put(kit, "clang++", clang);
    if let Some(linker) = linker {
        put(kit, "ld.lld", linker);
    }
}

fn is_starter(name: &str) -> bool {
    name == "hipcc" || name == "hipcc.pl"
}

/// Whether a program is called `stem`, or that and a release.
fn called(name: &str, stem: &str) -> bool {
    name == stem || name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('-')).is_some_and(|release| release.parse::<u64>().is_ok())
}

/// The Clang that a starter is written to start, beside itself: distributions have one release's name in their script. AMD's starts that
/// of its own ROCm, which the table of the kit has.
fn started_by(starter: &Path) -> Option<PathBuf> {
    let real = starter.canonicalize().ok()?;
    let scripts = [starter.to_owned(), starter.with_extension("pl"), real.clone(), real.with_extension("pl")];
    scripts.iter().find_map(|script| {
        let is_short = fs::metadata(script).is_ok_and(|file| file.len() <= LONGEST);
        let text = fs::read(script).ok().filter(|_| is_short)?;
        let name = name_in(&String::from_utf8_lossy(&text))?;
        [starter, &real].iter().map(|starter| starter.with_file_name(&name)).find(|clang| clang.is_file())
    })
}

/// The first `clang++-15` of a text.
fn name_in(text: &str) -> Option<String> {
    const STEM: &str = "clang++-";
    text.match_indices(STEM).find_map(|(at, _)| {
        let rest = text.get(at + STEM.len()..)?;
        let release: String = rest.chars().take_while(char::is_ascii_digit).collect();
        (!release.is_empty()).then(|| format!("{STEM}{release}"))
    })
}

/// The linker beside a Clang, of the same release.
fn linker_of(clang: &Path) -> Option<PathBuf> {
    let release = clang.file_name()?.to_str()?.rsplit_once('-').map(|(_, release)| release);
    let name = release.map_or_else(|| "ld.lld".to_owned(), |release| format!("ld.lld-{release}"));
    Some(clang.with_file_name(name)).filter(|linker| linker.is_file())
}

fn put(kit: &mut Candidate, name: &'static str, path: PathBuf) {
    match kit.parts.iter_mut().find(|part| part.name == name) {
        Some(part) => part.path = path,
        None => kit.parts.push(FoundPart { name, path }),
    }
    kit.lacks.retain(|lack| lack.name != name);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::find::find;
    use super::super::view::View;
    use super::*;

    /// The starter, the Clang and the linker of a ROCm named by `program`, among `files`; what was said where there is none.
    fn named(program: &str, files: &[&str]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let common = ["include/hip/hip_runtime.h", "amdgcn/bitcode/ocml.bc", "lib/libamdhip64.so"];
        for name in files.iter().copied().chain(common) {
            let path = dir.path().join("kit").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, if name == "bin/hipcc" { "exec \"$dir/clang++-15\" \"$@\"\n" } else { "" }).unwrap();
        }
        let environment = BTreeMap::new();
        let view = View { root: dir.path(), environment: &environment, os: "linux", cpu: "x86_64" };
        let program = dir.path().join("kit").join(program);
        let found = find(KitKind::Rocm, &view, Some(("--from", &program)));
        let Some(kit) = found.candidates.first() else { return found.passed[0].reason.clone() };
        assert_eq!(kit.root, dir.path().join("kit"));
        let part = |name: &str| kit.part(name).map_or("-", |path| path.strip_prefix(&kit.root).unwrap().to_str().unwrap()).to_owned();
        [STARTER, "clang++", "ld.lld"].map(part).join(" ")
    }

    #[test]
    fn a_compiler_stands_for_its_rocm() {
        let debian = ["bin/hipcc", "bin/clang++-15", "bin/clang++-19", "bin/ld.lld-15", "bin/ld.lld-19"];
        assert_eq!(named(".", &debian), "- bin/clang++-19 bin/ld.lld-19", "the newest where none is named");
        assert_eq!(named("bin/hipcc", &debian), "bin/hipcc bin/clang++-15 bin/ld.lld-15");
        assert_eq!(named("bin/clang++-15", &debian), "- bin/clang++-15 bin/ld.lld-15");
        let amd = ["bin/hipcc", "llvm/bin/clang++", "llvm/bin/ld.lld"];
        assert_eq!(named("bin/hipcc", &amd), "bin/hipcc llvm/bin/clang++ llvm/bin/ld.lld");
        assert_eq!(named("llvm/bin/clang++", &amd), "- llvm/bin/clang++ llvm/bin/ld.lld");
        assert_eq!(named("bin/ld.lld-15", &debian), "is no directory");
    }
}
