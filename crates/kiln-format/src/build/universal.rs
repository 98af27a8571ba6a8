//! What editions 1 and 2 share: backends come from the kernels or from `universal`, and everything belongs to `[torch]`.

use std::collections::BTreeMap;

use super::checks::{self, Component, FrameworkKind};
use super::model::{Build, Contents, Framework, General, Hub, TorchNoarch};
use super::reader::Reader;
use super::tables::FIRST_VERSION;
use super::update::{Editor, add_to_general};
use crate::backend::BackendName;
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::name::KernelName;
use crate::span::Spanned;

/// The backends of a universal kernel.
const ALL: [BackendName; 7] =
    [BackendName::Cann, BackendName::Cpu, BackendName::Cuda, BackendName::Metal, BackendName::Neuron, BackendName::Rocm, BackendName::Xpu];

/// The keys of `[torch]` that `[torch-noarch]` has no place for.
const ONLY_TORCH: [&str; 4] = ["src", "include", "minver", "maxver"];

/// The model of a file with this name, `universal`, framework and these kernels.
pub(super) fn contents(
    reader: &mut Reader<'_>,
    name: Option<Spanned<KernelName>>,
    universal: Option<Spanned<bool>>,
    framework: Option<Framework>,
    kernels: Option<Vec<Component>>,
) -> Option<Contents> {
    let kernels = kernels?;
    let universal = universal.filter(|universal| universal.value);
    let backends = backends(universal.as_ref(), &kernels);
    if backends.is_empty() {
        let message = "there are no kernels, so nothing tells which backends to build for";
        let hint = "add a kernel, or say `universal = true` for a kernel in Python".to_owned();
        reader.push(Diagnostic::error(code::MISSING_COMPONENT, None, message).with_hint(hint));
        return None;
    }
    let Framework::Torch(torch) = framework? else { return None };
    let python_only = universal.is_some() && kernels.is_empty() && torch.src.is_empty();
    let kind = if python_only { FrameworkKind::TorchNoarch } else { FrameworkKind::Torch };
    checks::components(reader, &backends, kind, &kernels);
    let framework = match python_only {
        true => Framework::TorchNoarch(TorchNoarch { pyext: torch.pyext, ..TorchNoarch::default() }),
        false => Framework::Torch(torch),
    };
    let kernels = kernels.into_iter().map(|kernel| kernel.contents).collect::<Option<Vec<_>>>()?;
    let name = name?;
    let version = Spanned::new(FIRST_VERSION, name.span);
    let general = General {
        name,
        version,
        license: None,
        upstream: None,
        source: None,
        backends,
        python_depends: Vec::new(),
        kernel_depends: Vec::new(),
        cuda_minver: None,
        cuda_maxver: None,
        backend_depends: BTreeMap::new(),
        hub: Hub::default(),
    };
    Some(Contents { general, framework, kernels })
}

/// All of them, or those of the kernels, sorted.
fn backends(universal: Option<&Spanned<bool>>, kernels: &[Component]) -> Vec<Spanned<BackendName>> {
    if let Some(universal) = universal {
        return ALL.map(|backend| Spanned::new(backend, universal.span)).to_vec();
    }
    let mut found: Vec<Spanned<BackendName>> = kernels.iter().map(|kernel| kernel.backend).collect();
    found.sort_by_key(|backend| backend.value);
    found.dedup();
    found
}

/// Writes the backends, in the place of the pair at `instead` where there is one, and renames the framework's table where nothing is compiled.
pub(super) fn upgrade(editor: &mut Editor<'_>, build: &Build, instead: Option<&[&str]>) {
    let backends = build.backends().map(|backend| format!("\"{backend}\"")).collect::<Vec<_>>().join(", ");
    let value = format!("[{backends}]");
    match instead.filter(|path| editor.has(path)) {
        Some(path) => {
            editor.rename(path, "backends", "general.backends");
            editor.set(path, &value);
        }
        None => add_to_general(editor, "backends", &value),
    }
    if matches!(build.framework, Framework::TorchNoarch(_)) {
        for key in ONLY_TORCH {
            editor.remove(&["torch", key], "a kernel in Python alone has no use for it");
        }
        editor.rename_table("torch", "torch-noarch");
    }
}
