//! The floor, made by its own steps and used by real compilers and linkers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

#[path = "floor/mod.rs"]
mod kit;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use kiln_abi::Policies;
use kiln_graph::BuiltinContext;
use kiln_object::archive;
use kiln_object::baseline::Baseline;
use kiln_object::elf::{self, Dynamic, Machine, Visibility};
use kiln_toolchain::floor::{Floor, FloorChoice, FloorLevel, SHIMS, Shim, lacking, lists, nonshared, remove_unused, stored};
use kiln_toolchain::host::HostCompiler;
use kiln_toolchain::stubs::{LinkNames, RuntimeNames, link_stubs};
use kit::{HOST, LEVEL, MADE, Made, TryRun, ambient, beyond, data, extension, gxx, machine, make, make_for_all, run, run_check};

/// Whether the policy of the floor has a version.
fn allows(machine: Machine, version: &str) -> bool {
    static POLICIES: LazyLock<Policies> = LazyLock::new(|| Policies::embedded().unwrap());
    POLICIES.get(LEVEL.as_str()).unwrap().allows(&machine.to_string(), version)
}

fn allowed(version: &str) -> bool {
    allows(machine(), version)
}

static MADE_NEWER: LazyLock<Made> = LazyLock::new(|| make_for_all(FloorLevel::Manylinux2_34));

#[test]
fn equal_compilers_give_equal_floors_in_any_place() {
    let other = make(&HOST, LEVEL);
    assert_eq!(other.floor.key(), MADE.floor.key());
    assert_ne!(other.floor.dir(), MADE.floor.dir());
    let names = |floor: &Floor| floor.outputs().map(|output| output.name).collect::<Vec<_>>();
    assert_eq!(names(&other.floor), names(&MADE.floor));
    for name in names(&other.floor) {
        let bytes = |floor: &Floor| std::fs::read(floor.dir().join(&name)).unwrap();
        assert!(bytes(&other.floor) == bytes(&MADE.floor), "{name}");
    }
    // What is there is not made again; what was damaged is.
    assert_eq!(run(&other.floor).steps, 0);
    std::fs::remove_file(other.floor.dir().join("libc.so")).unwrap();
    assert!(!other.floor.is_there());
    assert_eq!(run(&other.floor).steps, 0);
    assert!(other.floor.is_there());
    let left: Vec<_> = std::fs::read_dir(other.store.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// Floors that no build uses any more are removed, whole; the note of a use is only renewed now and then.
#[test]
fn floors_out_of_use_are_removed() {
    let day = Duration::from_secs(24 * 3600);
    // In whole seconds, which every file system keeps; and not before the floor was made.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    let made = make(&HOST, LEVEL);
    let store = made.store.path();
    let other = store.join("0".repeat(32));
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("libc.so"), "12345").unwrap();
    let set = |dir: &Path, time| std::fs::File::open(dir).unwrap().set_modified(time).unwrap();
    let last_use = |key: &str| stored(store).unwrap().into_iter().find(|floor| floor.key == key).unwrap().last_used;

    let floors = stored(store).unwrap();
    assert_eq!(floors.iter().map(|floor| floor.path.clone()).collect::<Vec<_>>(), [other.clone(), made.floor.dir()]);
    assert_eq!(floors[0].bytes, 5);
    set(&made.floor.dir(), now - 100 * day);
    made.floor.note_use(now);
    assert_eq!(last_use(made.floor.key()), now);
    made.floor.note_use(now + Duration::from_secs(60));
    assert_eq!(last_use(made.floor.key()), now, "of the same hour");

    set(&other, now - 10 * day);
    assert_eq!(remove_unused(store, "", 90 * day, now).unwrap(), []);
    let removed = remove_unused(store, made.floor.key(), 5 * day, now + 50 * day).unwrap();
    assert_eq!(removed.iter().map(|floor| floor.key.as_str()).collect::<Vec<_>>(), ["0".repeat(32)]);
    assert!(made.floor.is_there() && !other.exists());
    let left: Vec<_> = std::fs::read_dir(store).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(stored(Path::new("/nowhere")).unwrap(), []);
}

#[test]
fn another_compiler_or_library_is_another_floor() {
    let key = |host: &HostCompiler| Floor::new(host, machine(), LEVEL, &ambient(), Path::new("/store")).unwrap().key().to_owned();
    let mut keys = vec![key(&HOST), key(&HostCompiler { identity: "other".to_owned(), ..HOST.clone() })];
    keys.push(key(&HostCompiler { args: vec!["-m64".to_owned()], ..HOST.clone() }));
    let mut changed = HOST.clone();
    changed.runtime.static_cxx.as_mut().unwrap().digest = "other".to_owned();
    keys.push(key(&changed));
    changed.runtime.static_cxx = None;
    keys.push(key(&changed));
    let elsewhere = HostCompiler { path: PathBuf::from("/elsewhere/g++"), ..HOST.clone() };
    assert_eq!(key(&elsewhere), keys[0]);
    let distinct: BTreeSet<&String> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len());
    let error = Floor::new(&HOST, Machine(8), LEVEL, &ambient(), Path::new("/store")).unwrap_err();
    assert_eq!(error.to_string(), "manylinux_2_28 is not known for machine 8");
}

