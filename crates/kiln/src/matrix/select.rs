//! From a kernel and the matrix to the kernel's variants on one target.

use kiln_format::build::{Framework, KernelOptions};
use kiln_format::variant::{ArchFramework, Compute};
use kiln_format::{BackendName, Build, MajorMinor, Variant, Version};

use super::data::{Matrix, Row, Target};
use super::reason::{LeftOut, Reason};

/// What a variant's code speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Torch's C++ ABI.
    Torch,
    /// Torch's stable ABI of this version.
    TorchStable(MajorMinor),
    /// The ABI of this tvm-ffi.
    TvmFfi(MajorMinor),
    /// Python only.
    Noarch,
}

impl Kind {
    /// The name in reports and in the build record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::TorchStable(_) => "torch-stable-abi",
            Self::TvmFfi(_) => "tvm-ffi",
            Self::Noarch => "torch-noarch",
        }
    }
}

/// The torch that a variant is compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchUse {
    /// Its minor.
    pub minor: MajorMinor,
    /// The release whose headers are used.
    pub release: Version,
}

/// One variant of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its name as a value.
    pub variant: Variant,
    /// The backend as metadata and ops id name it (`cann`, where a noarch name says `npu`).
    pub backend: BackendName,
    /// What its code speaks.
    pub kind: Kind,
    /// What it runs on; none for noarch.
    pub target: Option<Target>,
    /// The row that it is compiled for; none for noarch.
    pub row: Option<Row>,
    /// Whether a row of its name is in the default set. Noarch variants always are.
    pub default: bool,
    /// Whether a row of its name is in the peer's matrix, so that the name counts for compliance.
    pub compliance: bool,
    /// Whether it is one of those that a plain build makes: of each backend the preferred one, with the stable ABI one per major
    /// version of the compute.
    pub preferred: bool,
}

impl Selected {
    /// The torch that it is compiled with; none for noarch and tvm-ffi.
    pub fn torch(&self) -> Option<TorchUse> {
        let row = self.row.as_ref().filter(|_| !matches!(self.kind, Kind::TvmFfi(_)));
        row.map(|row| TorchUse { minor: row.torch, release: row.release.clone() })
    }

    /// The compute version as the matrix writes it, where there is one.
    pub fn compute_version(&self) -> Option<&Version> {
        self.row.as_ref().and_then(|row| row.compute_version.as_ref())
    }
}

/// The variants of a kernel, in build order, and what was left out, in matrix order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The variants. Names are unique.
    pub variants: Vec<Selected>,
    /// What gives no variant.
    pub left_out: Vec<LeftOut>,
}

impl Selection {
    /// Why things are left out, each reason once with the number of rows or variants that it is about, in matrix order. What the
    /// kernel does not ask for at all is not told.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for left_out in self.left_out.iter().filter(|l| !matches!(l.reason, Reason::NotListed | Reason::Noarch)) {
            let text = left_out.reason.to_string();
            match reasons.iter_mut().find(|(known, _)| *known == text) {
                Some((_, number)) => *number += 1,
                None => reasons.push((text, 1)),
            }
        }
        reasons.into_iter().map(|(text, number)| format!("{text} ({number} left out)")).collect()
    }
}

/// Every variant of `build` for `target`.
pub fn select(build: &Build, matrix: &Matrix, target: Target) -> Selection {
    select_rows(build, matrix, target, &|_| None)
}

/// Like [`select`], without the rows for which `filter` names an option that leaves them out.
pub(super) fn select_rows(build: &Build, matrix: &Matrix, target: Target, filter: &dyn Fn(&Row) -> Option<&'static str>) -> Selection {
    let mut selection = Selection::default();
    let mut stable: Vec<Selected> = Vec::new();
    // With the place in the matrix, which decides the order.
    let mut others: Vec<(usize, Selected)> = Vec::new();

    for (index, row) in matrix.rows.iter().enumerate() {
        let candidate = applies(build, row, target)
            .and_then(|kind| filter(row).map_or(Ok(kind), |option| Err(Reason::Filtered(option))))
            .and_then(|kind| arch(row, kind, target));
        match candidate {
            Ok(candidate) if matches!(candidate.kind, Kind::TorchStable(_)) => keep_newest(&mut stable, candidate, &mut selection.left_out),
            Ok(candidate) => others.push((index, candidate)),
            Err(reason) => selection.left_out.push(LeftOut { row: Some(row.clone()), backend: row.backend(), name: None, reason }),
        }
    }
    for backend in build.backends().filter(|b| kind_of(build, *b) == Ok(Kind::Noarch)) {
        let first = matrix.rows.iter().position(|row| row.backend() == backend && check_bounds(build, row).is_ok()).unwrap_or(usize::MAX);
        if matches!(build.framework, Framework::Torch(_)) && bounds_exclude_all(build, matrix, backend) {
            let name = Some(Variant::noarch(backend).name());
            selection.left_out.push(LeftOut { row: None, backend, name, reason: Reason::BoundsExcludeAll });
        } else {
            others.push((first, noarch(matrix, backend)));
        }
    }
    say_newest(&stable, &mut selection.left_out);
    stable.sort_by_key(|v| (v.backend, v.row.as_ref().and_then(|row| row.compute.version())));
    others.sort_by_key(|(index, _)| *index);

    for candidate in stable.into_iter().chain(others.into_iter().map(|(_, candidate)| candidate)) {
        match selection.variants.iter_mut().find(|v| v.variant == candidate.variant) {
            None => selection.variants.push(candidate),
            Some(first) => {
                first.default |= candidate.default;
                first.compliance |= candidate.compliance;
                selection.left_out.push(LeftOut {
                    backend: candidate.backend,
                    name: Some(candidate.variant.name()),
                    row: candidate.row,
                    reason: Reason::SameName,
                });
            }
        }
    }
    mark_preferred(&mut selection.variants);
    selection
}

