//! What happens during a command, as one stream.
//!
//! The text and the JSON output of the command line are siblings that read it; nothing else reports progress.

use std::path::PathBuf;

use kiln_toolchain::FetchEvent;

use crate::build_error::Report;
use crate::check::Remark;
use crate::compiler_messages::CompilerMessage;
use crate::record::Stage;

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Something that the user should know and that stops nothing.
    Warning {
        /// What, lower case and without a full stop.
        message: String,
    },
    /// A toolchain is being provided.
    Fetch(FetchEvent),
    /// Something that all builds of this user share is being made, once.
    Preparing {
        /// What, such as `manylinux_2_28 for g++ 12.2.0`.
        what: String,
    },
    /// Another build holds what this one needs; this one waits.
    Waiting {
        /// What the other one prepares for all projects, such as `manylinux_2_28 for g++ 12.2.0`; none when it builds this project.
        preparing: Option<String>,
        /// Process id of the holder, when it is known.
        pid: Option<u32>,
    },
    /// A step of the graph.
    Graph(kiln_graph::Event),
    /// A compiler has something to say. Its text is also in the event of its step.
    Compiler(CompilerMessage),
    /// A step failed because the file system that steps work on is full, or all but full.
    DiskFull {
        /// The work directory.
        directory: PathBuf,
        /// How many bytes may still be written to it, now that the step is gone.
        left: u64,
    },
    /// What the checks of a built variant say, before it is put in place.
    Remark {
        /// Name of the variant.
        variant: String,
        /// The finding, or the check that could not run.
        remark: Remark,
    },
    /// A variant stands in the output directory, whole.
    VariantFinished {
        /// Name of the variant.
        variant: String,
        /// Its directory.
        directory: PathBuf,
        /// Whether the directory differs from what stood there before.
        changed: bool,
        /// How far it was proven by this build.
        stage: Stage,
    },
    /// A variant of an earlier build was removed, as asked.
    VariantRemoved {
        /// Name of the variant.
        variant: String,
        /// The directory that it was.
        directory: PathBuf,
    },
    /// A variant could not be made. What stood in its place still stands there.
    VariantFailed {
        /// Name of the variant.
        variant: String,
        /// Why, unless a step of the graph failed and said so.
        reason: Option<Report>,
    },
}
