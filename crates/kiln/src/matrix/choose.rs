//! Which of a kernel's variants a command is about.

use kiln_format::{BackendName, Build, MajorMinor, Version};
use thiserror::Error;

use super::data::{Matrix, Row, Target};
use super::reason::{LeftOut, Reason};
use super::select::{Kind, Selected, Selection, kind_of, mark_preferred, select_rows, stands_for};

/// The three sets of variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Set {
    /// Of each backend that this machine can build, what stands for the rest.
    #[default]
    Preferred,
    /// The default set of the matrix: what is published.
    Release,
    /// Everything that applies.
    All,
}

/// What the command line narrows the set to. An empty list narrows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Names of variants, in which `*` stands for any text and `?` for one character. They choose among all variants that apply,
    /// whatever the set.
    pub variants: Vec<String>,
    /// Backends.
    pub backends: Vec<BackendName>,
    /// Torch versions: minors (`2.13`) or the releases that the matrix compiles with (`2.13.0`). Noarch variants have none and stay.
    pub torch: Vec<Version>,
    /// CUDA versions, by major and minor. Variants of other backends stay.
    pub cuda: Vec<Version>,
}

/// A filter that can match nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChooseError {
    /// A name or pattern that no variant of the kernel has.
    #[error("no variant of this kernel is called `{name}`")]
    UnknownVariant {
        /// The name or pattern.
        name: String,
        /// The names that there are, in build order.
        valid: Vec<String>,
    },
    /// A backend that the kernel does not list.
    #[error("this kernel has no backend `{backend}`")]
    UnknownBackend {
        /// The backend.
        backend: BackendName,
        /// Those that it lists.
        valid: Vec<String>,
    },
    /// A torch version that no row has.
    #[error("no row of the matrix has torch {version}")]
    UnknownTorch {
        /// The version.
        version: Version,
        /// Those that there are.
        valid: Vec<String>,
    },
    /// CUDA versions choose nothing in a kernel that compiles nothing for CUDA.
    #[error("`--cuda` chooses nothing: this kernel has no variant that is compiled for CUDA")]
    NoCuda {
        /// The backends that it is compiled for.
        valid: Vec<String>,
    },
    /// A CUDA version that no row has.
    #[error("no row of the matrix has CUDA {version}")]
    UnknownCuda {
        /// The version.
        version: Version,
        /// Those that there are.
        valid: Vec<String>,
    },
}

