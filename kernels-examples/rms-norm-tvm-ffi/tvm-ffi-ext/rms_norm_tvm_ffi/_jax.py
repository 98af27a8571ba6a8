"""The kernel as a target of JAX."""

import jax
import numpy as np

from ._ops import jax_ffi_call, jax_register_ffi_target, ops

jax_register_ffi_target("rms_norm", ops.rms_norm_forward, ["args", "rets", "attrs.eps"], platform="cpu")


def is_one(array) -> bool:
    return isinstance(array, jax.Array)


def rms_norm(input, weight, eps):
    results = (jax.ShapeDtypeStruct(input.shape, input.dtype), jax.ShapeDtypeStruct(input.shape[:-1], np.float32))
    output, _rstd = jax_ffi_call("rms_norm", results)(input, weight, eps=eps)
    return output
