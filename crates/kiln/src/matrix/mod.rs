//! Which variants a kernel has.
//!
//! * [`Matrix`] is the data: one [`Row`] per torch build that the ecosystem supports. The built-in one is a file of the source tree;
//!   a project may bring its own.
//! * [`select`] finds the variants of a [`Build`](kiln_format::Build) on one [`Target`], and for every row that gives none the
//!   [`Reason`].
//! * [`choose`] narrows them to what a command asked for: one of the three [`Set`]s, and [`Filters`].
//! * [`report`] prints the result for people, programs and CI systems.

mod choose;
mod data;
mod locked;
mod reason;
pub mod report;
mod select;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use self::choose::matches;

pub use self::choose::{ChooseError, Filters, Set, choose};
pub use self::data::{Matrix, MatrixError, Row, Target, TargetError};
pub use self::reason::{LeftOut, Reason};
pub use self::select::{Kind, Selected, Selection, TorchUse, select};