impl ChooseError {
    /// What would be valid, for the user.
    pub fn hint(&self) -> String {
        let (Self::UnknownVariant { valid, .. }
        | Self::UnknownBackend { valid, .. }
        | Self::UnknownTorch { valid, .. }
        | Self::NoCuda { valid }
        | Self::UnknownCuda { valid, .. }) = self;
        match valid.as_slice() {
            [] => "there is none for this kernel".to_owned(),
            valid => format!("there is {}", valid.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// The variants of `build` for `target` that a command is about, and for all others why not. `can_build` says whether this machine can
/// build a variant, and why not; what is published, [`Set::Release`], does not depend on that.
///
/// # Errors
/// When a filter names something that does not exist. An empty selection is no error here.
pub fn choose(
    build: &Build,
    matrix: &Matrix,
    target: Target,
    set: Set,
    filters: &Filters,
    can_build: &dyn Fn(&Selected) -> Result<(), String>,
) -> Result<Selection, ChooseError> {
    check_filters(build, matrix, filters)?;
    let mut selection = select_rows(build, matrix, target, &|row| filtered(row, filters));
    if !filters.variants.is_empty() {
        let valid: Vec<String> = selection.variants.iter().map(|v| v.variant.name()).collect();
        for pattern in &filters.variants {
            if !valid.iter().any(|name| matches(pattern, name)) {
                return Err(ChooseError::UnknownVariant { name: pattern.clone(), valid });
            }
        }
    }
    let named = |v: &Selected| filters.variants.iter().any(|pattern| matches(pattern, &v.variant.name()));
    leave_out(&mut selection, &|v| match () {
        () if !filters.backends.is_empty() && !filters.backends.contains(&v.backend) => Some(Reason::Filtered("--backend")),
        () if !filters.variants.is_empty() && !named(v) => Some(Reason::Filtered("--variant")),
        () => None,
    });
    if filters.variants.is_empty() {
        narrow(&mut selection, set, can_build);
    }
    Ok(selection)
}

fn narrow(selection: &mut Selection, set: Set, can_build: &dyn Fn(&Selected) -> Result<(), String>) {
    match set {
        Set::All => leave_out(selection, &|v| can_build(v).err().map(Reason::CannotBuild)),
        Set::Release => leave_out(selection, &|v| (!v.default).then_some(Reason::NotDefault)),
        Set::Preferred => {
            leave_out(selection, &|v| can_build(v).err().map(Reason::CannotBuild));
            mark_preferred(&mut selection.variants);
            let preferred: Vec<Selected> = selection.variants.iter().filter(|v| v.preferred).cloned().collect();
            leave_out(selection, &|v| {
                let stands = preferred.iter().find(|other| stands_for(other, v)).map(|other| other.variant.name());
                if v.preferred { None } else { Some(Reason::NotPreferred(stands.unwrap_or_default())) }
            });
        }
    }
}

fn leave_out(selection: &mut Selection, reason: &dyn Fn(&Selected) -> Option<Reason>) {
    let (mut kept, left_out) = (Vec::new(), &mut selection.left_out);
    for variant in std::mem::take(&mut selection.variants) {
        match reason(&variant) {
            None => kept.push(variant),
            Some(reason) => {
                left_out.push(LeftOut { backend: variant.backend, name: Some(variant.variant.name()), row: variant.row, reason });
            }
        }
    }
    selection.variants = kept;
}

fn filtered(row: &Row, filters: &Filters) -> Option<&'static str> {
    if !filters.torch.is_empty() && !filters.torch.iter().any(|version| is_torch(row, version)) {
        return Some("--torch");
    }
    let other_cuda = |version: MajorMinor| !filters.cuda.iter().any(|wanted| wanted.major_minor() == version);
    match row.compute {
        kiln_format::variant::Compute::Cuda(version) if !filters.cuda.is_empty() && other_cuda(version) => Some("--cuda"),
        _ => None,
    }
}

/// Whether `version`, a minor or a release, names the torch of `row`.
fn is_torch(row: &Row, version: &Version) -> bool {
    match version.components().len() {
        0..=2 => row.torch == version.major_minor(),
        _ => row.release == *version,
    }
}

fn check_filters(build: &Build, matrix: &Matrix, filters: &Filters) -> Result<(), ChooseError> {
    if let Some(backend) = filters.backends.iter().find(|wanted| !build.backends().any(|listed| listed == **wanted)) {
        return Err(ChooseError::UnknownBackend { backend: *backend, valid: build.backends().map(|b| b.to_string()).collect() });
    }
    if let Some(version) = filters.torch.iter().find(|version| !matrix.rows.iter().any(|row| is_torch(row, version))) {
        let mut valid: Vec<_> = matrix.rows.iter().map(|row| row.torch).collect();
        valid.sort();
        valid.dedup();
        return Err(ChooseError::UnknownTorch { version: version.clone(), valid: valid.iter().map(ToString::to_string).collect() });
    }
    let compiled = |backend: BackendName| matches!(kind_of(build, backend), Ok(kind) if kind != Kind::Noarch);
    if !filters.cuda.is_empty() && !build.backends().any(|backend| backend == BackendName::Cuda && compiled(backend)) {
        return Err(ChooseError::NoCuda { valid: build.backends().filter(|backend| compiled(*backend)).map(|b| b.to_string()).collect() });
    }
    let cuda = |row: &Row| match row.compute {
        kiln_format::variant::Compute::Cuda(version) => Some(version),
        _ => None,
    };
    if let Some(version) = filters.cuda.iter().find(|version| !matrix.rows.iter().any(|row| cuda(row) == Some(version.major_minor()))) {
        let mut valid: Vec<_> = matrix.rows.iter().filter_map(cuda).collect();
        valid.sort();
        valid.dedup();
        return Err(ChooseError::UnknownCuda { version: version.clone(), valid: valid.iter().map(ToString::to_string).collect() });
    }
    Ok(())
}

/// Whether `name` is of the form `pattern`, in which `*` stands for any text and `?` for one character.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // The last star and how much of the name it has taken: on a mismatch it takes one more.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || Some(c) == name.get(n) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|c| *c == '*'))
}
