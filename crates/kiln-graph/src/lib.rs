//! Steps, the graph of steps and its executor.
//!
//! A [`Step`] is a pure description: a program run or a builtin, its inputs, its outputs. A [`Graph`] joins steps by the
//! files they make; equal steps are one step. The [`Executor`] runs what is not up to date and reports [`Event`]s.
//! This crate does not know what a kernel, CUDA or torch is.

mod event;
mod step;

pub use event::{Event, Failure, Reason};
pub use step::{
    Action, Arg, Builtin, BuiltinContext, BuiltinError, BuiltinFn, Input, OutputRef, PathRef, Piece, Program, ResourceClass, RootBinding,
    RootKind, RootName, Step, StepId, Weight,
};
