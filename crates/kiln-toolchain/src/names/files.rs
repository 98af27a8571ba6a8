//! The names files of the catalog, compiled in. Written by `cargo xtask catalog`.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../catalog/names/", $name)))),*]
    };
}

/// By file name, ascending.
pub(super) const FILES: &[(&str, &[u8])] = files![
    "cuda-13.0.3-linux-aarch64.names",
    "cuda-13.0.3-linux-x86_64.names",
    "cuda-13.1.2-linux-aarch64.names",
    "cuda-13.1.2-linux-x86_64.names",
    "cuda-13.2.2-linux-aarch64.names",
    "cuda-13.2.2-linux-x86_64.names",
    "cuda-13.3.1-linux-aarch64.names",
    "cuda-13.3.1-linux-x86_64.names",
    "cuda-13.4.3-linux-aarch64.names",
    "cuda-13.4.3-linux-x86_64.names",
    "cuda-13.5.0-linux-aarch64.names",
    "cuda-13.5.0-linux-x86_64.names",
    "torch-2.11.0-linux-x86_64.names",
    "torch-2.12.1-linux-x86_64.names",
    "torch-2.13.0-linux-x86_64.names",
    "torch-2.14.1-linux-x86_64.names",
    "torch-2.15.0-linux-x86_64.names",
];
