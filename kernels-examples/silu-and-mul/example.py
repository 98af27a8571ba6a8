"""Loads the built kernel as a user would, and compares it with torch: `python example.py`."""

from pathlib import Path

import torch
import torch.nn.functional as F
from kernels import get_local_kernel


def run(kernel):
    x, wanted = (torch.linspace(-2, 2, 24).reshape(3, 8).requires_grad_() for _ in range(2))
    y, expected = kernel.silu_and_mul(x), F.silu(wanted[:, :4]) * wanted[:, 4:]
    torch.testing.assert_close(y, expected)
    y.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, wanted.grad)


if __name__ == "__main__":
    run(get_local_kernel(Path(__file__).parent))
    print("equal to torch, forward and backward")
