//! Hub-loadable GPU kernels from a build.toml.