#[test]
fn a_compiler_for_another_processor_is_told() {
    let store = tempfile::tempdir().unwrap();
    let other = if machine() == Machine::X86_64 { Machine::AARCH64 } else { Machine::X86_64 };
    let floor = Floor::new(&HOST, other, LEVEL, &ambient(), store.path()).unwrap();
    let TryRun { failed, .. } = run(&floor);
    assert!(failed.contains(&format!("the object of `single_threaded.c`: it is for {}, not for {other}", machine())), "{failed}");
    assert!(!floor.is_there());
}

/// The names of everything that may be copied stay inside, and state never comes in two.
#[test]
fn nothing_of_the_archives_is_seen_outside() {
    let dir = MADE.floor.dir();
    for name in ["libkiln_shims.a", "libstdc++_nonshared.a"] {
        let bytes = std::fs::read(dir.join(name)).unwrap();
        let members = archive::members(&bytes).unwrap();
        assert!(members.len() >= SHIMS.len());
        for member in members {
            let object = elf::relocatable(member.data).unwrap();
            let seen =
                object.defined.iter().find(|symbol| symbol.binding != elf::Binding::Local && symbol.visibility != Visibility::Hidden);
            assert_eq!(seen, None, "{}", member.name);
        }
    }
    let static_cxx = std::fs::read(&HOST.runtime.static_cxx.as_ref().unwrap().path).unwrap();
    let baseline = Baseline::of(LEVEL.system(), machine()).unwrap();
    let shared: BTreeSet<&str> =
        baseline.entries().iter().filter(|entry| entry.library == "libstdc++.so.6").map(|entry| entry.name.as_str()).collect();
    let made = nonshared(&static_cxx, &shared, &BTreeSet::new()).unwrap();
    let all = archive::members(&static_cxx).unwrap().len();
    assert_eq!(made.members + made.rejected.len(), all);
    let rejected: Vec<&str> = made.rejected.iter().map(|rejected| rejected.member.as_str()).collect();
    for member in ["locale.o", "eh_globals.o", "globals_io.o", "mutex.o", "future.o", "system_error.o", "ctype.o"] {
        assert!(rejected.contains(&member), "{member} in {rejected:?}");
    }
    for member in ["fs_path.o", "floating_to_chars.o", "memory_resource.o", "futex.o"] {
        assert!(!rejected.contains(&member), "{member} in {rejected:?}");
    }
    assert!((20..50).contains(&rejected.len()), "{rejected:?}");
}

