//! The command line as typed.

mod checks;
mod stores;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::checks::{Check, CheckAbi, CheckBuilds, CheckConfig, CheckFormat, CheckProfile, Limits};
pub(crate) use self::stores::{Cache, CacheCommand, Toolchain, ToolchainCommand};

/// Builds Hub-loadable GPU kernels from a build.toml.
#[derive(Debug, Parser)]
#[command(name = "kiln", version, about, max_term_width = 100, disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Silence progress, never warnings
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Never touch the network
    #[arg(long, global = true)]
    pub(crate) offline: bool,
    /// Change no lock file: what would have to change one is an error
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// `--locked` and `--offline`
    #[arg(long, global = true)]
    pub(crate) frozen: bool,
    /// Package index to take toolchains from: a URL, or the path of a directory
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) index: Option<String>,
    /// Index of torch builds that the package index lacks
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) torch_index: Option<String>,
    /// Where toolchains and other shared things are kept
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// System that variants are for, such as `aarch64-linux`, instead of this one
    #[arg(long, global = true, value_name = "SYSTEM")]
    pub(crate) target: Option<String>,
    /// When to colour messages
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

/// When to colour messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Time a function of a built tvm-ffi kernel, beside a plain copy of as many bytes
    BenchKernel(BenchKernel),
    /// Build variants into `build/`
    #[command(visible_alias = "build-and-copy")]
    Build(Build),
    /// The action cache: results of steps that all your builds share
    Cache(Cache),
    /// List the functions of a built tvm-ffi kernel, call one, or check them against `tests/reference.toml`
    ///
    /// The kernel is loaded and called in a process of its own, by the runtime of tvm-ffi and without Python: a crash is a
    /// result like any other.
    Call(Call),
    /// What `kiln call` starts, to end all that a kernel leaves
    #[command(hide = true)]
    CallGuard {
        /// Directory for the answers
        dir: PathBuf,
    },
    /// What that starts
    #[command(hide = true)]
    CallWorker {
        /// Directory for the answers
        dir: PathBuf,
    },
    /// Check what was built: projects, variants, shared objects
    Check(Check),
    /// Check the shared objects of all built variants
    CheckAbi(CheckAbi),
    /// Check metadata, digests and names of all built variants
    CheckBuilds(CheckBuilds),
    /// Check `build.toml` and the layout of the project; silent when all is well
    CheckConfig(CheckConfig),
    /// Tell what this machine has, and whether a build would start
    Doctor(Doctor),
    /// Recompute the digests of built variants and rewrite their `metadata.json`
    Hash(Hash),
    /// Show what torch's converter makes of the CUDA sources of ROCm kernels
    ///
    /// It is what a build compiles, and it is kept for the next one. No ROCm is needed, and the project is not written to.
    Hipify(Hipify),
    /// Measure what headers of torch cost each unit, and what including less of them would save
    ///
    /// Units are compiled several times, one after the other, with the flags of a build; a unit of device code for one of its
    /// capabilities. What counts is processor time.
    Lint(Lint),
    /// List the variants of a kernel for this system
    ListVariants(ListVariants),
    /// Print the rows of a CI job matrix: the default set, as published
    Matrix(Matrix),
    /// Toolchains: what is known, what is here, where it lies
    Toolchain(Toolchain),
    /// Bring `build.toml` to the current edition, changing nothing else
    UpdateBuild(UpdateBuild),
}

/// The directory that holds `build.toml`.
#[derive(Debug, Args)]
pub(crate) struct KernelDir {
    /// Directory that holds `build.toml`
    #[arg(value_name = "KERNEL_DIR", default_value = ".")]
    pub(crate) path: PathBuf,
}

/// A project that is read.
#[derive(Debug, Args)]
pub(crate) struct Project {
    #[command(flatten)]
    pub(crate) dir: KernelDir,
    /// Refuse a `build.toml` of an old edition instead of reading it with a warning
    #[arg(long)]
    pub(crate) deny_legacy: bool,
}

