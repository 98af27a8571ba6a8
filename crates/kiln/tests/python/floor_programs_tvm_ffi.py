"""Loads an extension of the floor's test programs by tvm-ffi, beside no torch, and lets them run.

Arguments: the extension, and a directory to work in.
"""

import ctypes
import sys

import numpy as np
import tvm_ffi

path, work = sys.argv[1:]
ops = tvm_ffi.load_module(path)

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
x = np.random.default_rng(0).standard_normal(1000, dtype=np.float32)
y = np.empty_like(x)
ops.relu(x, y)
check("relu", np.array_equal(y, np.maximum(x, 0)))
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
    raises("range", RuntimeError, "range:boom")
    raises("tvm", IndexError, "tvm:boom")
    try:
        check("a wrong type", False, ops.relu(x.astype(np.float64), y))
    except TypeError as caught:
        check("a wrong type", "relu: expected float" in str(caught), str(caught))
    check("tvm-ffi's exception", ops.caught().startswith("caught: "), ops.caught())
    counts("after exceptions")
if faults:
    sys.exit("\n".join(faults))
print("all well in tvm-ffi", tvm_ffi.__version__)
