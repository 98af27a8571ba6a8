"""Loads the built kernel as a user would, and compares it with NumPy and torch: `python example.py`."""

from pathlib import Path

import numpy as np
from kernels import get_local_kernel

# What the library offers, on every backend.
FUNCTIONS = ["relu", "relu_backward"]


def run(kernel):
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    np.testing.assert_array_equal(kernel.relu(x), np.maximum(x, 0))

    try:
        import torch
    except ImportError:
        return
    t = torch.from_numpy(x).requires_grad_()
    kernel.relu(t).sum().backward()
    torch.testing.assert_close(kernel.relu(t), torch.relu(t))
    torch.testing.assert_close(t.grad, (t > 0).float())


if __name__ == "__main__":
    run(get_local_kernel(Path(__file__).parent, backend="cpu"))
    print("equal to NumPy and torch")
