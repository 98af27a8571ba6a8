//! The stable names of the rules that diagnostics about `build.toml` come from.

/// The text is no TOML.
pub(crate) const SYNTAX: &str = "syntax";
/// One key twice in one table.
pub(crate) const DUPLICATE_KEY: &str = "duplicate-key";
/// A key that its table does not know.
pub(crate) const UNKNOWN_KEY: &str = "unknown-key";
/// A required key that is not there.
pub(crate) const MISSING_KEY: &str = "missing-key";
/// A value of another type than its key wants.
pub(crate) const WRONG_TYPE: &str = "wrong-type";
/// A value of the right type that its key does not allow, where no rule below is nearer.
pub(crate) const INVALID_VALUE: &str = "invalid-value";
/// A malformed kernel name.
pub(crate) const INVALID_NAME: &str = "invalid-name";
/// A malformed version.
pub(crate) const INVALID_VERSION: &str = "invalid-version";
/// A malformed repository address.
pub(crate) const INVALID_URL: &str = "invalid-url";
/// A path that is malformed or leaves the project.
pub(crate) const INVALID_PATH: &str = "invalid-path";
/// A malformed capability or architecture.
pub(crate) const INVALID_ARCH: &str = "invalid-arch";
/// A repository id that is not `owner/name`.
pub(crate) const INVALID_REPO_ID: &str = "invalid-repo-id";
/// A name that is no backend, or none that is possible there.
pub(crate) const UNKNOWN_BACKEND: &str = "unknown-backend";
/// A name that `depends` does not know.
pub(crate) const UNKNOWN_DEPENDENCY: &str = "unknown-dependency";
/// A name that `python-depends` does not know there.
pub(crate) const UNKNOWN_PYTHON_DEPENDENCY: &str = "unknown-python-dependency";
/// A kernel dependency without a version, or with two.
pub(crate) const INVALID_KERNEL_DEPENDENCY: &str = "invalid-kernel-dependency";
/// A lower bound above its upper bound.
pub(crate) const EMPTY_RANGE: &str = "empty-range";
/// None or several of the tables of which a file has exactly one.
pub(crate) const FRAMEWORK: &str = "framework";
/// A backend without anything to compile, where something is needed.
pub(crate) const MISSING_COMPONENT: &str = "missing-component";
/// An edition that is not read.
pub(crate) const EDITION: &str = "edition";
/// An edition that is read, but is not the newest.
pub(crate) const OLD_EDITION: &str = "old-edition";
/// A backend named twice.
pub(crate) const DUPLICATE_BACKEND: &str = "duplicate-backend";
/// A kernel that no listed backend uses.
pub(crate) const UNUSED_KERNEL: &str = "unused-kernel";
/// A dependency that cannot apply to the kernel's backend.
pub(crate) const UNUSED_DEPENDENCY: &str = "unused-dependency";
/// An extension written with its dot.
pub(crate) const LEADING_DOT: &str = "leading-dot";
/// An architecture that is set by a compiler flag.
pub(crate) const ARCH_FLAG: &str = "arch-flag";
/// A backend that gets a noarch variant beside compiled ones.
pub(crate) const NOARCH_BACKEND: &str = "noarch-backend";
/// Something that Kiln reads and `kernel-builder` does not.
pub(crate) const NOT_PORTABLE: &str = "not-portable";
/// Something that `build.toml` may say, but with which loaders refuse the kernel.
pub(crate) const NOT_LOADABLE: &str = "not-loadable";
/// There is more to say about the file than anybody reads.
pub(crate) const AND_MORE: &str = "and-more";
