//! Flags of the author that are read before they reach a compiler.
//!
//! | module | job |
//! |---|---|
//! | `table` | what is known of single flags, as data |
//! | `audit` | goes through a list of flags and says which cannot be used, which do nothing, and which files they name |
//! | `level` | the language level that they ask for |

mod audit;
mod level;
mod table;

pub(crate) use audit::machine_flag;
pub use audit::{FlagFault, FlagList, FlagRemark, audit_flags};
pub use level::user_cxx_level;
