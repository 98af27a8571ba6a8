"""Loads an extension of the floor's test programs into torch and lets them run.

Arguments: the extension, a directory to work in, and `stable` or `classic`.
"""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import torch
from floor_common import Programs

path, work, abi = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
name = path.name.split(".")[0]
loader = importlib.machinery.ExtensionFileLoader(name, str(path))
loader.exec_module(importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader)))
ops = getattr(torch.ops, name)

programs = Programs(ops)
check, counts, raises = programs.check, programs.counts, programs.raises

counts("at first")
x = torch.randn(1000)
check("relu", torch.equal(ops.relu(x), torch.relu(x)))
programs.run(work)
for _ in range(3):
    raises("mine", RuntimeError, "mine:boom")
    raises("files", RuntimeError, "/no-such-file/boom")
    raises("range", IndexError, "range:boom")
    if abi == "classic":
        raises("torch", RuntimeError, "torch:boom")
        raises("index", IndexError, "index:boom")
    try:
        check("a wrong type", False, ops.relu(x.double()))
    except RuntimeError as caught:
        check("a wrong type", "relu: expected float" in str(caught), str(caught))
    check("torch's exception", ops.caught(x).startswith("caught: "), ops.caught(x))
    counts("after exceptions")
programs.end(f"all well in torch {torch.__version__}")
