"""Products of 8-bit integer matrices with 32-bit sums."""

import torch

from ._ops import add_op_namespace_prefix, ops

__all__ = ["gemm_int8"]


@torch.library.register_fake(add_op_namespace_prefix("gemm_int8"))
def _fake(a, b):
    return a.new_empty((a.shape[0], b.shape[1]), dtype=torch.int32)


def gemm_int8(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product of ``a`` ([m, k], int8) and ``b`` ([k, n], int8) as int32 ([m, n]), exact for ``k`` up to 131071."""
    return ops.gemm_int8(a, b)
