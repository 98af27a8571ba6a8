"""What torch must know of the ops beside their code: shapes for tracing, and the gradient."""

import torch

from ._ops import add_op_namespace_prefix, ops


@torch.library.register_fake(add_op_namespace_prefix("rms_norm_forward"))
def _forward_fake(input, weight, eps):
    output = input.new_empty(input.shape)
    rstd = input.new_empty(input.shape[:-1], dtype=torch.float32)
    return output, rstd


@torch.library.register_fake(add_op_namespace_prefix("rms_norm_backward"))
def _backward_fake(grad_output, input, weight, rstd):
    return input.new_empty(input.shape), weight.new_empty(weight.shape)


def _setup_context(ctx, inputs, output):
    input, weight, _eps = inputs
    _output, rstd = output
    ctx.save_for_backward(input, weight, rstd)
    ctx.mark_non_differentiable(rstd)


def _backward(ctx, grad_output, _grad_rstd):
    input, weight, rstd = ctx.saved_tensors
    grad_input, grad_weight = ops.rms_norm_backward(grad_output, input, weight, rstd)
    return grad_input, grad_weight, None


torch.library.register_autograd(
    add_op_namespace_prefix("rms_norm_forward"), _backward, setup_context=_setup_context
)


def rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Scale each row (last dimension) of ``input`` to a root mean square of one, then by ``weight``.

    ``input`` and ``weight`` are float32, float16 or bfloat16, both the same. Sums are made in float32, and the result
    is contiguous. Differentiable once in ``input`` and ``weight``.
    """
    output, _rstd = ops.rms_norm_forward(input, weight, eps)
    return output