/// Which variants are meant.
#[derive(Debug, Default, Args)]
pub(crate) struct Filter {
    /// Variant by name or glob; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) variants: Vec<String>,
    /// Backend; may be repeated
    #[arg(long = "backend", value_name = "BACKEND")]
    pub(crate) backends: Vec<String>,
    /// Torch release line, such as 2.13; may be repeated
    #[arg(long = "torch", value_name = "VERSION")]
    pub(crate) torch: Vec<String>,
    /// CUDA toolkit, such as 13.0; may be repeated
    #[arg(long = "cuda", value_name = "VERSION")]
    pub(crate) cuda: Vec<String>,
}

/// `kiln build`.
#[derive(Debug, Args)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) project: Project,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Build the default set of the matrix, as published
    #[arg(long, conflicts_with = "all")]
    pub(crate) release: bool,
    /// Build every applicable row of the matrix that this machine has the compilers for
    #[arg(long)]
    pub(crate) all: bool,
    /// Number of steps that run at the same time
    #[arg(short, long, visible_aliases = ["max-jobs", "cores"], value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Memory that steps may take together, such as 12G, 800M or 75%; `none` for no limit [default: 90% of what the machine or its
    /// cgroup has]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Directory for the variants instead of KERNEL_DIR/build
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Remove variants that Kiln made before and that the kernel no longer has, or that are of another state of the sources
    #[arg(long, conflicts_with = "plan")]
    pub(crate) prune: bool,
    /// Print what would be done and do nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Go on with what does not depend on a failure
    #[arg(short, long)]
    pub(crate) keep_going: bool,
    /// Print each command before it runs
    #[arg(long)]
    pub(crate) print_commands: bool,
    /// Say why each step ran, or where its result comes from
    #[arg(long)]
    pub(crate) explain: bool,
    /// Say more, such as what was found damaged in the cache
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Run steps that other builds of yours have run already, and keep no results for others
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Program that stands in front of the compilers of units, such as sccache: a name or a path
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) launcher: Option<String>,
    /// Load nothing of what was built: variants count as linked
    #[arg(long)]
    pub(crate) no_load_check: bool,
    /// Build only what this machine can load: another variant is an error
    #[arg(long, conflicts_with = "no_load_check")]
    pub(crate) require_load_check: bool,
    /// Seconds after which loading a variant is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) load_timeout: u64,
    /// Form of the messages
    #[arg(long, value_enum, default_value_t = MessageFormat::Human, value_name = "FORMAT")]
    pub(crate) message_format: MessageFormat,
    #[command(flatten)]
    pub(crate) system: System,
    /// Narrow device code to these architectures, such as `9.0a,10.0`, or to `native`, the devices of this machine
    #[arg(long, value_name = "LIST", conflicts_with = "release")]
    pub(crate) arch: Option<String>,
    /// Last part of the ops id instead of one from the sources
    #[arg(long, value_name = "ID")]
    pub(crate) unique_id: Option<String>,
}

/// What of the system is to be used.
#[derive(Debug, Default, Args)]
pub(crate) struct System {
    /// Take torch from this Python instead of a wheel
    #[arg(long, value_name = "PYTHON")]
    pub(crate) torch_from: Option<PathBuf>,
    /// Host C++ compiler: a name, a path, or one of these behind a launcher
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cxx: Option<String>,
    /// Take the CUDA toolkit from this directory instead of wheels
    #[arg(long, value_name = "DIR")]
    pub(crate) cuda_from: Option<PathBuf>,
    /// Take ROCm from this directory, or compile with this `hipcc` or `clang++` of one, whatever release variants are for
    #[arg(long, value_name = "DIR|PROGRAM")]
    pub(crate) rocm_from: Option<PathBuf>,
}

/// Form of the event stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// Text on stderr
    #[value(alias = "text")]
    Human,
    /// One JSON object a line on stdout
    Json,
}

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text
    Human,
    /// JSON
    Json,
}

