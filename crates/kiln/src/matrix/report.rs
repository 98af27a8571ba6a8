//! A selection as text and JSON, and as a job matrix for CI systems.

use std::fmt::Write as _;

use kiln_format::BackendName;
use kiln_format::variant::{Cpu, Os, Variant};
use serde::Serialize;

use super::reason::{LeftOut, Reason};
use super::select::{Selected, Selection};

/// The names, one per line, in build order.
pub fn names(selection: &Selection) -> String {
    selection.variants.iter().map(|v| v.variant.name() + "\n").collect()
}

/// A table of the variants, what each is compiled with, and why each row that gives none does not. Rows of backends that the kernel
/// does not list, or that are Python only, are not worth a line.
pub fn table(selection: &Selection) -> String {
    let mut text = String::new();
    let width = selection.variants.iter().map(|v| v.variant.name().len()).max().unwrap_or(0);
    for v in &selection.variants {
        let mut facts = vec![match (v.torch(), &v.variant) {
            (Some(torch), _) => format!("compiled with torch {}", torch.release),
            (None, Variant::Arch(_)) => "compiled without torch".to_owned(),
            (None, Variant::Noarch(_)) => "Python only".to_owned(),
        }];
        if v.preferred {
            facts.push("preferred".to_owned());
        }
        if !v.default {
            facts.push("not in the default set".to_owned());
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:width$}  {}", v.variant.name(), facts.join(", "));
    }
    let left_out: Vec<_> = selection.left_out.iter().filter(|l| !matches!(l.reason, Reason::NotListed | Reason::Noarch)).collect();
    if !left_out.is_empty() {
        text.push_str("\nleft out:\n");
        let width = left_out.iter().map(|l| label(l).len()).max().unwrap_or(0);
        for l in left_out {
            let _ = writeln!(text, "  {:width$}  {}", label(l), l.reason);
        }
    }
    text
}

