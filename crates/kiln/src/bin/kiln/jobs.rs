//! How many steps run at once, and the make that has a say in it.

use std::num::NonZeroUsize;

use kiln_graph::JobServer;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::printer::Printer;

/// How many steps run at once.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    /// At most so many, whatever a make allows.
    pub(crate) most: NonZeroUsize,
    /// The make that Kiln runs under, if it shares its jobs.
    pub(crate) server: Option<JobServer>,
}

impl Jobs {
    /// What was asked for, else `MAX_JOBS`, else one for each processor; under a make that runs several jobs, no more than it has to give.
    pub(crate) fn new(asked: Option<u16>, environment: &Environment, printer: &Printer) -> Result<Self, Failure> {
        let named = most(asked, environment)?;
        let server = environment.get("MAKEFLAGS").map_or(Ok(None), JobServer::of_make);
        let alone = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        match (server, named) {
            (Ok(server), named) => Ok(Self { most: named.unwrap_or_else(alone), server }),
            // As many as the user says, although make counts them as one.
            (Err(_), Some(named)) => Ok(Self { most: named, server: None }),
            (Err(error), None) => {
                let hint = printer.hint_text(Some("write `+` in front of the command in the makefile, or say how many with `-j N`"));
                printer.warning(&format!("{error}: one step runs at a time\n{}", hint.trim_end()));
                Ok(Self { most: NonZeroUsize::MIN, server: None })
            }
        }
    }
}

/// How many were asked for, by the option or by `MAX_JOBS`.
fn most(asked: Option<u16>, environment: &Environment) -> Result<Option<NonZeroUsize>, Failure> {
    if let Some(jobs) = asked.and_then(|jobs| NonZeroUsize::new(usize::from(jobs))) {
        return Ok(Some(jobs));
    }
    let parsed =
        |text: &str| text.trim().parse().map_err(|_| Failure::usage(format!("MAX_JOBS is `{text}`: it must be a number from 1 on")));
    environment.get("MAX_JOBS").map(parsed).transpose()
}
