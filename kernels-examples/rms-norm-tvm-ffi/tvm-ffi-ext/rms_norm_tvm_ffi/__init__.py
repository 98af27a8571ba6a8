"""Root-mean-square normalisation for arrays of torch, JAX and NumPy, compiled once for all of them."""

from ._ops import has_jax, has_torch, ops

__all__ = ["rms_norm"]

if has_torch:
    from . import _torch
if has_jax:
    from . import _jax


def rms_norm(input, weight, eps: float = 1e-6):
    """Scale each row (last dimension) of ``input`` to a root mean square of one, then by ``weight``.

    ``input`` and ``weight`` are float32, float16 or, where the library has it, bfloat16, both the same. Sums are made in float32, and
    the result is a contiguous array of the same library. Differentiable once in torch, in ``input`` and ``weight``.
    """
    if has_torch and _torch.is_one(input):
        output, _rstd = _torch.rms_norm_forward(input, weight, eps)
        return output
    if has_jax and _jax.is_one(input):
        return _jax.rms_norm(input, weight, eps)
    import numpy as np

    source, scale = np.asarray(input, order="C"), np.asarray(weight, order="C")
    output = np.empty_like(source, order="C")
    ops.rms_norm_forward(source, scale, output, np.empty(source.shape[:-1], np.float32), eps)
    return output
