//! The names of the backends, the same in `build.toml` and `metadata.json`.

use std::str::FromStr;

use crate::suggest::{nearest, quoted};
use crate::text_value::text_value;

/// What runs a kernel. In alphabetical order, which is also their order as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackendName {
    /// Ascend NPUs.
    Cann,
    /// The host processor.
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
    /// Apple GPUs.
    Metal,
    /// AWS Neuron devices (Python kernels only).
    Neuron,
    /// AMD GPUs.
    Rocm,
    /// TPUs (Python kernels only).
    Tpu,
    /// Intel GPUs.
    Xpu,
}

/// Other words for backends, by which people know their devices.
const ALIASES: &[(&str, BackendName)] = &[
    ("npu", BackendName::Cann),
    ("ascend", BackendName::Cann),
    ("gpu", BackendName::Cuda),
    ("nvidia", BackendName::Cuda),
    ("mps", BackendName::Metal),
    ("hip", BackendName::Rocm),
    ("amd", BackendName::Rocm),
    ("sycl", BackendName::Xpu),
];

/// A text that names no backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown backend {}", quoted(.0))]
pub struct UnknownBackend(
    /// The text.
    pub String,
);

impl BackendName {
    /// Every backend, sorted by name.
    pub const ALL: [Self; 8] = [Self::Cann, Self::Cpu, Self::Cuda, Self::Metal, Self::Neuron, Self::Rocm, Self::Tpu, Self::Xpu];

    /// The name in `build.toml` and `metadata.json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cann => "cann",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
            Self::Neuron => "neuron",
            Self::Rocm => "rocm",
            Self::Tpu => "tpu",
            Self::Xpu => "xpu",
        }
    }

    /// The backend that was probably meant by `text`, which names none: the nearest name, or the one of the devices so called.
    pub fn meant_by(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        match ALIASES.iter().find(|(alias, _)| *alias == lower) {
            Some((_, backend)) => Some(*backend),
            None => nearest(text, Self::ALL.map(Self::as_str))?.parse().ok(),
        }
    }

    /// The name inside a noarch directory name `torch-<name>`. Loaders look for `npu` where the backend is `cann`.
    pub const fn noarch_name(self) -> &'static str {
        match self {
            Self::Cann => "npu",
            other => other.as_str(),
        }
    }

    /// Whether a `[kernel.*]` table may name this backend, that is, whether there is anything to compile for it.
    pub const fn has_kernels(self) -> bool {
        !matches!(self, Self::Neuron | Self::Tpu)
    }
}

text_value!(BackendName: Display, Serialize, Deserialize);

impl FromStr for BackendName {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|backend| backend.as_str() == text).ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(BackendName::ALL.is_sorted());
        assert!(BackendName::ALL.is_sorted_by_key(|backend| backend.as_str()));
        for backend in BackendName::ALL {
            assert_eq!(backend.as_str().parse(), Ok(backend));
            assert_eq!(serde_json::from_str::<BackendName>(&serde_json::to_string(&backend).unwrap()).unwrap(), backend);
        }
        assert_eq!("npu".parse::<BackendName>(), Err(UnknownBackend("npu".into())));
        assert_eq!("CUDA".parse::<BackendName>().unwrap_err().to_string(), "unknown backend `CUDA`");
        assert!(serde_json::from_str::<BackendName>("\"npu\"").is_err());
        assert_eq!(format!("[{:6}]", BackendName::Cpu), "[cpu   ]");
    }

    #[test]
    fn near_names() {
        for (text, meant) in
            [("cudaa", Some(BackendName::Cuda)), ("GPU", Some(BackendName::Cuda)), ("npu", Some(BackendName::Cann)), ("x", None)]
        {
            assert_eq!(BackendName::meant_by(text), meant, "{text}");
        }
    }

    #[test]
    fn npu_directory_and_kernels() {
        assert_eq!(BackendName::Cann.noarch_name(), "npu");
        assert_eq!(BackendName::Xpu.noarch_name(), "xpu");
        let without: Vec<_> = BackendName::ALL.into_iter().filter(|backend| !backend.has_kernels()).collect();
        assert_eq!(without, [BackendName::Neuron, BackendName::Tpu]);
    }
}