/// Every shim is called, with the code that each level makes of the headers' inline functions.
#[test]
fn every_shim_does_its_work() {
    let newer = "-DWITHOUT_SHIMS_OF_OLD_SYSTEMS";
    for (floor, level) in [(&MADE.floor, "-O0"), (&MADE.floor, "-Os"), (&MADE.floor, "-O2"), (&MADE_NEWER.floor, newer)] {
        let dir = tempfile::tempdir().unwrap();
        let library = extension(floor, dir.path(), &data("shims.cpp"), &[level]);
        assert_eq!(beyond(floor.level(), &library), Vec::<String>::new(), "{level}");
        assert_eq!(library.exports.iter().map(|export| export.name.as_str()).collect::<Vec<_>>(), ["check"], "{level}");
        // The functions of this system must not stand in for the shims.
        let output = Command::new("nm").args(["--defined-only", "--format=just-symbols"]).arg(dir.path().join("x.so")).output().unwrap();
        let symbols = String::from_utf8_lossy(&output.stdout);
        let defined: BTreeSet<&str> = symbols.lines().collect();
        let shims = lacking(floor.level(), machine()).unwrap();
        let missing: Vec<&&str> = shims.iter().flat_map(|shim| shim.names).filter(|name| !defined.contains(**name)).collect();
        assert!(missing.is_empty(), "{level}: {missing:?}");
        run_check(dir.path(), dir.path());
    }
}

#[test]
fn a_name_beyond_the_floor_gets_no_provider() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("new.c");
    std::fs::write(
        &source,
        "#include <malloc.h>\nextern \"C\" __attribute__((visibility(\"default\"))) unsigned long check() { return mallinfo2().arena; }\n",
    )
    .unwrap();
    let library = extension(&MADE.floor, dir.path(), &source, &["-O2", "-x", "c++"]);
    assert_eq!(beyond(LEVEL, &library), ["mallinfo2@None of None"]);
    assert!(!MADE.floor.names().unwrap().contains("mallinfo2"));

    // Even what asks for nothing has its versions.
    std::fs::write(&source, "extern \"C\" __attribute__((visibility(\"default\"))) int check() { return 0; }\n").unwrap();
    let library = extension(&MADE.floor, dir.path(), &source, &["-O2", "-x", "c++"]);
    assert_eq!(beyond(LEVEL, &library), Vec::<String>::new());
    assert_eq!(library.needed, ["libc.so.6"]);
}

/// A newer floor offers more, takes it from where newer systems have it, and brings fewer shims.
#[test]
fn a_newer_floor_is_bound_to_newer_names() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("new.c");
    let text = "#include <cmath>\n#include <dlfcn.h>\n#include <malloc.h>\n#include <sys/stat.h>\n#include <pthread.h>\n\
        static void *run(void *x) { return x; }\n\
        extern \"C\" __attribute__((visibility(\"default\"))) double check(double x, struct stat *s, pthread_t *t) {\n\
        return mallinfo2().arena + std::pow(x, x) + stat(\"/\", s) + pthread_create(t, 0, run, 0) + (dlsym(0, \"x\") != 0); }\n";
    std::fs::write(&source, text).unwrap();
    let library = extension(&MADE_NEWER.floor, dir.path(), &source, &["-O2", "-x", "c++"]);
    assert_eq!(beyond(FloorLevel::Manylinux2_34, &library), Vec::<String>::new());
    let taken = |name: &str| library.imports.iter().find(|import| import.name == name).unwrap();
    for (name, version, file) in [
        ("mallinfo2", "GLIBC_2.33", "libc.so.6"),
        ("stat", "GLIBC_2.33", "libc.so.6"),
        ("pow", "GLIBC_2.29", "libm.so.6"),
        ("pthread_create", "GLIBC_2.34", "libc.so.6"),
        ("dlsym", "GLIBC_2.34", "libc.so.6"),
    ] {
        assert_eq!((taken(name).version.as_deref(), taken(name).library.as_deref()), (Some(version), Some(file)), "{name}");
    }
    assert_ne!(MADE_NEWER.floor.key(), MADE.floor.key());
    let stems = |level| lacking(level, machine()).unwrap().into_iter().map(Shim::stem).collect::<Vec<_>>();
    assert_eq!(stems(LEVEL).len(), SHIMS.len());
    assert_eq!(
        stems(FloorLevel::Manylinux2_34),
        ["arc4random", "isoc23", "strl", "memcmpeq", "atexit", "atfork", "assert", "ios_init", "call_terminate"]
    );
}

