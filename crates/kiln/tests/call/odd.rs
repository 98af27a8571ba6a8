//! Odd numbers, odd tensors, and kernels that make it hard to tell what they did.

use std::fs;

use serde_json::Value;

use super::support::Sandbox;
use super::{Kernels, call, kernels, project, text};

/// The problems of the calls of a project, `none` for those without one.
fn problems(sandbox: &Sandbox, references: &str) -> (Option<i32>, Vec<String>) {
    let dir = project(sandbox, references);
    let run = sandbox.run(&dir, &["call", "--runtime", text(&kernels().runtimes[1]), "--format", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let calls = report["calls"].as_array().unwrap();
    (run.code, calls.iter().map(|call| call["problem"].as_str().unwrap_or("none").to_owned()).collect())
}

/// Only an infinity is one.
#[test]
fn infinities_are_compared() {
    let sandbox = Sandbox::without_torch();
    let half = "[[call]]\nfunction = \"half\"\ninputs = [{ shape = [2] }]\n";
    let scaled = "[[call]]\nfunction = \"scaled\"\ninputs = [{ shape = [3], values = [inf, -inf, nan] }, 1.0]\n";
    let number = "[[call]]\nfunction = \"number\"\n";
    let references = format!(
        "{half}expected = [{{ input = 0, values = [inf, -inf] }}]\n\n\
         {half}expected = [{{ input = 0, values = [0.5, -inf] }}]\ntolerance = {{ absolute = 1e300, relative = 1e300 }}\n\n\
         {half}expected = [{{ input = 0, values = [nan, 0.5] }}]\ntolerance = {{ absolute = 1e300, relative = 1e300 }}\n\n\
         {number}returns = inf\n\n{number}returns = -inf\n\n{number}returns = nan\n\n{number}returns = 0.5\n\n\
         {scaled}returns = {{ values = [inf, -inf, nan] }}\n\n\
         {scaled}returns = {{ values = [-inf, -inf, nan] }}\n\n\
         {scaled}returns = {{ values = [inf, 1e38, nan] }}\ntolerance = {{ relative = 1e300 }}\n"
    );
    let (code, problems) = problems(&sandbox, &references);
    assert_eq!(code, Some(1));
    assert_eq!(
        problems,
        [
            "argument 0: 2 of 2 elements differ: element 0 is 0.5, expected inf",
            "argument 0: 1 of 2 elements differ: element 1 is 0.5, expected -inf",
            "argument 0: 1 of 2 elements differ: element 0 is 0.5, expected NaN",
            "it returned 0.5, expected inf",
            "it returned 0.5, expected -inf",
            "it returned 0.5, expected NaN",
            "none",
            "none",
            "the returned tensor: 1 of 3 elements differ: element 0 is inf, expected -inf",
            "the returned tensor: 1 of 3 elements differ: element 1 is -inf, expected 99999996802856920000000000000000000000",
        ]
    );
}

/// A tensor is unchanged if it holds what it held, also where several of its elements are one; and none of its elements is none.
#[test]
fn tensors_of_every_shape() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    for (tensor, shown, elements) in [
        ("4x4:strides=0x0", "float32[4x4] by 0x0", 16),
        ("4x4:strides=1x1:half:range", "float16[4x4] by 1x1", 16),
        ("2x3:strides=7x2", "float32[2x3] by 7x2", 6),
        ("4294967296x4294967296x0", "float32[4294967296x4294967296x0]", 0),
        ("9223372036854775807x0", "float32[9223372036854775807x0]", 0),
    ] {
        let run = call(&sandbox, oldest, &runtimes[0], &["-f", "numel", "--arg", &format!("tensor:{tensor}")]);
        assert_eq!(run.code, Some(0), "{tensor}: {}", run.stderr);
        assert!(run.stdout.starts_with(&format!("numel({shown}) returned {elements}\n")), "{tensor}: {}", run.stdout);
        assert!(run.stdout.contains(", unchanged"), "{tensor}: {}", run.stdout);
    }
    let shared = "[[call]]\nfunction = \"numel\"\ninputs = [{ shape = [2, 2], strides = [0, 1], values = [1, 2, 1, 2] }]\n";
    let (code, problems) = problems(&sandbox, &format!("{shared}expected = [{{ input = 0, values = [1, 2, 1, 2] }}]\n"));
    assert_eq!((code, problems), (Some(0), vec!["none".to_owned()]));
}

#[test]
fn types_and_devices_are_returned() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    for (function, args, returned, json) in [
        ("dtype_of", &["--dtype", "bf16"][..], "bfloat16", Value::from("bfloat16")),
        ("device_of", &[], "cpu", "cpu".into()),
        ("pinned", &[], "device 2 of DLPack's type 3", Value::Null),
        ("numbers", &[], "an object of tvm-ffi's type 71", Value::Null),
    ] {
        let run = call(&sandbox, oldest, &runtimes[0], &[&["-f", function], args].concat());
        assert!(run.code == Some(0) && run.stdout.contains(&format!(" returned {returned}\n")), "{}{}", run.stdout, run.stderr);
        let run = call(&sandbox, oldest, &runtimes[0], &[&["-f", function, "--format", "json"], args].concat());
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(report["returned"], json, "{report}");
    }
    let tensor = "inputs = [{ shape = [1], dtype = \"half\" }]\n";
    let dtype = format!("[[call]]\nfunction = \"dtype_of\"\n{tensor}");
    let device = format!("[[call]]\nfunction = \"device_of\"\n{tensor}");
    let (code, problems) = problems(
        &sandbox,
        &format!(
            "{dtype}returns = {{ dtype = \"float16\" }}\n\n{dtype}returns = {{ dtype = \"float32\" }}\n\n{dtype}returns = {{ none = true }}\n\n\
             {device}returns = {{ device = \"cpu\" }}\n\n{device}returns = {{ device = \"cuda\" }}\n\n\
             [[call]]\nfunction = \"pinned\"\nreturns = {{ device = \"cuda\" }}\n\n[[call]]\nfunction = \"numbers\"\nagainst = \"cuda\"\n"
        ),
    );
    assert_eq!(code, Some(1));
    assert_eq!(
        problems[..6],
        [
            "none",
            "it returned float16, expected float32",
            "it returned float16, expected none",
            "none",
            "it returned cpu, expected cuda:0",
            "it returned device 2 of DLPack's type 3, expected cuda:0",
        ]
    );
    assert_eq!(problems[6], "an object of tvm-ffi's type 71 was returned, which cannot be compared");
}

