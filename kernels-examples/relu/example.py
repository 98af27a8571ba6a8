"""Loads the built kernel as a user would, and compares it with torch: `python example.py`."""

from pathlib import Path

import torch
from kernels import get_local_kernel


def run(kernel):
    x = torch.linspace(-2, 2, 9, requires_grad=True)
    kernel.relu(x).sum().backward()
    torch.testing.assert_close(kernel.relu(x), torch.relu(x))
    torch.testing.assert_close(x.grad, (x > 0).float())


if __name__ == "__main__":
    run(get_local_kernel(Path(__file__).parent, backend="cpu"))
    print("equal to torch, forward and backward")