/// What the code of a variant for `backend` speaks, or why there is none.
pub(super) fn kind_of(build: &Build, backend: BackendName) -> Result<Kind, Reason> {
    let compiled = build.kernels_for(backend).next().is_some();
    match &build.framework {
        Framework::TorchNoarch(_) => Ok(Kind::Noarch),
        Framework::Torch(_) if !compiled => Ok(Kind::Noarch),
        Framework::Torch(_) => Ok(build.stable_abi_for(backend).map_or(Kind::Torch, |version| Kind::TorchStable(version.major_minor()))),
        Framework::TvmFfi(_) if !compiled => Err(Reason::NoComponent),
        // The version is the row's.
        Framework::TvmFfi(_) => Ok(Kind::TvmFfi(MajorMinor::new(0, 0))),
    }
}

/// What a row gives, or why it gives nothing.
fn applies(build: &Build, row: &Row, target: Target) -> Result<Kind, Reason> {
    if !build.backends().any(|listed| listed == row.backend()) {
        return Err(Reason::NotListed);
    }
    let kind = match (kind_of(build, row.backend())?, row.tvm_ffi) {
        (Kind::Noarch, _) => return Err(Reason::Noarch),
        (Kind::TvmFfi(_), Some(version)) => Kind::TvmFfi(version),
        (Kind::TvmFfi(_), None) => return Err(Reason::NoTvmFfi),
        (kind, _) => kind,
    };
    if !row.systems.contains(&target) {
        return Err(Reason::OtherSystem(target));
    }
    check_bounds(build, row)?;
    if let (Kind::TorchStable(declared), Some(written)) = (kind, build.stable_abi_for(row.backend()))
        && declared > row.torch
    {
        return Err(Reason::StableAbiNewer(written.value.clone()));
    }
    match least_cuda(build, row) {
        Some(least) => Err(Reason::EveryKernelNeedsCuda(least)),
        None => Ok(kind),
    }
}

/// Torch is compared by major and minor only, so that `maxver = "2.12"` takes 2.12.1 in.
fn check_bounds(build: &Build, row: &Row) -> Result<(), Reason> {
    if let Compute::Cuda(_) = row.compute
        && let Some(cuda) = &row.compute_version
    {
        if let Some(bound) = build.general.cuda_minver.as_ref().filter(|bound| *cuda < bound.value) {
            return Err(Reason::CudaBelow(bound.value.clone()));
        }
        if let Some(bound) = build.general.cuda_maxver.as_ref().filter(|bound| *cuda > bound.value) {
            return Err(Reason::CudaAbove(bound.value.clone()));
        }
    }
    let Framework::Torch(torch) = &build.framework else { return Ok(()) };
    if let Some(bound) = torch.minver.as_ref().filter(|bound| row.torch < bound.major_minor()) {
        return Err(Reason::TorchBelow(bound.value.clone()));
    }
    if let Some(bound) = torch.maxver.as_ref().filter(|bound| row.torch > bound.major_minor()) {
        return Err(Reason::TorchAbove(bound.value.clone()));
    }
    Ok(())
}

/// The least CUDA version that some kernel is content with, when the row's is below even that.
fn least_cuda(build: &Build, row: &Row) -> Option<Version> {
    let Compute::Cuda(_) = row.compute else { return None };
    let cuda = row.compute_version.as_ref()?;
    let mut least: Option<&Version> = None;
    for kernel in build.kernels_for(BackendName::Cuda) {
        let KernelOptions::Cuda { minver: Some(minver), .. } = &kernel.options else { return None };
        if minver.value <= *cuda {
            return None;
        }
        least = Some(least.map_or(&minver.value, |l| l.min(&minver.value)));
    }
    least.cloned()
}