#[test]
fn names_are_those_that_links_find() {
    let names = MADE.floor.names().unwrap();
    for name in ["pow", "pthread_create", "dlsym", "GOMP_parallel", "_Unwind_Resume", "strlcpy"] {
        assert!(names.contains(name), "{name}");
    }
    // From the rest of the C++ library.
    assert!(names.iter().any(|name| name.starts_with("_ZNSt10filesystem")));
    assert!(SHIMS.iter().flat_map(|shim| shim.names).all(|name| names.contains(*name)));
}

#[test]
fn floors_have_the_names_of_their_policies() {
    for choice in FloorChoice::all() {
        assert_eq!(FloorChoice::parse(choice.as_str()), Some(choice));
    }
    assert_eq!(FloorChoice::default().as_str(), "manylinux_2_28");
    assert_eq!(FloorChoice::parse("manylinux2014"), None);
}

/// The embedded lists against the libraries of this system, which are newer and only ever add names.
#[test]
fn the_lists_are_what_newer_libraries_say() {
    let baseline = Baseline::of(LEVEL.system(), machine()).unwrap();
    let runtime = &HOST.runtime;
    let read = |name: &str| elf::dynamic_file(&runtime.libraries.iter().find(|file| file.name == name).unwrap().path).unwrap();
    for soname in ["libstdc++.so.6", "libgcc_s.so.1"] {
        let cut = lists::cut(&read(soname), &allowed);
        let listed: Vec<_> = baseline.entries().iter().filter(|entry| entry.library == soname).cloned().collect();
        assert!(cut.len() > 100);
        let name = |entry: &kiln_object::baseline::Entry| (entry.name.clone(), entry.version.clone(), entry.default, entry.weak);
        let (cut, listed): (BTreeSet<_>, BTreeSet<_>) = (cut.iter().map(name).collect(), listed.iter().map(name).collect());
        assert_eq!(cut.symmetric_difference(&listed).collect::<Vec<_>>(), Vec::<&_>::new(), "{soname}");
    }
    let of_glibc: Vec<_> = baseline
        .entries()
        .iter()
        .filter(|entry| entry.version.starts_with("GLIBC_") && entry.library != "libresolv.so.2")
        .cloned()
        .collect();
    let libraries: Vec<Dynamic> = runtime.libraries.iter().map(|file| elf::dynamic_file(&file.path).unwrap()).collect();
    // The only ones that glibc has dropped since.
    let known = ["malloc_get_state", "malloc_set_state"];
    for entry in lists::dropped(&of_glibc, &libraries) {
        assert!(known.contains(&entry.name.as_str()) || entry.library == "libutil.so.1", "{entry:?}");
    }
}

#[test]
fn lists_are_written_as_they_are_read() {
    for machine in [Machine::X86_64, Machine::AARCH64] {
        let entries = Baseline::of(LEVEL.system(), machine).unwrap().entries();
        assert_eq!(Baseline::parse(&lists::text(entries)).unwrap().entries(), entries);
        assert!(entries.iter().all(|entry| allows(machine, &entry.version)), "{machine}");
    }
}

