//! The arguments of the commands for what is kept for all projects of a user: toolchains, and results of steps.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ReportFormat;

/// `kiln toolchain`.
#[derive(Debug, Args)]
pub(crate) struct Toolchain {
    /// Directory of the project whose `kiln.lock` and `kiln.toml` count; the working directory when it holds a `build.toml`
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: ToolchainCommand,
}

/// What to do with toolchains.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolchainCommand {
    /// List the releases of the catalog and of the lock files, and which are in the store
    List {
        /// Also everything else that is in the store, and the terms that it comes under
        #[arg(short, long)]
        verbose: bool,
        /// Form of the report
        #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
        format: ReportFormat,
    },
    /// Fetch releases into the store, such as `torch==2.13.0`; without an argument those of torch and tvm-ffi that builds use by themselves
    Fetch {
        /// Releases, `torch==X.Y.Z`, `tvm-ffi==X.Y.Z` or `cuda==X.Y`
        releases: Vec<String>,
    },
    /// Print where a fetched release lies
    Path {
        /// Release, `torch==X.Y.Z`, `tvm-ffi==X.Y.Z` or `cuda==X.Y`
        release: String,
    },
    /// Pin releases in `kiln.lock`, also those that this Kiln does not know; reads their wheels whole
    Add {
        /// Releases, `torch==X.Y.Z`
        #[arg(required = true)]
        releases: Vec<String>,
        /// Pin for all projects of this user instead
        #[arg(long)]
        user: bool,
    },
    /// Bring the pinned releases to the newest patch releases that the index offers
    Update {
        /// What to update: `torch`, or one release line, `torch==X.Y`; everything without an argument
        names: Vec<String>,
        /// The pins for all projects of this user instead
        #[arg(long)]
        user: bool,
    },
    /// Hash everything in the store again and name what is damaged
    Verify {
        /// Make what is damaged again
        #[arg(long)]
        repair: bool,
    },
    /// Remove from the store what no lock file and no build record of any known project names and nobody uses
    Gc {
        /// Remove nothing; tell what would be
        #[arg(long)]
        dry_run: bool,
        /// Forget projects whose directories are gone
        #[arg(long)]
        forget_missing: bool,
    },
}

/// `kiln cache`.
#[derive(Debug, Args)]
pub(crate) struct Cache {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

/// What to do with the action cache.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Print what is in it and where it lies
    Stats {
        /// Form of the report
        #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
        format: ReportFormat,
    },
    /// Remove what was not used for longest, until it is small enough
    Prune {
        /// How much may stay: bytes, or a number with k, M, G or T (powers of 1000)
        #[arg(long, value_name = "SIZE")]
        max_size: Option<String>,
    },
    /// Remove everything
    Clean,
    /// Read every file, and remove those that are not what was written; fails if there are any
    Verify,
}
