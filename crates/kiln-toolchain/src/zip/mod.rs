//! Zip files, read piece by piece without trusting a byte of them.
//!
//! A wheel is a plain zip file. The end record ([`find_end`]) stands in its last bytes and says where the directory is;
//! the directory ([`parse_directory`]) says where each member is; a member's bytes are checked against the directory
//! when they are taken out ([`Member::extract`]). Everything here works on byte slices: where they come from is the
//! wheel reader's business. The layout is that of the ZIP application note (end record 4.3.16, zip64 4.3.14 and 4.3.15,
//! directory 4.3.12, local header 4.3.7).

mod bytes;
mod data;
mod directory;
mod end;
mod name;
mod sparse;

pub use self::directory::{Method, parse_directory};
pub use self::end::{EndRecord, TAIL, find_end};
pub(crate) use self::name::fault as unsafe_path;
pub(crate) use self::sparse::{head_of_directory, members_between, put_together, tail_of_directory};

/// What is wrong with a zip file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZipError {
    /// The file does not end like a zip file.
    #[error("it is no zip file, or its end is missing")]
    NoEnd,
    /// The directory is damaged or of a kind that is not supported. Holds what is wrong with it.
    #[error("its zip directory {0}")]
    Directory(String),
    /// A member is damaged or hostile.
    #[error("member `{name}` {reason}")]
    Member {
        /// Name of the member, control characters escaped.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ZipError {
    /// An error about the member called `name`, which may be anything.
    pub(crate) fn member(name: &str, reason: impl Into<String>) -> Self {
        const SHOWN: usize = 200;
        let mut name: String = name.chars().take(SHOWN + 1).flat_map(char::escape_debug).collect();
        if name.chars().count() > SHOWN {
            name = name.chars().take(SHOWN).chain(['…']).collect();
        }
        Self::Member { name, reason: reason.into() }
    }
}

/// What a zip file may cost at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Members in the directory.
    pub members: u64,
    /// Bytes of the directory.
    pub directory: u64,
    /// Bytes of one member, inflated.
    pub member: u64,
}

impl Default for Limits {
    /// A few times what the largest known wheels have: 13,200 members and 1.3 MB of directory for torch 2.15.0.
    fn default() -> Self {
        Self { members: 200_000, directory: 64 << 20, member: 4 << 30 }
    }
}

/// One member of a zip file, a directory entry included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Relative path with `/` separators; ends in `/` for a directory. Never absolute, never with `.` or `..` parts.
    pub name: String,
    /// How its bytes are kept.
    pub method: Method,
    /// CRC-32 of its content.
    pub crc32: u32,
    /// Bytes in the file.
    pub compressed: u64,
    /// Bytes of its content.
    pub size: u64,
    /// Where its local header begins, from the start of the file.
    pub start: u64,
    /// Where the next member or the directory begins: its header and bytes lie before.
    pub end: u64,
}

impl Member {
    /// Whether this is a directory entry.
    pub fn is_dir(&self) -> bool {
        self.name.ends_with('/')
    }
}
