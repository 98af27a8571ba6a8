//! Reading and writing object files.
