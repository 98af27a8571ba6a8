//! Trees of several wheels, and stores behind the user's own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use common::{Bench, PLATFORM, files_below, torch, version};
use kiln_test_server::{Member, Wheel, WheelBuilder};
use kiln_toolchain::{Error, Members, Part, StoreTree, WheelPin};

/// A wheel like those that carry a toolkit: programs, headers, metadata and a license.
fn compiler(version: &str) -> Wheel {
    let metadata = format!("Metadata-Version: 2.4\nName: a-compiler\nVersion: {version}\nLicense-Expression: LicenseRef-Vendor\n\n");
    WheelBuilder::new("a_compiler", version)
        // The run bit of the zip file is of no account.
        .member(Member { mode: 0o100_600, ..Member::new("vendor/cu13/bin/cc", "#!/bin/sh\n") })
        .member(Member { mode: 0o100_755, ..Member::new("vendor/cu13/bin/cc.profile", "X = 1\n") })
        .file("vendor/cu13/include/a.h", "a")
        .file("vendor/cu13/include/both.h", "both")
        .file("vendor/cu13/lib/huge.so", "not wanted")
        .file(&format!("a_compiler-{version}.dist-info/licenses/License.txt"), "You may not.")
        .file(&format!("a_compiler-{version}.dist-info/METADATA"), metadata)
        .build()
}

fn runtime(both: &str) -> Wheel {
    WheelBuilder::new("a_runtime", "2.0")
        .file("vendor/cu13/include/r.h", "r")
        .file("vendor/cu13/include/both.h", both)
        .file("vendor/cu13/lib/libr.so.13", "r")
        .build()
}

fn part(project: &str, wheel: &Wheel, dirs: &[&str], files: &[&str], programs: &[&str]) -> Part {
    let owned = |names: &[&str]| names.iter().map(|name| format!("vendor/cu13/{name}")).collect();
    Part {
        wheel: WheelPin {
            project: project.to_owned(),
            file: wheel.file.clone(),
            size: wheel.bytes.len() as u64,
            sha256: wheel.sha256.clone(),
            record_sha256: wheel.record_sha256.clone(),
        },
        members: Members { dirs: owned(dirs), files: owned(files), programs: owned(programs), max_size: 1 << 20 },
        strip: "vendor/cu13/".to_owned(),
        prefix: String::new(),
    }
}

fn parts(compiler: &Wheel, runtime: &Wheel) -> [Part; 2] {
    [
        part("a-compiler", compiler, &["include/"], &["bin/cc", "bin/cc.profile"], &["bin/cc"]),
        part("a-runtime", runtime, &["include/", "lib/"], &[], &[]),
    ]
}

/// A machine whose index carries both wheels beside torch.
fn bench(compiler: &Wheel, runtime: &Wheel) -> Bench {
    let bench = Bench::with(torch().build());
    bench.server.add("a-compiler", compiler);
    bench.server.add("a-runtime", runtime);
    bench
}

