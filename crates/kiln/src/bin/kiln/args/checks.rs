//! The arguments of the commands that check.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{KernelDir, Project, ReportFormat};

/// How strict checks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckProfile {
    /// Extensions that a loader imports: every rule
    Extension,
    /// Libraries that others link with: what an old system must offer them
    Library,
}

/// Form of a report of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Text
    Human,
    /// JSON
    Json,
    /// SARIF 2.1.0
    Sarif,
}

/// `kiln check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Projects, output directories, variants, other directories, or files
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Report this rule only; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) only: Vec<String>,
    /// How strict to be
    #[arg(long, value_enum, default_value_t = CheckProfile::Extension)]
    pub(crate) profile: CheckProfile,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = CheckFormat::Human)]
    pub(crate) format: CheckFormat,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// What shared objects may need.
#[derive(Debug, Args)]
pub(crate) struct Limits {
    /// Manylinux policy [default: that of the build record, else manylinux_2_28]
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) manylinux: Option<String>,
    /// Oldest Python that extensions are for
    #[arg(short, long, value_name = "VERSION", default_value = "3.9")]
    pub(crate) python_abi: String,
    /// Stable ABI of torch instead of the one in a variant's name
    #[arg(long, value_name = "VERSION")]
    pub(crate) torch_stable_abi: Option<String>,
    /// Library that may be needed beyond the known ones; may be repeated
    #[arg(long = "allow-lib", value_name = "NAME")]
    pub(crate) allowed_libraries: Vec<String>,
}

/// `kiln check-abi`.
#[derive(Debug, Args)]
pub(crate) struct CheckAbi {
    #[command(flatten)]
    pub(crate) dir: KernelDir,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// Oldest macOS that extensions are for
    #[arg(long, value_name = "VERSION")]
    pub(crate) macos: Option<String>,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = CheckFormat::Human)]
    pub(crate) format: CheckFormat,
}

/// `kiln check-builds`.
#[derive(Debug, Args)]
pub(crate) struct CheckBuilds {
    #[command(flatten)]
    pub(crate) dir: KernelDir,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = CheckFormat::Human)]
    pub(crate) format: CheckFormat,
}

/// `kiln check-config`.
#[derive(Debug, Args)]
pub(crate) struct CheckConfig {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Print notes too
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print notes on what kernel-builder would refuse
    #[arg(long)]
    pub(crate) peer: bool,
    /// Warnings count as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    pub(crate) format: ReportFormat,
}
