"""Loads the built kernel as a user would, and compares it with torch: `python example.py`."""

from pathlib import Path

import torch
from kernels import get_local_kernel


def run(kernel):
    x, wanted = (torch.linspace(-20, 20, 9).requires_grad_() for _ in range(2))
    y, expected = kernel.soft_cap(x, 5.0), 5.0 * torch.tanh(wanted / 5.0)
    torch.testing.assert_close(y, expected)
    y.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, wanted.grad, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    run(get_local_kernel(Path(__file__).parent, backend="cpu"))
    print("equal to torch, forward and backward")
