"""Layers for use with ``kernels.kernelize``: pure modules without a constructor."""

import torch
from torch import nn

from ._ops import ops


class SiluAndMul(nn.Module):
    """Takes the place of a module whose ``forward`` splits its input in two along the last dimension."""

    has_backward = True
    can_torch_compile = True

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.silu_and_mul(input)
