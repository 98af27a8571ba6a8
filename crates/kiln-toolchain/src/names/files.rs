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
    "tvm-ffi-0.1.10-darwin-aarch64.names",
    "tvm-ffi-0.1.10-linux-aarch64.names",
    "tvm-ffi-0.1.10-linux-x86_64.names",
    "tvm-ffi-0.1.10-windows-x86_64.names",
    "tvm-ffi-0.1.11-darwin-aarch64.names",
    "tvm-ffi-0.1.11-linux-aarch64.names",
    "tvm-ffi-0.1.11-linux-x86_64.names",
    "tvm-ffi-0.1.11-windows-x86_64.names",
    "tvm-ffi-0.1.12-darwin-aarch64.names",
    "tvm-ffi-0.1.12-linux-aarch64.names",
    "tvm-ffi-0.1.12-linux-x86_64.names",
    "tvm-ffi-0.1.12-windows-x86_64.names",
    "tvm-ffi-0.1.13-darwin-aarch64.names",
    "tvm-ffi-0.1.13-linux-aarch64.names",
    "tvm-ffi-0.1.13-linux-x86_64.names",
    "tvm-ffi-0.1.13-windows-x86_64.names",
    "tvm-ffi-0.1.14-darwin-aarch64.names",
    "tvm-ffi-0.1.14-linux-aarch64.names",
    "tvm-ffi-0.1.14-linux-x86_64.names",
    "tvm-ffi-0.1.14-windows-x86_64.names",
    "tvm-ffi-0.1.15-darwin-aarch64.names",
    "tvm-ffi-0.1.15-linux-aarch64.names",
    "tvm-ffi-0.1.15-linux-x86_64.names",
    "tvm-ffi-0.1.15-windows-x86_64.names",
    "tvm-ffi-0.1.9-darwin-aarch64.names",
    "tvm-ffi-0.1.9-linux-aarch64.names",
    "tvm-ffi-0.1.9-linux-x86_64.names",
    "tvm-ffi-0.1.9-windows-x86_64.names",
];
