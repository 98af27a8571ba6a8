//! Static checks of what was built: by a build on each variant, and on demand on projects, variants and single files.
//!
//! [`check_paths`] finds out what each path is and runs every check there is for it. What the checks say is a list of [`Remark`]s,
//! whichever crate established it.

mod builds;
mod names;
mod on_demand;
mod remark;
mod sarif;
mod variant;

pub use builds::BuildRule;
pub use names::TorchNames;
pub use on_demand::{CheckError, CheckOptions, Checks, check_paths};
pub use remark::{Outcome, Remark, RemarkKind};
pub use sarif::sarif;
pub(crate) use variant::floor_policy;
pub use variant::{BuiltVariant, check_built};
