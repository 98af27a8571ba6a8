"""Gated SiLU written in Python: one source for every backend, nothing to compile."""

import torch
import torch.nn.functional as F

from . import layers
from ._ops import add_op_namespace_prefix, get_backend, ops

__all__ = ["get_backend", "layers", "silu_and_mul"]


def _halves(input):
    if input.ndim == 0 or input.shape[-1] % 2 != 0:
        raise ValueError(f"silu_and_mul: the last dimension must be even, got shape {tuple(input.shape)}")
    return input.chunk(2, dim=-1)


@torch.library.custom_op(add_op_namespace_prefix("silu_and_mul"), mutates_args=())
def _silu_and_mul(input: torch.Tensor) -> torch.Tensor:
    gate, up = _halves(input)
    return F.silu(gate) * up


@_silu_and_mul.register_fake
def _(input):
    gate, _up = _halves(input)
    return input.new_empty(gate.shape)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _backward(ctx, grad_output):
    gate, up = _halves(ctx.saved_tensors[0])
    sigmoid = torch.sigmoid(gate)
    grad_gate = grad_output * up * sigmoid * (1 + gate * (1 - sigmoid))
    return torch.cat([grad_gate, grad_output * gate * sigmoid], dim=-1)


_silu_and_mul.register_autograd(_backward, setup_context=_setup_context)


def silu_and_mul(input: torch.Tensor) -> torch.Tensor:
    """``silu(a) * b``, where ``a`` and ``b`` are the two halves of the last dimension of ``input``."""
    return ops.silu_and_mul(input)
