"""The kernel as an operator of torch."""

import torch

from ._ops import ops, torch_add_op_namespace_prefix


def is_one(array) -> bool:
    return isinstance(array, torch.Tensor)


@torch.library.custom_op(torch_add_op_namespace_prefix("relu"), mutates_args=())
def relu(input: torch.Tensor) -> torch.Tensor:
    source = input.contiguous()
    output = torch.empty_like(source, memory_format=torch.contiguous_format)
    ops.relu(source, output)
    return output


@torch.library.custom_op(torch_add_op_namespace_prefix("relu_backward"), mutates_args=())
def relu_backward(grad_output: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    grad_input = torch.empty_like(output, memory_format=torch.contiguous_format)
    ops.relu_backward(grad_output.contiguous(), output.contiguous(), grad_input)
    return grad_input


@relu.register_fake
def _relu_fake(input):
    return torch.empty_like(input, memory_format=torch.contiguous_format)


@relu_backward.register_fake
def _relu_backward_fake(grad_output, output):
    return torch.empty_like(output, memory_format=torch.contiguous_format)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(output)


def _backward(ctx, grad_output):
    (output,) = ctx.saved_tensors
    return relu_backward(grad_output, output)


relu.register_autograd(_backward, setup_context=_setup_context)
