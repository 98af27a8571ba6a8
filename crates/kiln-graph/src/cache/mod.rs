//! The action cache: results of steps, shared by all projects, checkouts and variants of a user.
//!
//! A result is found in two steps. The **manifest** of a step says which files its earlier runs read, and which of its scoped
//! arguments made a difference. The contents of those files, as they are now, then name the **result**: outputs, what the program
//! wrote, what it took.
//!
//! ```text
//! step without scoped arguments, tool identity --> manifest key --> [set of places, slots that count]
//! manifest key, set, contents of its places, scoped arguments that count --> result key --> outputs, log, cost
//! ```
//!
//! | what | manifest key | result key | why |
//! |---|---|---|---|
//! | arguments, working directory, environment, tool identity, names of outputs | yes | through it | as in a step's identity |
//! | arguments with a scope | the kind of each one | those whose scope counts | they change nothing elsewhere |
//! | digest of an immutable root that an argument without scope names | yes | through it | one digest for a tree |
//! | digest of an immutable root that only scoped arguments name | no | where a file of it was read | a unit that reads nothing of it is the same for all of them |
//! | content of each file that was read, asked about or must stay away | no | yes | the same notion as that of the record in the work directory |
//! | names that must not appear in directories that are searched | no | checked before | a new header in front of an old one |
//! | directory of a project or work directory | no | no | arguments map paths; in the log they are replaced |
//! | which step makes a file that is read by its own path | no | its content | equal files have equal effects, whoever made them |
//! | which step makes what is in a directory that is searched | yes | through it | compilers write down such paths |
//! | label, verb, weight | no | no | how a step is shown and scheduled |
//!
//! A word's scope counts where a file that was read, or another argument, mentions the word. When the word itself is another one
//! than that of the run (the name of the ops is in it), the files that the set names are looked through for the new one.
//!
//! What is never kept: results of steps that failed, that read a file which changed meanwhile, or that read files which nobody knows
//! (`.incbin` of a macro); builtins that take no time.
//!
//! Known limits:
//! - A word that `##` makes of three or more parts, none of which is half of it, is not seen.
//! - A tree that never changes is not looked through for a word that was another one when the result was made.
//! - A new header in one of the compiler's own directories, in front of another one there, is not noticed.
//! - Programs that embed the directory they run in, and are not told otherwise, give results of another checkout.
//!
//! # On disk
//!
//! ```text
//! <dir>/manifests/ab/<62 digits>   <dir>/results/ab/<62 digits>   <dir>/blobs/ab/<62 digits>
//! <dir>/tmp/<unique>               files that are being written
//! <dir>/size, <dir>/lock           what all of it takes, counted under the lock
//! <dir>/writing                    shared by who writes a result with its blobs; held alone to remove blobs that no result names
//! ```
//!
//! Every file is written under a temporary name and renamed, blobs before the result that names them. Manifests and results end with
//! a digest and hold their own key, blobs are named by their content and hashed while they are copied out: whatever was altered,
//! cut, or moved is no entry. It is removed, the step runs, and the event stream says so. Readers take no lock: what is removed under their
//! hands is a miss. Writers share one with each other and not with who removes blobs: a result may name one that was there before, and
//! whoever prunes looks for such results again when no more are written. Two processes that write one manifest lose at most the other's
//! set: a miss again.

mod disk;
mod entry;
mod size;
mod upkeep;

use std::path::{Path, PathBuf};

pub(crate) use disk::Damage;
pub(crate) use entry::{InputSet, Kept, Manifest, ResultEntry};
pub use size::size_of_text;
pub use upkeep::{CacheCounts, CachePruned, CacheStats, Verified};

/// How many bytes the cache may take unless the user says otherwise.
pub const DEFAULT_CACHE_LIMIT: u64 = 10_000_000_000;

/// A directory of results. The value itself holds nothing open; any number of them, in any number of processes, may use one directory.
#[derive(Clone, Debug)]
pub struct ActionCache {
    dir: PathBuf,
    limit: u64,
}

impl ActionCache {
    /// The cache in `dir`, which is made when something is kept, of at most `limit` bytes.
    pub fn new(dir: impl Into<PathBuf>, limit: u64) -> Self {
        Self { dir: dir.into(), limit }
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many bytes it may take.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}
