"""`silu-and-mul` as the unchanged `kernels` package loads it from `build/`, against torch."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from kernels import get_local_kernel

PROJECT = Path(__file__).parent.parent
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SHAPES = [(2,), (0, 4), (1, 2), (3, 10), (2, 3, 64), (4, 0)]
#: What the loader finds for this torch, and `cpu`, which a caller may always ask for.
DETECTED = "cuda" if torch.version.cuda else "cpu"


@pytest.fixture(scope="module", params=sorted({"cpu", DETECTED}))
def kernel(request):
    kernel = get_local_kernel(PROJECT, backend=request.param)
    assert Path(kernel.__file__).parent.name == f"torch-{request.param}"
    return kernel


def draw(shape, dtype, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def reference(x):
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def test_the_backend_is_detected():
    kernel = get_local_kernel(PROJECT)
    assert Path(kernel.__file__).parent.name == f"torch-{DETECTED}"
    assert kernel.get_backend() == DETECTED


def test_metadata(kernel):
    directory = Path(kernel.__file__).parent
    metadata = json.loads((directory / "metadata.json").read_text())
    assert metadata["id"] == kernel.__name__
    assert metadata["backend"]["type"] == directory.name.removeprefix("torch-")
    assert not list(directory.glob("*.so"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(kernel, shape, dtype):
    x = draw(shape, dtype)
    torch.testing.assert_close(kernel.silu_and_mul(x), reference(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_backward(kernel, shape, dtype):
    x, wanted = draw(shape, dtype).requires_grad_(), draw(shape, torch.float64).to(dtype).double().requires_grad_()
    grad = draw(reference(x).shape, dtype, seed=1)
    kernel.silu_and_mul(x).backward(grad)
    reference(wanted).backward(grad.double())
    bound = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    torch.testing.assert_close(x.grad, wanted.grad.to(dtype), rtol=bound, atol=bound)


def test_not_contiguous(kernel):
    base = draw((6, 8, 4), torch.float32)
    for view in [base.transpose(0, 2), base[::2, ::2], base[:, :1].expand(6, 8, 4)]:
        torch.testing.assert_close(kernel.silu_and_mul(view), reference(view))


def test_gradcheck(kernel):
    x = draw((3, 6), torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(kernel.silu_and_mul, (x,))


@pytest.mark.parametrize("x", [torch.ones(3), torch.tensor(1.0)])
def test_odd_sizes_are_refused(kernel, x):
    with pytest.raises(ValueError, match="must be even"):
        kernel.silu_and_mul(x)


def test_compiles_without_a_graph_break(kernel):
    torch._dynamo.reset()
    x, wanted = draw((4, 8), torch.float32).requires_grad_(), draw((4, 8), torch.float32).requires_grad_()
    compiled = torch.compile(lambda t: kernel.silu_and_mul(t) + 1, backend="aot_eager", fullgraph=True)
    compiled(x).sum().backward()
    reference(wanted).sum().backward()
    torch.testing.assert_close(x.grad, wanted.grad)
