"""`gemm-int8` as the unchanged `kernels` package loads it from `build/`, against torch: on the CPU, and on a device where one is."""

from pathlib import Path

import pytest
import torch
from kernels import get_local_kernel

PROJECT = Path(__file__).parent.parent
SHAPES = [(1, 1, 1), (0, 3, 4), (3, 0, 4), (3, 4, 0), (16, 16, 16), (33, 70, 17), (64, 128, 96), (100, 257, 31), (5, 4096, 7)]
DEVICES = ["cpu"]
if torch.cuda.is_available():
    DEVICES.append("cuda")


@pytest.fixture(scope="module", params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(scope="module")
def kernel(device):
    return get_local_kernel(PROJECT, backend=device)


def draw(rows, columns, device, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-128, 128, (rows, columns), generator=generator).to(torch.int8).to(device)


def product(a, b):
    return (a.cpu().long() @ b.cpu().long()).int()


@pytest.mark.parametrize("m, k, n", SHAPES)
def test_exact(kernel, device, m, k, n):
    a, b = draw(m, k, device), draw(k, n, device, seed=1)
    z = kernel.gemm_int8(a, b)
    assert z.dtype == torch.int32 and z.shape == (m, n) and z.device == a.device
    assert torch.equal(z.cpu(), product(a, b))


def test_extremes(kernel, device):
    longest = 131071
    a = torch.full((4, longest), -128, dtype=torch.int8, device=device)
    assert kernel.gemm_int8(a, a.t()).unique().tolist() == [128 * 128 * longest]
    long = torch.zeros(1, longest + 1, dtype=torch.int8, device=device)
    with pytest.raises(RuntimeError, match="could overflow"):
        kernel.gemm_int8(long, long.t())


def test_not_contiguous(kernel, device):
    a, b = draw(40, 64, device).t(), draw(80, 30, device, seed=1)[::2]
    assert torch.equal(kernel.gemm_int8(a, b).cpu(), product(a, b))


@pytest.mark.parametrize(
    "a, b, message",
    [
        (torch.zeros(2, 3), torch.zeros(3, 2), "must be int8"),
        (torch.zeros(2, dtype=torch.int8), torch.zeros(2, 2, dtype=torch.int8), "must be matrices"),
        (torch.zeros(2, 3, dtype=torch.int8), torch.zeros(4, 2, dtype=torch.int8), "3 columns and b 4 rows"),
    ],
)
def test_bad_arguments_are_refused(kernel, device, a, b, message):
    with pytest.raises(RuntimeError, match=message):
        kernel.gemm_int8(a.to(device), b.to(device))


def test_opcheck(kernel, device):
    op = getattr(torch.ops, kernel.__name__).gemm_int8.default
    torch.library.opcheck(op, (draw(8, 16, device), draw(16, 4, device, seed=1)))
