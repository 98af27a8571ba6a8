"""Loads the built kernel as a user would, and compares it with torch: `python example.py`."""

from pathlib import Path

import torch
import torch.nn.functional as F
from kernels import get_local_kernel


def run(kernel):
    x, wanted = (torch.linspace(-2, 2, 24).reshape(3, 8).requires_grad_() for _ in range(2))
    weight = torch.linspace(0.5, 1.5, 8)
    y, expected = kernel.rms_norm(x, weight, 1e-6), F.rms_norm(wanted, (8,), weight, 1e-6)
    torch.testing.assert_close(y, expected)
    y.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(x.grad, wanted.grad, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    run(get_local_kernel(Path(__file__).parent, backend="cpu"))
    print("equal to torch, forward and backward")
