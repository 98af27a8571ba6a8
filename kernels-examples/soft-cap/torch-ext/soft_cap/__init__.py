"""Soft capping of logits: compiled where the variant carries an op, in Python elsewhere."""

import torch

from ._ops import add_op_namespace_prefix, ops

__all__ = ["is_compiled", "soft_cap"]

#: Whether this variant carries compiled code: the import of `_ops` has registered its op by now.
is_compiled: bool = hasattr(ops, "soft_cap")

if is_compiled:

    @torch.library.register_fake(add_op_namespace_prefix("soft_cap"))
    def _soft_cap_fake(input, cap):
        return input.new_empty(input.shape)

else:

    @torch.library.custom_op(add_op_namespace_prefix("soft_cap"), mutates_args=())
    def _soft_cap(input: torch.Tensor, cap: float) -> torch.Tensor:
        if input.dtype != torch.float32:
            raise RuntimeError("soft_cap: expected a float32 tensor")
        if cap <= 0:
            raise RuntimeError(f"soft_cap: cap must be positive, got {cap}")
        return cap * torch.tanh(input / cap)

    @_soft_cap.register_fake
    def _(input, cap):
        return input.new_empty(input.shape)


def _setup_context(ctx, inputs, output):
    ctx.cap = inputs[1]
    ctx.save_for_backward(output)


def _backward(ctx, grad_output):
    (output,) = ctx.saved_tensors
    return grad_output * (1 - (output / ctx.cap) ** 2), None


torch.library.register_autograd(add_op_namespace_prefix("soft_cap"), _backward, setup_context=_setup_context)


def soft_cap(input: torch.Tensor, cap: float) -> torch.Tensor:
    """``cap * tanh(input / cap)`` for each element of a float32 tensor. Differentiable once in ``input``."""
    return ops.soft_cap(input, cap)
