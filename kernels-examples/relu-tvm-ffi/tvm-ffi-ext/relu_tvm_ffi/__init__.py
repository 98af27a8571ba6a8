"""Rectified linear unit for arrays of torch, JAX and NumPy, compiled once for all of them."""

from ._ops import has_jax, has_torch, ops

__all__ = ["relu"]

if has_torch:
    from . import _torch
if has_jax:
    from . import _jax


def relu(input):
    """``max(input, 0)`` for each element; the result is a contiguous array of the same library.

    Takes float32, float64, float16 and, where the library has it, bfloat16. Differentiable once in torch.
    """
    if has_torch and _torch.is_one(input):
        return _torch.relu(input)
    if has_jax and _jax.is_one(input):
        return _jax.relu(input)
    import numpy as np

    source = np.asarray(input, order="C")
    output = np.empty_like(source, order="C")
    ops.relu(source, output)
    return output