fn bounds_exclude_all(build: &Build, matrix: &Matrix, backend: BackendName) -> bool {
    let mut rows = matrix.rows.iter().filter(|row| row.backend() == backend).peekable();
    rows.peek().is_some() && rows.all(|row| check_bounds(build, row).is_err())
}

fn arch(row: &Row, kind: Kind, target: Target) -> Result<Selected, Reason> {
    let framework = match kind {
        Kind::TorchStable(version) => ArchFramework::TorchStable { version },
        Kind::TvmFfi(version) => ArchFramework::TvmFfi { version },
        Kind::Torch | Kind::Noarch => ArchFramework::TorchCxx { version: row.torch, abi: None },
    };
    let variant = Variant::arch(framework, row.compute, target.cpu, target.os).map_err(Reason::Name)?;
    Ok(Selected {
        variant,
        backend: row.backend(),
        kind,
        target: Some(target),
        row: Some(row.clone()),
        default: row.default,
        compliance: !row.kiln_only,
        preferred: false,
    })
}

fn noarch(matrix: &Matrix, backend: BackendName) -> Selected {
    let compliance = matrix.rows.iter().any(|row| row.backend() == backend && row.default && !row.kiln_only);
    Selected {
        variant: Variant::noarch(backend),
        backend,
        kind: Kind::Noarch,
        target: None,
        row: None,
        default: true,
        compliance,
        preferred: false,
    }
}

/// Adds a stable-ABI candidate. Its name does not depend on torch: of equal names the one with the newest torch stays, the first
/// among equals, and the name is in the default set when any of its rows is.
fn keep_newest(stable: &mut Vec<Selected>, candidate: Selected, left_out: &mut Vec<LeftOut>) {
    let Some(kept) = stable.iter_mut().find(|v| v.variant == candidate.variant) else {
        stable.push(candidate);
        return;
    };
    let torch = |v: &Selected| v.row.as_ref().map(|row| row.torch);
    let (default, compliance) = (kept.default || candidate.default, kept.compliance || candidate.compliance);
    let older = if torch(&candidate) > torch(kept) { std::mem::replace(kept, candidate) } else { candidate };
    (kept.default, kept.compliance) = (default, compliance);
    let reason = match torch(kept) {
        Some(newest) if torch(&older) != Some(newest) => Reason::NewerTorch(newest),
        _ => Reason::SameName,
    };
    left_out.push(LeftOut { backend: older.backend, name: Some(older.variant.name()), row: older.row, reason });
}

/// Which torch the rows of one name gave way to is known when all have been seen.
fn say_newest(stable: &[Selected], left_out: &mut [LeftOut]) {
    for left_out in left_out {
        let kept = stable.iter().find(|kept| Some(kept.variant.name()) == left_out.name).and_then(|kept| kept.row.as_ref());
        if let (Reason::NewerTorch(torch), Some(row)) = (&mut left_out.reason, kept) {
            *torch = row.torch;
        }
    }
}

/// Whether two variants are ones of which a plain build makes one: those of a backend, where the name does not depend on torch those of
/// a major version of the compute.
pub(super) fn stands_for(a: &Selected, b: &Selected) -> bool {
    let group = |v: &Selected| match v.kind {
        Kind::TorchStable(_) | Kind::TvmFfi(_) => {
            (v.backend, v.target, v.row.as_ref().and_then(|row| row.compute.version()).map(|version| version.major))
        }
        _ => (v.backend, v.target, None),
    };
    group(a) == group(b)
}

/// Marks, per backend, the variants that stand for the rest. Order of preference: default set, newest torch, oldest compute. A
/// loader takes a variant whose compute minor is at most its own, so there the oldest minor of each major stands.
pub(super) fn mark_preferred(variants: &mut [Selected]) {
    let rank = |v: &Selected| {
        let (torch, compute) = v.row.as_ref().map_or((None, None), |row| (Some(row.torch), row.compute.version()));
        match v.kind {
            Kind::TorchStable(_) | Kind::TvmFfi(_) => (!v.default, None, compute),
            _ => (!v.default, Some(std::cmp::Reverse(torch)), compute),
        }
    };
    let preferred: Vec<bool> =
        variants.iter().map(|v| !variants.iter().any(|other| stands_for(other, v) && rank(other) < rank(v))).collect();
    for (variant, preferred) in variants.iter_mut().zip(preferred) {
        variant.preferred = preferred;
    }
}
