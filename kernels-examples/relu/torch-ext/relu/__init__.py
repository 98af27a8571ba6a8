"""Rectified linear unit, compiled against torch's C++ API."""

import torch

from . import layers
from ._ops import add_op_namespace_prefix, ops

__all__ = ["layers", "relu"]


@torch.library.register_fake(add_op_namespace_prefix("relu"))
def _relu_fake(input):
    return torch.empty_like(input, memory_format=torch.contiguous_format)


@torch.library.register_fake(add_op_namespace_prefix("relu_backward"))
def _relu_backward_fake(grad_output, output):
    return torch.empty_like(grad_output, memory_format=torch.contiguous_format)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(output)


def _backward(ctx, grad_output):
    (output,) = ctx.saved_tensors
    return ops.relu_backward(grad_output, output)


torch.library.register_autograd(add_op_namespace_prefix("relu"), _backward, setup_context=_setup_context)


def relu(input: torch.Tensor) -> torch.Tensor:
    """``max(input, 0)`` for each element; the result is contiguous. Differentiable once."""
    return ops.relu(input)
