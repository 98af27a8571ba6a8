//! Names whose owner is known without looking at a library: those of CPython's stable ABI, and those of the C++ runtime.

mod python;
mod runtime;

pub use self::python::{PYTHON_TABLE_SOURCE, PythonVersion, added_to_stable_abi, is_of_python};
pub use self::runtime::is_of_runtime;
