//! The Python packages that a kernel may depend on, as data.
//!
//! Loaders refuse a kernel whose metadata list a name that is neither general nor of the running backend, so the table
//! is closed. It is the one of the `kernels` package, 0.17.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::backend::BackendName;

/// A row of the registry.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PythonPackage {
    /// The backend that the row is for; `None` for every backend.
    pub backend: Option<BackendName>,
    /// The name in `python-depends`.
    pub name: &'static str,
    /// The package that an installer knows.
    pub package: &'static str,
    /// The module that is imported to see whether it is there; `None` where there is nothing to import.
    pub import: Option<&'static str>,
}

/// Every row: the general ones first, then by backend.
pub const PACKAGES: &[PythonPackage] = &[
    PythonPackage { backend: None, name: "einops", package: "einops", import: Some("einops") },
    PythonPackage { backend: None, name: "helion", package: "helion", import: Some("helion") },
    PythonPackage { backend: None, name: "tvm-ffi", package: "apache-tvm-ffi", import: Some("tvm_ffi") },
    PythonPackage { backend: Some(BackendName::Cuda), name: "nvidia-cutlass-dsl", package: "nvidia-cutlass-dsl", import: Some("cutlass") },
    PythonPackage { backend: Some(BackendName::Neuron), name: "nki", package: "nki", import: Some("nki") },
    PythonPackage { backend: Some(BackendName::Xpu), name: "onednn", package: "onednn-devel", import: None },
];

/// An entry of the registry that a `build.toml` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PythonDependency(&'static PythonPackage);

impl PythonDependency {
    /// The entry called `name` that a list for `backend` may hold (`None`: the list for every backend). A backend's
    /// list may also hold general entries.
    pub fn find(name: &str, backend: Option<BackendName>) -> Option<Self> {
        Self::allowed(backend).find(|dependency| dependency.name() == name)
    }

    /// Every entry that a list for `backend` may hold, in the registry's order.
    pub fn allowed(backend: Option<BackendName>) -> impl Iterator<Item = Self> {
        PACKAGES.iter().filter(move |row| row.backend.is_none() || row.backend == backend).map(Self)
    }

    /// The name in `python-depends`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The whole row.
    pub fn package(self) -> &'static PythonPackage {
        self.0
    }
}

impl fmt::Display for PythonDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for PythonDependency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_list_what() {
        let names = |backend| PythonDependency::allowed(backend).map(PythonDependency::name).collect::<Vec<_>>();
        assert_eq!(names(None), ["einops", "helion", "tvm-ffi"]);
        assert_eq!(names(Some(BackendName::Tpu)), names(None));
        assert_eq!(names(Some(BackendName::Cuda)), ["einops", "helion", "tvm-ffi", "nvidia-cutlass-dsl"]);
        assert_eq!(names(Some(BackendName::Xpu)).last(), Some(&"onednn"));
        assert_eq!(PythonDependency::find("nki", None), None);
        assert_eq!(PythonDependency::find("nki", Some(BackendName::Neuron)).unwrap().to_string(), "nki");
        assert_eq!(PythonDependency::find("tvm-ffi", None).unwrap().package().package, "apache-tvm-ffi");
        assert_eq!(serde_json::to_string(&PythonDependency::find("einops", None)).unwrap(), "\"einops\"");
    }
}
