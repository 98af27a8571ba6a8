"""Loads an extension of the floor's test programs into torch and lets them run.

Arguments: the extension, a directory to work in, and `stable` or `classic`.
"""

import ctypes
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import torch

path, work, abi = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
name = path.name.split(".")[0]
loader = importlib.machinery.ExtensionFileLoader(name, str(path))
loader.exec_module(importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader)))
ops = getattr(torch.ops, name)

process_wide = ctypes.CDLL("libstdc++.so.6")._ZSt19uncaught_exceptionsv
process_wide.restype = ctypes.c_int
faults = []


def check(what, good, seen=None):
    if not good:
        faults.append(f"{what}: {seen!r}")


def counts(when):
    check(f"uncaught exceptions {when}, in the extension", ops.uncaught() == 0, ops.uncaught())
    check(f"uncaught exceptions {when}, in the process", process_wide() == 0, process_wide())


def raises(kind, error, part):
    try:
        check(kind, False, ops.throws(kind, "boom"))
    except error as caught:
        check(kind, part in str(caught), str(caught))


counts("at first")
x = torch.randn(1000)
check("relu", torch.equal(ops.relu(x), torch.relu(x)))
check("short text", ops.echo("hi") == "<hi>", ops.echo("hi"))
check("long text", ops.echo("x" * 100000) == "<" + "x" * 100000 + ">")
for program, arguments in [
    ("text", ["word"]),
    ("files", [work]),
    ("numbers", [1.7]),
    ("errors", ["word"]),
    ("threads", [4]),
    ("futures", []),
]:
    said = getattr(ops, program)(*arguments)
    check(program, said == "", said)
check("sum", ops.parallel_sum(1000) == 499500, ops.parallel_sum(1000))
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
if faults:
    sys.exit("\n".join(faults))
print("all well in torch", torch.__version__)
