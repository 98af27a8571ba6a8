//! What headers of torch cost, measured on real units.

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::project::{ProjectBuilder, kept};

/// Measures a project and gives the report.
fn measured(sandbox: &Sandbox, project: &ProjectBuilder) -> Value {
    let dir = project.write(&sandbox.path("project"));
    let run = sandbox.run(&dir, &["lint", "--torch", "2.15", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(!dir.join("build").exists(), "nothing is built");
    serde_json::from_str(&run.stdout).unwrap()
}

/// A unit whose umbrella header stands in a header of the project's, and one without torch.
#[test]
fn an_umbrella_header_is_measured_and_a_narrower_include_too() {
    let sandbox = Sandbox::new();
    let text = format!(
        "#include \"own.h\"\ntorch::Tensor tiny_relu(const torch::Tensor &x) {{\n  TORCH_CHECK(x.dim() == 1, \"one dimension\");\n  return torch::relu(x);\n}}\n{}",
        kept("(tiny_relu != nullptr)")
    );
    let project = ProjectBuilder::new()
        .file("cpu/k.cpp", &text)
        .file("cpu/own.h", "#pragma once\n\n#include <torch/types.h>\n")
        .kernel("k", &["torch"], &["cpu/k.cpp", "cpu/own.h"], "")
        .file("plain/p.cpp", &format!("int tiny_p() {{ return 1; }}\n{}", kept("tiny_p()")))
        .kernel("p", &[], &["plain/p.cpp"], "");
    let report = measured(&sandbox, &project);
    // The binding and the plain unit include nothing of torch.
    assert_eq!(report["without-torch"], 2, "{report:#}");
    let units = report["units"].as_array().unwrap();
    assert_eq!(units.len(), 1, "{report:#}");
    let unit = &units[0];
    assert_eq!((unit["unit"].as_str(), unit["component"].as_str()), (Some("cpu/k.cpp"), Some("kernel.k")));
    assert_eq!(unit["torch-headers"], serde_json::json!(["torch/types.h"]));
    let (whole, headers) = (unit["unit-ms"].as_u64().unwrap(), unit["headers-ms"].as_u64().unwrap());
    assert!(headers > 500 && unit["share"].as_f64().unwrap() > 0.5, "{whole} {headers}");
    let finding = |code: &str| {
        let findings = unit["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["code"] == code).unwrap_or_else(|| panic!("no {code}: {report:#}")).clone()
    };
    let umbrella = finding("umbrella-include");
    assert_eq!((umbrella["file"].as_str(), umbrella["line"].as_u64()), (Some("cpu/own.h"), Some(3)));
    let fix = umbrella["fix"].as_str().unwrap();
    assert_eq!(fix, "include <ATen/core/Tensor.h>, <ATen/ops/relu.h>, <c10/util/Exception.h>, and write `at::` for `torch::`");
    let saves = umbrella["saves-ms"].as_u64().unwrap();
    assert!(saves * 10 > whole && saves < whole, "{saves} of {whole}");
    assert!(finding("stable-abi-include")["saves-ms"].as_u64().unwrap() > saves / 2);
    assert_eq!(finding("torch-include-cost")["saves-ms"].as_u64(), Some(headers));
}
