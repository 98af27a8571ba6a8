"""Layers for use with ``kernels.kernelize``: pure modules without a constructor."""

import torch
from torch import nn

from ._ops import ops


class ReLU(nn.Module):
    """Takes the place of ``torch.nn.ReLU``."""

    has_backward = True
    can_torch_compile = True

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.relu(input)
