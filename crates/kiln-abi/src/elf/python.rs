//! What is taken from Python.

use kiln_object::names::{added_to_stable_abi, is_of_python};

use super::{Check, shown};
use crate::expectation::Framework;
use crate::rule::Rule;

pub(super) fn check(check: &mut Check<'_, '_>) {
    let floor = check.expected.python;
    for import in check.dynamic.imports.iter().filter(|import| is_of_python(&import.name)) {
        let name = shown(&import.name);
        if check.expected.framework == Some(Framework::TvmFfi) {
            let detail = format!("{name} is Python's, and tvm-ffi extensions are loaded without it");
            check.import(Rule::PythonUse, import, detail, "use no Python in a tvm-ffi kernel");
            continue;
        }
        match added_to_stable_abi(&import.name) {
            Some(added) if added <= floor => {}
            Some(added) => {
                let detail = format!("{name} is in Python's stable ABI from {added} on, and the extension is for {floor} and newer");
                let fix = format!("compile with `Py_LIMITED_API` for {floor}, or use a function that Python {floor} has");
                check.import(Rule::PythonAbiNewer, import, detail, fix);
            }
            None => {
                let detail = format!("{name} is not in Python's stable ABI");
                let fix = "compile with `Py_LIMITED_API`, which hides what is not in it; register operators with `TORCH_LIBRARY` instead of pybind";
                check.import(Rule::PythonAbi, import, detail, fix);
            }
        }
    }
}
