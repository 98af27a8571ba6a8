"""The kernel as operators of torch."""

from typing import Tuple

import torch

from ._ops import ops, torch_add_op_namespace_prefix


def is_one(array) -> bool:
    return isinstance(array, torch.Tensor)


@torch.library.custom_op(torch_add_op_namespace_prefix("rms_norm_forward"), mutates_args=())
def rms_norm_forward(input: torch.Tensor, weight: torch.Tensor, eps: float) -> Tuple[torch.Tensor, torch.Tensor]:
    output, rstd = _forward_fake(input, weight, eps)
    ops.rms_norm_forward(input.contiguous(), weight.contiguous(), output, rstd, eps)
    return output, rstd


@torch.library.custom_op(torch_add_op_namespace_prefix("rms_norm_backward"), mutates_args=())
def rms_norm_backward(
    grad_output: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor]:
    grad_input = input.new_empty(input.shape)
    # The kernel leaves it alone where there is no row.
    grad_weight = weight.new_zeros(weight.shape)
    arguments = (tensor.contiguous() for tensor in (grad_output, input, weight, rstd))
    ops.rms_norm_backward(*arguments, grad_input, grad_weight)
    return grad_input, grad_weight


@rms_norm_forward.register_fake
def _forward_fake(input, weight, eps):
    return input.new_empty(input.shape), input.new_empty(input.shape[:-1], dtype=torch.float32)


@rms_norm_backward.register_fake
def _backward_fake(grad_output, input, weight, rstd):
    return input.new_empty(input.shape), weight.new_empty(weight.shape)


def _setup_context(ctx, inputs, output):
    input, weight, _eps = inputs
    _output, rstd = output
    ctx.save_for_backward(input, weight, rstd)
    ctx.mark_non_differentiable(rstd)


def _backward(ctx, grad_output, _grad_rstd):
    input, weight, rstd = ctx.saved_tensors
    grad_input, grad_weight = rms_norm_backward(grad_output, input, weight, rstd)
    return grad_input, grad_weight, None


rms_norm_forward.register_autograd(_backward, setup_context=_setup_context)
