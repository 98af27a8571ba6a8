"""`prove.py [PROJECT VARIANT BACKEND STAGE]...`: loads variants with the `kernels` package and runs each project's example on them.

For each case, by its number from 0, prints a line for each stage that is proven, up to STAGE: `0 loaded`, then `0 ran`. What
goes wrong is told on stderr, and the next case is tried. Operators of a device that is not here must refuse tensors of the CPU, in
torch's own words.
"""

import runpy
import sys
import traceback
from pathlib import Path

from kernels import get_local_kernel


def refuse(example, kernel):
    try:
        example["run"](kernel)
    except NotImplementedError as error:
        if "'CPU' backend" not in str(error):
            raise
    else:
        raise RuntimeError("its operators take tensors of the CPU")


def prove(project, variant, backend, last, say):
    kernel = get_local_kernel(project, backend=backend)
    directory = Path(kernel.__file__).parent
    if directory != project / "build" / variant:
        raise RuntimeError(f"the loader selects `{directory.name}` in place of `{variant}`")
    example = runpy.run_path(str(project / "example.py"))
    for name in example.get("FUNCTIONS", []):
        if not kernel._ops.ops.implements_function(name):
            raise RuntimeError(f"it has no function `{name}`")
    if last == "loaded" and variant.startswith("torch") and "-cu" in variant:
        refuse(example, kernel)
    say("loaded")
    if last == "ran":
        example["run"](kernel)
        say("ran")


arguments = sys.argv[1:]
for number, start in enumerate(range(0, len(arguments), 4)):
    project, variant, backend, last = arguments[start : start + 4]
    try:
        prove(Path(project), variant, backend, last, lambda stage: print(number, stage, flush=True))
    except Exception:
        print(f"{variant}:\n{traceback.format_exc()}", file=sys.stderr)