fn label(left_out: &LeftOut) -> String {
    match (&left_out.row, &left_out.name) {
        (Some(row), _) => row.to_string(),
        (None, Some(name)) => name.clone(),
        (None, None) => left_out.backend.to_string(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct SelectionJson {
    variants: Vec<VariantJson>,
    left_out: Vec<LeftOutJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct VariantJson {
    name: String,
    backend: &'static str,
    framework: &'static str,
    system: Option<String>,
    torch: Option<String>,
    compute: Option<String>,
    default: bool,
    preferred: bool,
    compliance: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct LeftOutJson {
    backend: &'static str,
    name: Option<String>,
    torch: Option<String>,
    compute: Option<String>,
    reason: &'static str,
    message: String,
}

/// Everything as one JSON object: `variants` with name, backend, framework, system, torch release, compute version, `default`,
/// `preferred`, `compliance`; `left-out` with backend, name, torch, compute version, a reason code and its text.
pub fn json(selection: &Selection) -> String {
    let variants = selection.variants.iter().map(variant_json).collect();
    let left_out = selection.left_out.iter().map(|l| LeftOutJson {
        backend: l.backend.as_str(),
        name: l.name.clone(),
        torch: l.row.as_ref().map(|row| row.torch.to_string()),
        compute: l.row.as_ref().and_then(|row| row.compute_version.as_ref()).map(ToString::to_string),
        reason: l.reason.code(),
        message: l.reason.to_string(),
    });
    to_json(&SelectionJson { variants, left_out: left_out.collect() })
}

fn variant_json(v: &Selected) -> VariantJson {
    VariantJson {
        name: v.variant.name(),
        backend: v.backend.as_str(),
        framework: v.kind.as_str(),
        system: v.target.map(|target| target.to_string()),
        torch: v.torch().map(|torch| torch.release.to_string()),
        compute: v.compute_version().map(ToString::to_string),
        default: v.default,
        preferred: v.preferred,
        compliance: v.compliance,
    }
}

/// The form of a job matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CiFormat {
    /// For `strategy.matrix` of a GitHub workflow: an object with `include`, on one line.
    Github,
    /// A plain list of the same entries.
    Json,
}

#[derive(Serialize)]
struct Jobs {
    include: Vec<Job>,
}

#[derive(Serialize)]
struct Job {
    variant: String,
    backend: &'static str,
    /// Label of the hosted machine that has the variant's processor and system.
    os: &'static str,
    torch: String,
}

/// One job per variant; `torch` is the release that it is compiled with, empty for noarch.
pub fn ci_matrix(variants: &[Selected], format: CiFormat) -> String {
    let include: Vec<Job> = variants
        .iter()
        .map(|v| Job {
            variant: v.variant.name(),
            backend: v.backend.as_str(),
            os: machine(v),
            torch: v.torch().map(|torch| torch.release.to_string()).unwrap_or_default(),
        })
        .collect();
    match format {
        CiFormat::Github => serde_json::to_string(&Jobs { include }).map(|text| text + "\n").unwrap_or_default(),
        CiFormat::Json => to_json(&include),
    }
}

/// Labels of GitHub's hosted machines. Noarch variants build anywhere.
fn machine(variant: &Selected) -> &'static str {
    match variant.target.map(|target| (target.os, target.cpu)) {
        None | Some((Os::Linux, Cpu::X86_64)) => "ubuntu-24.04",
        Some((Os::Linux, Cpu::Aarch64)) => "ubuntu-24.04-arm",
        // Loaders take variants for Metal from macOS 26 on.
        Some((Os::Darwin, Cpu::Aarch64)) if variant.backend == BackendName::Metal => "macos-26",
        Some((Os::Darwin, Cpu::Aarch64)) => "macos-15",
        Some((Os::Darwin, Cpu::X86_64)) => "macos-15-intel",
        Some((Os::Windows, Cpu::X86_64)) => "windows-2025",
        Some((Os::Windows, Cpu::Aarch64)) => "windows-11-arm",
    }
}

fn to_json(value: &impl Serialize) -> String {
    // Plain structs and lists with text keys always serialise.
    serde_json::to_string_pretty(value).map(|text| text + "\n").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kiln_format::{BackendName, MajorMinor};

    use super::*;
    use crate::matrix::testing::{LINUX, build, peer};
    use crate::matrix::{Matrix, select};

    #[test]
    fn text_for_people() {
        let kernel =
            build("[\"cpu\", \"cuda\", \"rocm\"]", "[torch]\nminver = \"2.13\"\n[general.cuda]\nmaxver = \"13.0\"\n", &["cpu", "cuda"]);
        let selection = select(&kernel, &peer(), LINUX);
        assert_eq!(names(&selection).lines().next(), Some("torch213-cxx11-cpu-x86_64-linux"));
        insta::assert_snapshot!(table(&selection), @r"
        torch213-cxx11-cpu-x86_64-linux    compiled with torch 2.13.0, preferred
        torch213-cxx11-cu126-x86_64-linux  compiled with torch 2.13.0, preferred
        torch213-cxx11-cu130-x86_64-linux  compiled with torch 2.13.0
        torch-rocm                         Python only, preferred

        left out:
          torch 2.11 cpu        torch is older than `torch.minver` = 2.13
          torch 2.12 cpu        torch is older than `torch.minver` = 2.13
          torch 2.12 cuda 12.6  torch is older than `torch.minver` = 2.13
          torch 2.12 cuda 13.0  torch is older than `torch.minver` = 2.13
          torch 2.12 cuda 13.2  CUDA is newer than `general.cuda.maxver` = 13.0
          torch 2.13 cuda 13.2  CUDA is newer than `general.cuda.maxver` = 13.0
        ");
    }

    #[test]
    fn json_for_programs() {
        let kernel = build("[\"cpu\", \"metal\"]", "[torch]\nstable-abi = \"2.15\"\n", &["cpu"]);
        let mut matrix = Matrix::builtin().unwrap();
        matrix
            .rows
            .retain(|row| row.torch == MajorMinor::new(2, 12) && row.backend() != BackendName::Cuda || row.torch > MajorMinor::new(2, 14));
        let selection = select(&kernel, &matrix, LINUX);
        insta::assert_snapshot!(json(&selection), @r#"
        {
          "variants": [
            {
              "name": "torch-stable-abi215-cpu-x86_64-linux",
              "backend": "cpu",
              "framework": "torch-stable-abi",
              "system": "x86_64-linux",
              "torch": "2.15.0",
              "compute": null,
              "default": true,
              "preferred": true,
              "compliance": false
            },
            {
              "name": "torch-metal",
              "backend": "metal",
              "framework": "torch-noarch",
              "system": null,
              "torch": null,
              "compute": null,
              "default": true,
              "preferred": true,
              "compliance": true
            }
          ],
          "left-out": [
            {
              "backend": "cpu",
              "name": null,
              "torch": "2.12",
              "compute": null,
              "reason": "stable-abi-newer",
              "message": "torch is older than `torch.stable-abi` = 2.15"
            },
            {
              "backend": "metal",
              "name": null,
              "torch": "2.12",
              "compute": null,
              "reason": "noarch",
              "message": "it is Python only and needs no torch build"
            },
            {
              "backend": "rocm",
              "name": null,
              "torch": "2.12",
              "compute": "7.1",
              "reason": "backend-not-listed",
              "message": "`general.backends` does not list it"
            },
            {
              "backend": "rocm",
              "name": null,
              "torch": "2.12",
              "compute": "7.2",
              "reason": "backend-not-listed",
              "message": "`general.backends` does not list it"
            },
            {
              "backend": "xpu",
              "name": null,
              "torch": "2.12",
              "compute": "2025.3.2",
              "reason": "backend-not-listed",
              "message": "`general.backends` does not list it"
            },
            {
              "backend": "cuda",
              "name": null,
              "torch": "2.15",
              "compute": "13.2",
              "reason": "backend-not-listed",
              "message": "`general.backends` does not list it"
            },
            {
              "backend": "cann",
              "name": null,
              "torch": "2.12",
              "compute": "8.5",
              "reason": "backend-not-listed",
              "message": "`general.backends` does not list it"
            }
          ]
        }
        "#);
    }

    #[test]
    fn job_matrix() {
        let kernel = build("[\"cpu\", \"cuda\"]", "[torch]\nminver = \"2.15\"\n", &["cpu"]);
        let selection = select(&kernel, &Matrix::builtin().unwrap(), LINUX);
        insta::assert_snapshot!(ci_matrix(&selection.variants, CiFormat::Github), @r#"{"include":[{"variant":"torch215-cxx11-cpu-x86_64-linux","backend":"cpu","os":"ubuntu-24.04","torch":"2.15.0"},{"variant":"torch-cuda","backend":"cuda","os":"ubuntu-24.04","torch":""}]}"#);
        let list: serde_json::Value = serde_json::from_str(&ci_matrix(&selection.variants, CiFormat::Json)).unwrap();
        let object: serde_json::Value = serde_json::from_str(&ci_matrix(&selection.variants, CiFormat::Github)).unwrap();
        assert_eq!(object["include"], list);
    }
}
