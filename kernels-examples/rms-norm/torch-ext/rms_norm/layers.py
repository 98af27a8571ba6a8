"""Layers for use with ``kernels.kernelize``: pure modules without a constructor."""

import torch
from torch import nn

from ._functional import rms_norm


class RMSNorm(nn.Module):
    """Takes the place of a module that has ``weight`` and ``variance_epsilon``."""

    has_backward = True
    can_torch_compile = True

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.variance_epsilon)
