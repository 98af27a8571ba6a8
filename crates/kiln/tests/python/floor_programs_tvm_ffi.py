"""Loads an extension of the floor's test programs by tvm-ffi, beside no torch, and lets them run.

Arguments: the extension, and a directory to work in.
"""

import sys

import numpy as np
import tvm_ffi
from floor_common import Programs

path, work = sys.argv[1:]
ops = tvm_ffi.load_module(path)

programs = Programs(ops)
check, counts, raises = programs.check, programs.counts, programs.raises

counts("at first")
x = np.random.default_rng(0).standard_normal(1000, dtype=np.float32)
y = np.empty_like(x)
ops.relu(x, y)
check("relu", np.array_equal(y, np.maximum(x, 0)))
programs.run(work)
for _ in range(3):
    raises("mine", RuntimeError, "mine:boom")
    raises("files", RuntimeError, "/no-such-file/boom")
    raises("range", RuntimeError, "range:boom")
    raises("tvm", IndexError, "tvm:boom")
    try:
        check("a wrong type", False, ops.relu(x.astype(np.float64), y))
    except TypeError as caught:
        check("a wrong type", "relu: expected float" in str(caught), str(caught))
    check("tvm-ffi's exception", ops.caught().startswith("caught: "), ops.caught())
    counts("after exceptions")
programs.end(f"all well in tvm-ffi {tvm_ffi.__version__}")
