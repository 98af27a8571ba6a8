//! Errors for programs: objects on standard output, beside the text on standard error.

use serde_json::{Value, json};

use crate::{Place, Run};

/// The objects with this reason.
fn with_reason<'a>(objects: &'a [Value], reason: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["reason"] == reason).collect()
}

/// The objects of a failed run; the last error of both streams is the same.
fn failed(run: &Run) -> Vec<Value> {
    assert_ne!(run.code, Some(0), "{run}");
    let objects = run.objects();
    assert!(objects.iter().all(|object| object["reason"].is_string()), "{run}");
    let errors = with_reason(&objects, "error");
    let [error] = errors[..] else { panic!("one error is the last: {run}") };
    let head = format!("error[{}]: {}\n", error["code"].as_str().unwrap(), error["message"].as_str().unwrap());
    assert!(String::from_utf8_lossy(&run.stderr).contains(&head), "{run}");
    objects
}

const BUILD: [&str; 3] = ["build", "--message-format", "json"];

#[test]
fn command_lines_that_cannot_be_meant() {
    let place = Place::with_project();
    let messages = |args: &[&str]| {
        let run = place.run(args);
        assert_eq!(run.code, Some(2), "{run}");
        let objects = failed(&run);
        assert_eq!((objects.len(), &objects[0]["code"]), (1, &json!("usage")), "{run}");
        objects[0]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(messages(&["build", "--message-format", "json", "--fast"]), "unexpected argument `--fast` found");
    assert_eq!(messages(&["build", "--fast", "--message-format=json"]), "unexpected argument `--fast` found");
    assert_eq!(messages(&["biuld", "--message-format", "json"]), "unrecognized subcommand `biuld`");
    assert_eq!(messages(&[&BUILD[..], &["-j", "0"]].concat()), "invalid value `0` for `--jobs <N>`: 0 is not in 1..=65535");
    assert_eq!(messages(&[&BUILD[..], &["--index", ""]].concat()), "`--index` is empty");
    assert_eq!(messages(&[&BUILD[..], &["--backend", "gpu"]].concat()), "`--backend gpu`: unknown backend `gpu`");
    // Who asks for help has done nothing wrong.
    let help = place.run(&["build", "--message-format", "json", "--help"]);
    assert_eq!((help.code, help.stderr.is_empty()), (Some(0), true), "{help}");
}

#[test]
fn no_project() {
    let objects = failed(&Place::new().run(&BUILD));
    assert_eq!(
        objects,
        [json!({
            "reason": "error", "code": "project", "message": "`.` has no build.toml", "causes": [],
            "hint": "run Kiln in the directory that holds build.toml, or give that directory",
        })]
    );
}

#[test]
fn faults_of_the_configuration() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "depends", "dependz");
    let run = place.run(&BUILD);
    let objects = failed(&run);
    let places: Vec<Value> =
        with_reason(&objects, "diagnostic").iter().map(|d| json!([d["code"], d["line"], d["column"], d["file"]])).collect();
    assert_eq!(places, [json!(["missing-key", 11, 2, "build.toml"]), json!(["unknown-key", 13, 1, "build.toml"])]);
    assert_eq!(objects.last().unwrap()["code"], "configuration");
    insta::assert_snapshot!(run, @r#"
    exit code 1
    --- stdout ---
    {"reason":"diagnostic","level":"error","code":"missing-key","message":"`depends` is required in [kernel.relu_cpu]","hint":"add `depends = [\"torch\"]`","file":"build.toml","line":11,"column":2,"end":{"line":11,"column":17}}
    {"reason":"diagnostic","level":"error","code":"unknown-key","message":"unknown key `dependz` in [kernel.relu_cpu]","note":"allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`","hint":"did you mean `depends`?","file":"build.toml","line":13,"column":1,"end":{"line":13,"column":8}}
    {"reason":"error","code":"configuration","message":"the configuration has 2 errors","causes":[],"hint":null}
    --- stderr ---
    error[missing-key]: `depends` is required in [kernel.relu_cpu]
       --> build.toml:11:2
       |
    11 | [kernel.relu_cpu]
       |  ^^^^^^^^^^^^^^^
    hint: add `depends = ["torch"]`

    error[unknown-key]: unknown key `dependz` in [kernel.relu_cpu]
       --> build.toml:13:1
       |
    13 | dependz = []
       | ^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`
    hint: did you mean `depends`?
    error[configuration]: the configuration has 2 errors
    "#);
}

#[test]
fn no_compiler() {
    let place = Place::with_project();
    std::fs::remove_file(place.path("bin/g++")).unwrap();
    let objects = failed(&place.run(&BUILD));
    assert_eq!(objects.last().unwrap()["code"], "no-compiler");
}

#[test]
fn a_failed_step() {
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", "#error meant to fail\n");
    let objects = failed(&place.run(&BUILD));
    let steps = with_reason(&objects, "step-failed");
    let [step] = steps[..] else { panic!("{objects:?}") };
    assert_eq!((&step["label"], &step["failure"]), (&json!("cpu/relu.cpp"), &json!({"how": "exit", "code": 1})));
    assert!(step["output"].as_str().unwrap().contains("#error meant to fail"), "{step}");
    assert_eq!(
        with_reason(&objects, "variant-failed"),
        [&json!({"reason": "variant-failed", "variant": "torch215-cxx11-cpu-x86_64-linux"})]
    );
    assert_eq!(with_reason(&objects, "error")[0]["code"], "build-failed");
    let last = objects.last().unwrap();
    assert_eq!((&last["reason"], &last["success"]), (&json!("build-finished"), &json!(false)));
}

#[test]
fn names_that_nothing_defines() {
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", "namespace c10 { void gone(int); }\nvoid relu() { c10::gone(1); }\n");
    let objects = failed(&place.run(&BUILD));
    let failure = &with_reason(&objects, "step-failed")[0]["failure"];
    assert_eq!((&failure["how"], &failure["code"]), (&json!("builtin"), &json!("undefined-symbol")));
    assert!(failure["message"].as_str().unwrap().contains("`c10::gone(int)`") && failure["hint"].is_string(), "{failure}");
}

#[test]
fn a_variant_that_would_not_load() {
    let place = Place::with_project();
    place.write("relu/torch-ext/binding.cpp", "int nothing;\n");
    let objects = failed(&place.run(&BUILD));
    let checks = with_reason(&objects, "check");
    let [check] = checks[..] else { panic!("{objects:?}") };
    assert_eq!((&check["variant"], &check["check"]["rule"]), (&json!("torch215-cxx11-cpu-x86_64-linux"), &json!("entry-point")), "{check}");
    let failed = with_reason(&objects, "variant-failed")[0];
    assert_eq!((&failed["code"], &failed["causes"]), (&json!("checks"), &json!([])), "{failed}");
}

#[test]
fn a_good_build_has_no_error() {
    let place = Place::with_project();
    let run = place.run(&BUILD);
    assert_eq!((run.code, run.stderr.is_empty()), (Some(0), true), "{run}");
    assert!(with_reason(&run.objects(), "error").is_empty(), "{run}");
}