/// A table of two libraries, two versions and two targets, byte by byte.
#[test]
fn tables_of_glibc_are_read() {
    let mut table = vec![2];
    table.extend(b"c\0pthread\0");
    table.extend([3, 2, 17, 0, 2, 28, 0, 2, 34, 0]);
    table.push(2);
    table.extend(b"x86_64-linux-gnu\0aarch64-linux-gnu\0");
    table.extend(2u16.to_le_bytes());
    // f: for both, in libpthread (and more to come) at 2.17; then in libc at 2.28 and 2.34, aarch64 only.
    table.extend(b"f\0");
    table.extend([0b11, 1, 0x80, 0b10, 0x80, 1, 2 | 0x80]);
    let functions = table.len();
    table.extend(1u16.to_le_bytes());
    table.extend(b"d\0");
    table.extend([0b11, 8, 0x80, 0x80]);
    let lines = |machine| lists::text(&lists::of_abilists(&table, machine, &allowed).unwrap());
    insta::assert_snapshot!(lines(Machine::X86_64), @r"
    libc.so.6 d GLIBC_2.17 default OBJECT GLOBAL 8
    libpthread.so.0 f GLIBC_2.17 default FUNC GLOBAL 0
    ");
    insta::assert_snapshot!(lines(Machine::AARCH64), @r"
    libc.so.6 d GLIBC_2.17 default OBJECT GLOBAL 8
    libc.so.6 f GLIBC_2.28 default FUNC GLOBAL 0
    libpthread.so.0 f GLIBC_2.17 default FUNC GLOBAL 0
    ");
    assert!(lists::of_abilists(&table, Machine(8), &allowed).is_err());
    // It may end behind a whole part.
    for length in (0..table.len()).filter(|length| *length != functions) {
        assert!(lists::of_abilists(&table[..length], Machine::X86_64, &allowed).is_err(), "{length}");
    }
}

/// Before the link: what the floor lacks is an error by name, with the object that wants it.
#[test]
fn names_beyond_the_floor_are_told_before_the_link() {
    let dir = tempfile::tempdir().unwrap();
    let object = |name: &str, source: &str| {
        std::fs::write(dir.path().join("in.cpp"), source).unwrap();
        gxx(dir.path(), &["-std=c++20", "-O2", "-fPIC", "-c", "-o", name, "in.cpp"]);
        dir.path().join(name)
    };
    let names = |host: &HostCompiler| LinkNames {
        provider: "torch 2.13.0".to_owned(),
        linked: Vec::new(),
        unlinked: Vec::new(),
        runtime: Arc::new(RuntimeNames::of_floor(
            Arc::new(Floor::new(host, machine(), LEVEL, &ambient(), MADE.store.path()).unwrap()),
            host.runtime.clone(),
        )),
        python: None,
        machine: machine(),
    };
    let resolve = |names: LinkNames, label: &str, path: PathBuf| {
        let builtin = link_stubs(Arc::new(names), vec![label.to_owned()]);
        (builtin.run)(&BuiltinContext { inputs: &[path], out_dir: dir.path() })
    };
    let fine = object(
        "fine.o",
        "#include <filesystem>\n#include <fstream>\n#include <thread>\n#include <cmath>\n#include <cstdlib>\n#include <sys/stat.h>\n\
         double f(double x, struct stat *s) { std::atexit([] {}); std::thread([] {}).join(); std::ofstream(\"/dev/null\") << x;\n\
         return std::filesystem::file_size(\"/dev/null\") + std::pow(x, x) + stat(\"/\", s); }\n",
    );
    resolve(names(&HOST), "fine.cpp", fine).unwrap();
    let bad = object(
        "bad.o",
        "#include <malloc.h>\nextern \"C\" unsigned long gone();\nunsigned long f() { return mallinfo2().arena + gone(); }\n",
    );
    let error = resolve(names(&HOST), "cpu/bad.cpp", bad).unwrap_err();
    insta::assert_snapshot!(error.message, @r"
    2 undefined symbols
      `mallinfo2`
        wanted by cpu/bad.cpp
        this system has it, but it is not in the baseline of manylinux_2_28, and no shim stands in for it
      `gone`
        wanted by cpu/bad.cpp
        no source of this extension defines it, and nothing of torch 2.13.0 is linked
    ");
    insta::assert_snapshot!(error.hint.unwrap(), @r#"
    use an older function; `floor = "host"` under `[build]` in `kiln.toml` gives up loading on older systems
    list the source that defines it in `src`, or correct its declaration
    "#);
}
