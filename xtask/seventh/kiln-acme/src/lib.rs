//! The acme backend: a vendor that nobody has, to show what one more vendor costs.
//!
//! Its compiler is a compiler of C++ that a variable names. Sources called `.acme` are its device code; between units and link it makes an
//! image of them, which must be in the extension.

mod backend;
mod toolkits;

pub use backend::AcmeBackend;
pub use toolkits::AcmeToolkits;