fn assemble(bench: &Bench, parts: &[Part]) -> Result<StoreTree, Error> {
    bench.provision(|provisioner| provisioner.assemble("toolkit-13.0", parts))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn several_wheels_give_one_tree() {
    let (compiler, runtime) = (compiler("1.0"), runtime("both"));
    let bench = bench(&compiler, &runtime);
    let parts = parts(&compiler, &runtime);
    let planned = bench.provision(|provisioner| provisioner.planned_tree("toolkit-13.0", &parts));
    let tree = assemble(&bench, &parts).unwrap();
    assert_eq!((&planned.id, &planned.digest, &planned.dir), (&tree.id, &tree.digest, &tree.dir));
    assert_eq!(files_below(&tree.dir), ["bin/cc", "bin/cc.profile", "include/a.h", "include/both.h", "include/r.h", "lib/libr.so.13"]);
    assert_eq!(["bin/cc", "bin/cc.profile", "include/a.h"].map(|name| mode(&tree.dir.join(name))), [0o555, 0o444, 0o444]);
    // Linked, not copied.
    assert_eq!(std::fs::metadata(tree.dir.join("include/a.h")).unwrap().nlink(), 2);
    let terms: Vec<_> = tree.terms.iter().map(|terms| (terms.project.as_str(), terms.license.as_deref(), terms.files.clone())).collect();
    assert_eq!(
        terms,
        [("a-compiler", Some("LicenseRef-Vendor"), vec!["a-compiler-1.0/licenses/License.txt".to_owned()]), ("a-runtime", None, vec![])]
    );
    let text = tree.dir.parent().unwrap().join("terms/a-compiler-1.0/licenses/License.txt");
    assert_eq!(std::fs::read_to_string(text).unwrap(), "You may not.");
    assert_eq!(bench.server.log().sent_twice(), Vec::<String>::new());
    // The tree and its two parts; none may go into a cache that is shared.
    let stored = bench.provision(|provisioner| provisioner.stored());
    assert_eq!(stored.iter().filter(|tree| !tree.redistributable).count(), 3);
    assert_eq!(bench.provision(|provisioner| provisioner.verify_all(false)).unwrap(), []);

    // Again, from the store: nothing is asked. Another toolkit with the same runtime: only the new compiler is fetched.
    bench.server.clear_log();
    assert_eq!(assemble(&bench, &parts).unwrap(), tree);
    assert_eq!(bench.server.log().entries.len(), 0);
    let newer = self::compiler("1.1");
    bench.server.add("a-compiler", &newer);
    let other = assemble(&bench, &self::parts(&newer, &runtime)).unwrap();
    assert_ne!(other.id, tree.id);
    assert!(bench.server.log().requests("/files/a_compiler-1.1") > 0);
    assert_eq!(bench.server.log().requests("/files/a_runtime"), 0);
}

#[test]
fn parts_go_where_they_are_put() {
    let (compiler, runtime) = (compiler("1.0"), runtime("other"));
    let bench = bench(&compiler, &runtime);
    let [first, second] = parts(&compiler, &runtime);
    let error = assemble(&bench, &[first.clone(), second.clone()]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"`a_runtime-2.0-py3-none-any.whl` is refused: member `vendor/cu13/include/both.h` comes to `include/both.h`, where another wheel has a file with other content");
    let tree = assemble(&bench, &[first.clone(), Part { prefix: "r/".to_owned(), ..second.clone() }]).unwrap();
    assert!(files_below(&tree.dir).contains(&"r/include/both.h".to_owned()));
    let error = assemble(&bench, &[Part { prefix: "../".to_owned(), ..second.clone() }]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"`a_runtime-2.0-py3-none-any.whl` is refused: member `vendor/cu13/include/both.h` leaves its directory in the tree");
    let error = assemble(&bench, &[Part { strip: "vendor/cu12/".to_owned(), ..second }]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"the catalog is damaged: `vendor/cu13/include/both.h` of `a_runtime-2.0-py3-none-any.whl` does not lie in `vendor/cu12/`");
    let mut missing = first;
    missing.members.files.push("vendor/cu13/bin/gone".to_owned());
    let error = assemble(&bench, &[missing]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"`a_compiler-1.0-py3-none-any.whl` is refused: member `vendor/cu13/bin/gone` is missing");
    assert_eq!(files_below(&bench.cache().join("toolchains-v1/work")), Vec::<String>::new());
}

/// Makes everything below a directory read-only.
fn read_only(dir: &Path, writable: bool) {
    for entry in std::fs::read_dir(dir).unwrap().flatten().filter(|entry| entry.file_type().unwrap().is_dir()) {
        read_only(&entry.path(), writable);
    }
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(if writable { 0o755 } else { 0o555 })).unwrap();
}

#[test]
fn a_store_behind_is_used_and_not_touched() {
    let mut bench = Bench::with(torch().build());
    let fetched = bench.fetch().unwrap();
    let shared = bench.dir.path().join("shared");
    std::fs::rename(bench.cache(), &shared).unwrap();
    let before = files_below(&shared);
    read_only(&shared, false);
    bench.lower = vec![bench.dir.path().join("absent"), shared.clone()];
    bench.offline = true;
    let found: PathBuf = bench.fetch().unwrap();
    assert_eq!(found, shared.join(fetched.strip_prefix(bench.cache()).unwrap()));
    let toolchain = bench.provision(|provisioner| provisioner.torch(&version(), PLATFORM)).unwrap();
    assert_eq!(toolchain.binding.dir, found);
    assert_eq!(files_below(&shared), before);
    read_only(&shared, true);
    assert!(!bench.cache().join("toolchains-v1/trees").exists());
}
