//! The directory of a zip file, read without trusting a byte of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZipError {
    #[error("x")]
    X,
}
