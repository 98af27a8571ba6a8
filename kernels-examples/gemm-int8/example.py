"""Loads the built kernel as a user would, and compares it with torch: `python example.py`."""

from pathlib import Path

import torch
from kernels import get_local_kernel


def run(kernel):
    generator = torch.Generator().manual_seed(0)
    a = torch.randint(-128, 128, (33, 70), generator=generator).to(torch.int8)
    b = torch.randint(-128, 128, (70, 17), generator=generator).to(torch.int8)
    assert torch.equal(kernel.gemm_int8(a, b), a.int() @ b.int())


if __name__ == "__main__":
    run(get_local_kernel(Path(__file__).parent, backend="cpu"))
    print("equal to torch")
