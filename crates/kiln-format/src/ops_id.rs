//! The id that a variant's shared object, native module and op namespace share.

use crate::backend::BackendName;
use crate::name::KernelName;
use crate::suggest::quoted;
use crate::text_value::text_value;

/// `_<python name>_<backend>_<unique id>`: at once a file stem, a Python module, an op namespace and a C token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpsId(String);

/// Why a unique id makes no [`OpsId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpsIdError {
    /// Nothing.
    #[error("a unique id cannot be empty")]
    Empty,
    /// Holds something else than ASCII letters, digits and underscores.
    #[error("unique id {} contains {}: only letters, digits and underscores are allowed", quoted(.0), quoted(&.1.to_string()))]
    Character(String, char),
    /// A whole id that is not of the form of one.
    #[error("{} is not of the form `_name_backend_id`", quoted(.0))]
    Form(String),
}

impl OpsId {
    /// The id of `name` on `backend` with `unique_id`, which must match `^[A-Za-z0-9_]+$`.
    ///
    /// # Errors
    /// When `unique_id` is empty or holds another character; nothing is replaced silently.
    pub fn new(name: &KernelName, backend: BackendName, unique_id: &str) -> Result<Self, OpsIdError> {
        if unique_id.is_empty() {
            return Err(OpsIdError::Empty);
        }
        if let Some(bad) = unique_id.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_') {
            return Err(OpsIdError::Character(unique_id.to_owned(), bad));
        }
        Ok(Self(format!("_{}_{backend}_{unique_id}", name.python_name())))
    }

    /// Checks a whole id against `^_[a-z][a-z0-9_]*_[A-Za-z0-9_]+$`.
    ///
    /// # Errors
    /// When it does not match. Loaders do not check this, so metadata of others may hold any text.
    pub fn parse(text: &str) -> Result<Self, OpsIdError> {
        let error = || OpsIdError::Form(text.to_owned());
        let rest = text.strip_prefix('_').ok_or_else(error)?;
        if !rest.starts_with(|c: char| c.is_ascii_lowercase()) || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(error());
        }
        // The first part is lower case and ends before some underscore that is not the last character.
        let lower = rest.find(|c: char| c.is_ascii_uppercase()).unwrap_or(rest.len());
        let split = rest.bytes().take(lower.min(rest.len() - 1)).skip(1).any(|byte| byte == b'_');
        if split { Ok(Self(text.to_owned())) } else { Err(error()) }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_value!(OpsId: Display, Serialize);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name() -> KernelName {
        KernelName::new("my-relu").unwrap()
    }

    #[test]
    fn made() {
        let id = OpsId::new(&name(), BackendName::Cuda, "1a2b3c4").unwrap();
        assert_eq!(id.as_str(), "_my_relu_cuda_1a2b3c4");
        assert_eq!(OpsId::parse(id.as_str()), Ok(id));
        assert_eq!(OpsId::new(&name(), BackendName::Cpu, "1a2b3c4_dirty").unwrap().to_string(), "_my_relu_cpu_1a2b3c4_dirty");
    }

    #[test]
    fn refused() {
        let made = ["", "a-b", "a b", "é"].map(|id| OpsId::new(&name(), BackendName::Cpu, id).unwrap_err().to_string());
        insta::assert_snapshot!(made.join("\n"), @r"
        a unique id cannot be empty
        unique id `a-b` contains `-`: only letters, digits and underscores are allowed
        unique id `a b` contains ` `: only letters, digits and underscores are allowed
        unique id `é` contains `é`: only letters, digits and underscores are allowed
        ");
        for text in ["", "_", "relu_cpu_1", "_relu", "_relu_", "_Relu_cpu_1", "_reLu_x", "_1relu_cpu", "_re-lu_cpu_1", "__relu_1"] {
            assert_eq!(OpsId::parse(text), Err(OpsIdError::Form(text.to_owned())), "{text}");
        }
        for text in ["_r_1", "_relu__", "_relu_cpu_AbC", "_relu_cpu_"] {
            assert!(OpsId::parse(text).is_ok(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_made_id_parses(name in "[a-z][-a-z0-9]{0,8}[a-z0-9]", unique in "[A-Za-z0-9_]{1,12}") {
            let id = OpsId::new(&KernelName::new(&name).unwrap(), BackendName::Xpu, &unique).unwrap();
            prop_assert_eq!(OpsId::parse(id.as_str()), Ok(id));
        }
    }
}
