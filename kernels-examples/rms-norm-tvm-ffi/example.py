"""Loads the built kernel as a user would, and compares it with NumPy and torch: `python example.py`."""

from pathlib import Path

import numpy as np
from kernels import get_local_kernel

# What the library offers, on every backend.
FUNCTIONS = ["rms_norm_forward", "rms_norm_backward"]


def run(kernel):
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)
    weight = np.linspace(0.5, 1.5, 8, dtype=np.float32)
    wanted = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(kernel.rms_norm(x, weight, 1e-6), wanted, rtol=1e-5)

    try:
        import torch
    except ImportError:
        return
    t, reference = (torch.from_numpy(x).clone().requires_grad_() for _ in range(2))
    scale = torch.from_numpy(weight)
    y, expected = kernel.rms_norm(t, scale, 1e-6), torch.nn.functional.rms_norm(reference, (8,), scale, 1e-6)
    torch.testing.assert_close(y, expected)
    y.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(t.grad, reference.grad, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    run(get_local_kernel(Path(__file__).parent, backend="cpu"))
    print("equal to NumPy and torch")
