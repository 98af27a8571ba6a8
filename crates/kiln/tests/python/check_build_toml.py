"""Asks the `kernels` package what it reads in `build.toml` files.

usage: PYTHON check_build_toml.py < DIRECTORIES

For each directory, a line of standard input, one JSON object is printed: `{"backends": [..], "kernel_depends": {backend: [..]}}`,
or `{"error": ".."}` where the file is refused.
"""

import json
import sys

import kernels._rust as rust

BACKENDS = [rust.Backend.from_str(name) for name in ("cann", "cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu")]


def named(dependency: "rust.KernelDependency") -> str:
    version = dependency.version
    return f"{dependency.repo_id}@{version.version if isinstance(version, rust.KernelVersion.Version) else version.revision}"


def read(directory: str) -> dict:
    try:
        build = rust.Build.open(directory)
    except ValueError as error:
        return {"error": str(error)}
    listed = list(build.general.backends)
    depends = {str(backend): [named(one) for one in build.all_kernel_depends(backend)] for backend in BACKENDS if backend in listed}
    return {"backends": [str(backend) for backend in listed], "kernel_depends": depends}


for line in sys.stdin:
    print(json.dumps(read(line.rstrip("\n"))))
