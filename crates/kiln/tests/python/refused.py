# What a function of a library of tvm-ffi raises when it is given tensors of the host: `refused.py LIBRARY FUNCTION`.
import sys

import numpy as np
import tvm_ffi

function = getattr(tvm_ffi.load_module(sys.argv[1]), sys.argv[2])
matrix = lambda: tvm_ffi.from_dlpack(np.ones((2, 4), dtype=np.float32))
vector = lambda length: tvm_ffi.from_dlpack(np.ones(length, dtype=np.float32))
arguments = {"relu": lambda: [matrix(), matrix()], "rms_norm_forward": lambda: [matrix(), vector(4), matrix(), vector(2), 1e-6]}
try:
    function(*arguments[sys.argv[2]]())
except Exception as error:
    print(f"{type(error).__name__}: {error}")
else:
    print("it took them")
