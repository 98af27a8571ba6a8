"""`prove.py PROJECT VARIANT BACKEND`: loads one variant with the `kernels` package and runs the project's example on it.

Prints a line for each stage that is proven: `loaded`, then `ran`.
"""

import runpy
import sys
from pathlib import Path

import torch
from kernels import get_local_kernel

project, variant, backend = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

kernel = get_local_kernel(project, backend=backend)
directory = Path(kernel.__file__).parent
if directory != project / "build" / variant:
    sys.exit(f"torch {torch.__version__} selects `{directory.name}` in place of `{variant}`")
print("loaded", flush=True)

runpy.run_path(str(project / "example.py"))["run"](kernel)
print("ran", flush=True)
