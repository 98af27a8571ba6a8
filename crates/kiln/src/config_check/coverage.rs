//! Device code for fewer devices than it seems.

use kiln_format::build::{Kernel, KernelOptions};
use kiln_format::{BackendName, Build, CudaCapability, CudaSuffix, Diagnostic, Spanned};

type List = [Spanned<CudaCapability>];

pub(super) fn check(build: &Build) -> Vec<Diagnostic> {
    let kernels: Vec<&Kernel> = build.kernels_for(BackendName::Cuda).filter(|kernel| has_device_code(kernel)).collect();
    let mut diagnostics: Vec<Diagnostic> = kernels.iter().filter_map(|kernel| list(kernel)).flat_map(one_device).collect();
    diagnostics.extend(differing(&kernels));
    diagnostics
}

fn has_device_code(kernel: &Kernel) -> bool {
    kernel.src.iter().any(|source| source.as_str().ends_with(".cu"))
}

fn list(kernel: &Kernel) -> Option<&List> {
    match &kernel.options {
        KernelOptions::Cuda { capabilities, .. } => capabilities.as_deref(),
        _ => None,
    }
}

/// Entries for one device of a generation whose newer devices nothing else in the list is for.
fn one_device(list: &List) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for entry in list.iter().filter(|entry| entry.value.suffix == Some(CudaSuffix::Arch)) {
        let CudaCapability { major, minor, .. } = entry.value;
        let siblings = kiln_cuda::known_capabilities().filter(|device| device.0 == major && device.1 > minor);
        let left: Vec<String> = siblings
            .filter(|device| !list.iter().any(|other| runs_on(&other.value, *device)))
            .map(|(major, minor)| format!("{major}.{minor}"))
            .collect();
        if left.is_empty() {
            continue;
        }
        let message = format!(
            "code for `{}` runs on devices of capability {major}.{minor} alone: nothing here is for {}",
            entry.value,
            left.join(", ")
        );
        let hint = format!("`{major}.{minor}f` is for the devices of its family too, and `{major}.{minor}` for all of {major}.x");
        diagnostics.push(Diagnostic::note("capability-coverage", entry.span, message).with_hint(hint));
    }
    diagnostics
}

/// Whether code for a capability, or its PTX, runs on a device.
fn runs_on(capability: &CudaCapability, device: (u32, u32)) -> bool {
    let of = (capability.major, capability.minor);
    match capability.suffix {
        Some(CudaSuffix::Arch) => of == device,
        Some(CudaSuffix::Family) => of.0 == device.0 && of <= device,
        None => of <= device && (of.0 == device.0 || capability.ptx),
    }
}

/// The first kernel that is for other devices than one before it: a variant has one list for all of its kernels.
fn differing(kernels: &[&Kernel]) -> Option<Diagnostic> {
    let (first, others) = kernels.split_first()?;
    let other = others.iter().find(|kernel| values(kernel) != values(first))?;
    let span = list(other).or_else(|| list(first)).and_then(|list| list.first()).map(|entry| entry.span);
    let message = format!("[kernel.{}] is for other devices than [kernel.{}]: loaders know one list for both", other.name, first.name);
    let hint = "let the binding ask which device it has before it launches what is for some only, or list the same".to_owned();
    Some(Diagnostic::note("capability-coverage", span, message).with_hint(hint))
}

fn values(kernel: &Kernel) -> Option<Vec<&CudaCapability>> {
    let mut values: Vec<&CudaCapability> = list(kernel)?.iter().map(|entry| &entry.value).collect();
    values.sort();
    values.dedup();
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;

    fn said(lists: &[Option<&str>]) -> Vec<String> {
        let mut rest = "[torch]\nsrc = [\"b.cpp\"]\n[kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = []\n".to_owned();
        for (number, list) in lists.iter().enumerate() {
            rest += &format!("[kernel.k{number}]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"{number}.cu\"]\n");
            rest += &list.map(|list| format!("cuda-capabilities = [{list}]\n")).unwrap_or_default();
        }
        super::check(&Project::new(&rest, &[]).build).into_iter().map(|diagnostic| diagnostic.message).collect()
    }

    #[test]
    fn devices_beside_the_one_of_a_suffix() {
        let alone = "code for `10.0a` runs on devices of capability 10.0 alone: nothing here is for 10.1, 10.3, 10.7";
        assert_eq!(said(&[Some("\"10.0a\"")]), [alone]);
        assert_eq!(said(&[Some("\"9.0\", \"10.0a\"")]), [alone]);
        let fewer = "code for `10.0a` runs on devices of capability 10.0 alone: nothing here is for 10.1, 10.7";
        assert_eq!(said(&[Some("\"10.0a\", \"10.3a\"")])[0], fewer);
        for list in ["\"10.0\", \"10.0a\", \"12.0f\"", "\"10.0a\", \"10.0f\"", "\"9.0+PTX\", \"10.0a\"", "\"9.0a\"", "\"8.0\""] {
            assert_eq!(said(&[Some(list)]), Vec::<String>::new(), "{list}");
        }
        assert_eq!(said(&[None]), Vec::<String>::new());
    }

    #[test]
    fn kernels_for_other_devices() {
        let other = "[kernel.k1] is for other devices than [kernel.k0]: loaders know one list for both";
        assert_eq!(said(&[Some("\"8.0\""), Some("\"9.0a\"")]), [other]);
        assert_eq!(said(&[None, Some("\"8.0\"")]), [other]);
        assert_eq!(said(&[Some("\"8.0\", \"9.0\""), Some("\"9.0\", \"8.0\"")]), Vec::<String>::new());
        assert_eq!(said(&[None, None]), Vec::<String>::new());
    }
}
