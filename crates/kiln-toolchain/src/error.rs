//! What can go wrong while toolchains are found or fetched.
//!
//! Addresses in messages never carry credentials, queries or fragments. Every message is a fragment that fits after
//! "error: "; advice stands in [`Error::hint`].

use std::io;
use std::path::{Path, PathBuf};

use crate::http::{HttpError, HttpFault};
use crate::zip::ZipError;

/// Words in backticks, for people.
fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Why a toolchain is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No setting names a package index.
    #[error("no package index is configured")]
    NoIndex {
        /// What was asked in vain, in order, with its answer where it had one.
        asked: Vec<String>,
    },
    /// A setting names something that is no index URL.
    #[error("{origin} is not the URL of a package index: {reason}")]
    IndexUrl {
        /// The setting, such as "`--index`".
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The configuration of pip cannot be read.
    #[error("cannot read pip's configuration `{}`, line {line}: {reason}", path.display())]
    PipConfig {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The catalog does not have this release.
    #[error("torch {version} for {platform} is not in the catalog")]
    UnknownTorch {
        /// The release that was asked for.
        version: String,
        /// The platform.
        platform: String,
        /// The releases of that platform that the catalog has, ascending.
        known: Vec<String>,
    },
    /// The catalog does not have this release of tvm-ffi.
    #[error("tvm-ffi {version} for {platform} is not in the catalog")]
    UnknownTvmFfi {
        /// The release that was asked for.
        version: String,
        /// The platform.
        platform: String,
        /// The releases of that platform that the catalog has, ascending.
        known: Vec<String>,
    },
    /// The catalog has no torch-npu for this release of torch.
    #[error("no torch-npu for torch {torch} and {platform} is in the catalog")]
    UnknownTorchNpu {
        /// The release of torch.
        torch: String,
        /// The platform.
        platform: String,
        /// The releases of torch that it has one for, ascending.
        known: Vec<String>,
    },
    /// The catalog itself is damaged.
    #[error("the catalog is damaged: {reason}")]
    Catalog {
        /// What is wrong.
        reason: String,
    },
    /// Something is missing and the network may not be used.
    #[error("{what} is not in the store, and `--offline` forbids to fetch it")]
    Offline {
        /// What is missing.
        what: String,
        /// The command that fetches it.
        command: String,
    },
    /// The user does not want to wait any longer.
    #[error("interrupted while a toolchain was fetched")]
    Interrupted,
    /// The certificates for TLS cannot be read.
    #[error("cannot read the certificates of {origin}: {reason}")]
    Certificates {
        /// The file, or the system's store.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// The proxy setting cannot be used.
    #[error("the proxy `{proxy}` cannot be used: {reason}")]
    Proxy {
        /// The proxy, without credentials.
        proxy: String,
        /// What is wrong.
        reason: String,
    },
    /// A request failed for good.
    #[error("cannot fetch {what}: {source}")]
    Fetch {
        /// What was fetched.
        what: String,
        /// How it failed.
        source: HttpError,
    },
    /// The index does not know the project.
    #[error("the index {index} has no project `{project}`")]
    NoProject {
        /// Normalised name of the project.
        project: String,
        /// The index, without credentials.
        index: String,
    },
    /// The index does not let us see the project.
    #[error("the index {index} gives no access to project `{project}`: it answered {status}")]
    NoAccess {
        /// Normalised name of the project.
        project: String,
        /// The index, without credentials.
        index: String,
        /// 401 or 403.
        status: u16,
    },
    /// The index is a directory that cannot be read.
    #[error("cannot read the index directory `{}`: {source}", path.display())]
    IndexDir {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A netrc file that a setting names cannot be read.
    #[error("cannot read `{}`, which `NETRC` names: {source}", path.display())]
    Netrc {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The index knows the project but not the file.
    #[error("the index {index} does not list `{file}`")]
    NotListed {
        /// Name of the wheel.
        file: String,
        /// The index, without credentials.
        index: String,
    },
    /// The index has no wheel that serves.
    #[error("the index {index} {reason}")]
    NoWheel {
        /// The index, without credentials.
        index: String,
        /// What it has instead, as a phrase.
        reason: String,
    },
    /// The index lists the file with other content than is pinned.
    #[error("the index {index} lists `{file}` with sha256 {listed}, but {pinned} is pinned")]
    ListedOtherwise {
        /// Name of the wheel.
        file: String,
        /// The index, without credentials.
        index: String,
        /// The index's sha256.
        listed: String,
        /// The sha256 that the catalog, or a lock file, pins.
        pinned: String,
    },
    /// The index answered with something else than a page of the simple index.
    #[error("{url} is not a page of a package index: {reason}")]
    IndexPage {
        /// The page, without credentials.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The wheel is not the one that the catalog, or a lock file, pins.
    #[error("`{file}` from {url} is not the file that is pinned: {reason}")]
    WrongWheel {
        /// Name of the wheel.
        file: String,
        /// Where it came from, without credentials.
        url: String,
        /// What differs.
        reason: String,
    },
    /// The wheel changed between two requests.
    #[error("`{file}` changed on the server while it was read: {reason}")]
    Changed {
        /// Name of the wheel.
        file: String,
        /// What differs.
        reason: String,
    },
    /// The zip structure of the wheel is damaged or hostile.
    #[error("`{file}` is refused: {source}")]
    Zip {
        /// Name of the wheel.
        file: String,
        /// What is wrong.
        source: ZipError,
    },
    /// The wheel's `RECORD` is not what it should be.
    #[error("`{file}` is refused: its `{record}` {reason}")]
    Record {
        /// Name of the wheel.
        file: String,
        /// Name of the member.
        record: String,
        /// What is wrong.
        reason: String,
    },
    /// A member is not what the wheel's `RECORD` says.
    #[error("`{file}` is refused: member `{member}` {reason}")]
    Member {
        /// Name of the wheel.
        file: String,
        /// Name of the member.
        member: String,
        /// What is wrong.
        reason: String,
    },
    /// The wheel is not what the index says.
    #[error("`{file}` from {url} has sha256 {found}, but the index lists it with {listed}")]
    Unvouched {
        /// Name of the wheel.
        file: String,
        /// Where it came from, without credentials.
        url: String,
        /// The index's sha256.
        listed: String,
        /// The file's sha256.
        found: String,
    },
    /// The file is larger than any wheel.
    #[error("`{file}` is refused: it has {size} bytes, more than {largest}")]
    TooLarge {
        /// Name of the wheel.
        file: String,
        /// Its size in bytes.
        size: u64,
        /// The largest size in bytes.
        largest: u64,
    },
    /// The wheel cannot be pinned.
    #[error(transparent)]
    Make(crate::make_catalog::MakeError),
    /// The lock file pins something that its own wheel does not give.
    #[error("the lock file is damaged: what it pins for torch {version} ({platform}) is not what the wheel gives: {}", quoted(differing))]
    LockDiffers {
        /// The release, with the local part of its version.
        version: String,
        /// The platform.
        platform: String,
        /// The keys whose values differ.
        differing: Vec<&'static str>,
    },
    /// The headers of one build of a release cannot serve for another one.
    #[error("the headers of `{other}` cannot stand in for those of torch {version}+{build}: {count} differ, {example}")]
    HeadersDiffer {
        /// The release.
        version: String,
        /// The local part of the build that is wanted, such as `cu126`.
        build: String,
        /// File name of the wheel that is there.
        other: String,
        /// How many headers differ beside the generated ones, or are only in one of the builds.
        count: usize,
        /// The first of them, as a phrase.
        example: String,
    },
    /// The store cannot be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Store {
        /// What was tried, such as "create".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A tree of the store is not what was put there.
    #[error("the store's tree `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The tree.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Whether a file system, or what a user may have of it, is full.
fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Error {
    /// The error of a damaged or hostile zip file.
    pub(crate) fn zip(file: &str, source: ZipError) -> Self {
        match source {
            ZipError::Member { name, reason } => Self::Member { file: file.to_owned(), member: name, reason },
            source => Self::Zip { file: file.to_owned(), source },
        }
    }

    /// The error of a failed request.
    pub(crate) fn fetch(what: &str) -> impl Fn(HttpError) -> Self {
        move |source| Self::Fetch { what: what.to_owned(), source }
    }

    /// The error of a failed file operation in the store.
    pub(crate) fn store(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Store { action, path: path.to_owned(), source }
    }

    /// Whether it was the network that was missing and is forbidden.
    pub(crate) fn is_offline(&self) -> bool {
        matches!(self, Self::Fetch { source: HttpError { fault: HttpFault::Offline, .. }, .. })
    }

    /// The same error, with the command that fetches what is missing where the network may not be used.
    #[must_use]
    pub fn fetched_by(self, command: impl Into<String>) -> Self {
        match self {
            Self::Offline { what, .. } => Self::Offline { what, command: command.into() },
            error => error,
        }
    }

    /// What the user can do about it; to be printed after the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoIndex { asked } => {
                let asked: String = asked.iter().map(|line| format!("\n  {line}")).collect();
                Some(format!("give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:{asked}"))
            }
            Self::IndexUrl { .. } => Some("it has the form `https://host/simple`, or is the path of a directory".to_owned()),
            Self::NoAccess { status: 401, .. } => {
                Some("it wants credentials, or others than it got: they may stand in netrc, or in the index URL".to_owned())
            }
            Self::NoAccess { .. } => Some(
                "either it does not let everybody see it (credentials may stand in netrc, or in the index URL), or it has no such project and says so in this way"
                    .to_owned(),
            ),
            Self::Store { source, .. } if is_full(source.kind()) => {
                Some("free some space there, or keep toolchains elsewhere with `--cache-dir DIR`; nothing of what was begun is left".to_owned())
            }
            Self::Store { .. } => Some("toolchains can be kept elsewhere with `--cache-dir DIR`".to_owned()),
            Self::UnknownTorch { version, known, .. } => {
                let known = if known.is_empty() { String::new() } else { format!("the catalog has {}; ", known.join(", ")) };
                Some(format!("{known}pin another release with `kiln toolchain add torch=={version}`"))
            }
            Self::UnknownTvmFfi { known, .. } | Self::UnknownTorchNpu { known, .. } if known.is_empty() => None,
            Self::UnknownTorchNpu { known, .. } => Some(format!("the catalog has one for torch {}", known.join(", "))),
            Self::UnknownTvmFfi { known, .. } => Some(format!("the catalog has {}", known.join(", "))),
            Self::Unvouched { .. } | Self::TooLarge { .. } | Self::Make(_) => {
                Some("another index can be given with `--index URL`; nothing of the file was kept".to_owned())
            }
            Self::LockDiffers { version, .. } => Some(format!("pin it again with `kiln toolchain add torch=={version}`")),
            Self::HeadersDiffer { version, build, .. } => Some(format!("pin the build itself with `kiln toolchain add torch=={version}+{build}`")),
            Self::Offline { command, .. } => Some(format!("run `{command}` while online")),
            Self::NoProject { .. } | Self::NotListed { .. } | Self::NoWheel { .. } => {
                Some("another index can be given with `--index URL`; a mirror must carry the same files as the original".to_owned())
            }
            Self::ListedOtherwise { .. } | Self::WrongWheel { .. } | Self::Zip { .. } | Self::Record { .. } | Self::Member { .. } => {
                Some("the file was damaged or replaced: try another index with `--index URL`; nothing of it was kept".to_owned())
            }
            Self::IndexPage { .. } => Some("is the index the right one? another can be given with `--index URL`".to_owned()),
            Self::Changed { .. } => Some("run the command again; nothing of it was kept".to_owned()),
            Self::Damaged { .. } => Some("run `kiln toolchain verify --repair`".to_owned()),
            Self::Fetch { source, .. } => source.fault.hint(),
            _ => None,
        }
    }
}