/// One call that cannot be made is one call that failed.
#[test]
fn other_calls_are_made_all_the_same() {
    let sandbox = Sandbox::without_torch();
    let answer = "[[call]]\nfunction = \"answer\"\n";
    let (code, problems) = problems(
        &sandbox,
        &format!(
            "{answer}returns = 42\n\n[[call]]\nfunction = \"relo\"\nreturns = 1\n\n[[call]]\nfunction = \"relo\"\nerror = \"no function\"\n\n\
             [[call]]\nfunction = \"numel\"\ninputs = [{{ shape = [2000000, 2000000] }}]\nreturns = 1\n\n{answer}against = \"xpu\"\n\n\
             {answer}returns = 41\n"
        ),
    );
    assert_eq!(code, Some(1));
    assert_eq!((problems.len(), problems[0].as_str()), (6, "none"), "{problems:?}");
    assert!(problems[1..3].iter().all(|problem| problem.starts_with("there is no function `relo`: there is `answer`")), "{problems:?}");
    assert!(problems[3].starts_with("the tensors of this call take "), "{problems:?}");
    assert_eq!(problems[4..], ["`against = \"xpu\"`: its kernels cannot be called yet", "it returned 42, expected 41"]);
}

/// Crashes, results and what is made of them, whatever becomes of open files and of the allocator.
#[test]
fn kernels_that_leave_little_intact() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, newest, runtimes } = kernels();
    for (kernel, runtime) in [(oldest, &runtimes[0]), (newest, &runtimes[1])] {
        let run = call(&sandbox, kernel, runtime, &["-f", "frees", "--timeout", "40", "--arg", "tensor"]);
        assert!(run.code == Some(1) && run.stderr.contains("`frees` was killed by signal 11 (SIGSEGV)"), "{}", run.stderr);
        let run = call(&sandbox, kernel, runtime, &["-f", "closes", "--arg", "tensor:4"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains("argument 0: float32[4], changed, from 0.500000 to 0.500000"), "{}", run.stdout);
        let run = call(&sandbox, kernel, runtime, &["-f", "scribbles", "--arg", "tensor:4", "--arg", "false"]);
        assert!(run.code == Some(0) && run.stdout.contains(") returned none\n"), "{}{}", run.stdout, run.stderr);
    }
    let run = call(&sandbox, oldest, &runtimes[0], &["-f", "scribbles", "--arg", "tensor", "--arg", "true", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let problem = "`scribbles` made the file of its results one that cannot be read";
    assert_eq!((&report["problem"], &report["function"]), (&problem.into(), &"scribbles".into()), "{report}");
    assert_eq!(report["ended"], serde_json::json!({"how": "failed", "message": problem}), "{report}");
    let left: Vec<_> = fs::read_dir(sandbox.path("home")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The time of a call without arguments is not told as that of the one that was meant, and codes are not made up.
#[test]
fn what_is_told_is_what_is_known() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    let run = call(&sandbox, oldest, &runtimes[0], &["-f", "hangs_without", "--timeout", "5", "--shape", "4"]);
    let said = "error[call]: `hangs_without`, called without arguments to learn what it takes, did not end within 5 s\nhint: `--arg` names";
    assert!(run.code == Some(1) && run.stderr.contains(said), "{}", run.stderr);
    let run = call(&sandbox, oldest, &runtimes[0], &["-f", "seven", "--arg", "1"]);
    let said = "error[call]: `seven` raised `Error`: a code other than 0 was returned, and no error was raised\n";
    assert!(run.code == Some(1) && run.stderr.contains(said), "{}", run.stderr);
    // Nothing was called.
    let run = call(&sandbox, oldest, std::path::Path::new("/bin/ls"), &["-f", "relu"]);
    assert!(run.code == Some(1) && run.stderr.contains("error[call]: cannot load `/bin/ls`: "), "{}", run.stderr);
    assert!(!run.stderr.contains("hint: it was called"), "{}", run.stderr);
}
