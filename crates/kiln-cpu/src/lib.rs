//! The cpu backend.
