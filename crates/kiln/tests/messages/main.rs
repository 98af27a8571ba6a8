//! What the binary says when something is wrong, whole: exit code, standard output and standard error.
//!
//! Nothing here touches the network or the user's environment: torch's place in the store is an empty directory, which is all that
//! units without torch headers need, and the names that torch exports come with Kiln.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod codes;
mod compiler;
mod config;
mod doctor;
mod index;
mod json;
mod launcher;
mod layout;
mod make;
mod output;
mod pins;
mod place;
mod project;
mod secrets;
mod selection;
mod settings;
mod signals;
mod steps;
mod symbols;
mod toolchain;

use crate::place::{Place, Run};
