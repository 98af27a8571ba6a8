"""`prove.py [PROJECT VARIANT BACKEND]...`: loads variants with the `kernels` package and runs each project's example on them.

For each case, by its number from 0, prints a line for each stage that is proven: `0 loaded`, then `0 ran`. What goes wrong
is told on stderr, and the next case is tried.
"""

import runpy
import sys
import traceback
from pathlib import Path

import torch
from kernels import get_local_kernel


def prove(project, variant, backend, say):
    kernel = get_local_kernel(project, backend=backend)
    directory = Path(kernel.__file__).parent
    if directory != project / "build" / variant:
        raise RuntimeError(f"the loader selects `{directory.name}` in place of `{variant}`")
    say("loaded")
    runpy.run_path(str(project / "example.py"))["run"](kernel)
    say("ran")


arguments = sys.argv[1:]
for number, start in enumerate(range(0, len(arguments), 3)):
    project, variant, backend = arguments[start : start + 3]
    try:
        prove(Path(project), variant, backend, lambda stage: print(number, stage, flush=True))
    except Exception:
        print(f"{variant} in torch {torch.__version__}:\n{traceback.format_exc()}", file=sys.stderr)