/// Which kernel is called, and how.
#[derive(Debug, Args)]
pub(crate) struct Callable {
    /// A built library, a variant, or a project or output directory with variants
    #[arg(value_name = "FILE|DIR", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Variant of the directory, by name; `*` stands for any text and `?` for one character
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Argument, in order, instead of a tensor for each: `tensor:4x8:float16:zeros`, `1e-5`, `3`, `true`, `none`, `str:TEXT`;
    /// may be repeated
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    /// Shape of tensors, such as 4x1024; repeated, that of the first tensor and so on [default: 8x16]
    #[arg(long = "shape", value_name = "SHAPE", allow_hyphen_values = true)]
    pub(crate) shapes: Vec<String>,
    /// Element type of tensors, such as bfloat16; repeated, that of the first tensor and so on [default: float32]
    #[arg(long = "dtype", value_name = "DTYPE")]
    pub(crate) dtypes: Vec<String>,
    /// Where tensors lie: `cpu`, `cuda` or `cuda:N`; of a directory, the variant for it is taken
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,
    /// Runtime of tvm-ffi: a release of the catalog, such as 0.1.9, or the path of a `libtvm_ffi.so` [default: the newest of
    /// the catalog]
    #[arg(long, value_name = "VERSION|PATH")]
    pub(crate) runtime: Option<String>,
    /// Seconds after which a call is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    pub(crate) format: ReportFormat,
}

/// `kiln call`.
#[derive(Debug, Args)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) callable: Callable,
    /// Function to call; without one, the functions are checked against the project's references, or listed
    #[arg(short, long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// References instead of `tests/reference.toml` of the project
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// List the functions, whatever else there is
    #[arg(short, long, conflicts_with_all = ["function", "reference"])]
    pub(crate) list: bool,
}

/// `kiln bench-kernel`.
#[derive(Debug, Args)]
pub(crate) struct BenchKernel {
    #[command(flatten)]
    pub(crate) callable: Callable,
    /// Function to time; may be left out where there is one only
    #[arg(short, long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// Milliseconds that are spent on it
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(crate) time: u64,
}

/// `kiln doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Backend that is to be built for; by default those of the project here, else all
    #[arg(value_name = "BACKEND")]
    pub(crate) backends: Vec<String>,
    /// Also tell where was looked, and what identifies each thing
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) system: System,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    pub(crate) format: ReportFormat,
}

/// `kiln hash`.
#[derive(Debug, Args)]
pub(crate) struct Hash {
    #[command(flatten)]
    pub(crate) dir: KernelDir,
    /// Rewrite signed metadata too, which breaks the signature
    #[arg(long)]
    pub(crate) force: bool,
}

/// `kiln hipify`.
#[derive(Debug, Args)]
pub(crate) struct Hipify {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Show each change as a unified diff
    #[arg(long, conflicts_with = "format")]
    pub(crate) diff: bool,
    /// Release of torch whose converter is asked [default: the newest that ROCm kernels are built with]
    #[arg(long, value_name = "VERSION", conflicts_with = "torch_from")]
    pub(crate) torch: Option<String>,
    /// Take the converter from the torch of this Python instead of a wheel
    #[arg(long, value_name = "PYTHON")]
    pub(crate) torch_from: Option<PathBuf>,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    pub(crate) format: ReportFormat,
}

/// `kiln lint`.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub(crate) project: Project,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) system: System,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    pub(crate) format: ReportFormat,
}

/// `kiln list-variants`.
#[derive(Debug, Args)]
pub(crate) struct ListVariants {
    #[command(flatten)]
    pub(crate) project: Project,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Say why each other row of the matrix is left out
    #[arg(long)]
    pub(crate) reasons: bool,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    pub(crate) format: ReportFormat,
}

/// Form of a job matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatrixFormat {
    /// `{"include": [..]}` for a workflow's `strategy.matrix`
    Github,
    /// A list of rows
    Json,
}

/// `kiln matrix`.
#[derive(Debug, Args)]
pub(crate) struct Matrix {
    #[command(flatten)]
    pub(crate) project: Project,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Every applicable row, not only the default set that `build --release` makes
    #[arg(long)]
    pub(crate) all: bool,
    /// Form of the matrix
    #[arg(long, value_enum, default_value_t = MatrixFormat::Json)]
    pub(crate) format: MatrixFormat,
}

/// `kiln update-build`.
#[derive(Debug, Args)]
pub(crate) struct UpdateBuild {
    /// `build.toml` files, or directories that hold one
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write nothing; list what would change and fail if anything would
    #[arg(long)]
    pub(crate) check: bool,
    /// Write nothing; print what would change as a unified diff and fail if anything would
    #[arg(long)]
    pub(crate) diff: bool,
    /// License for files that name none
    #[arg(long, value_name = "ID")]
    pub(crate) license: Option<String>,
}
