"""`relu` as the unchanged `kernels` package loads it from `build/`, against torch."""

import json
import platform
from pathlib import Path

import pytest
import torch
from kernels import get_loaded_kernels, get_local_kernel

PROJECT = Path(__file__).parent.parent
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (2, 3, 5), (1023,), (64, 129)]


def platform_name():
    """The end of the names of variants for this machine, by the loader's own rules."""
    cpu = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{cpu}-{platform.system().lower()}"


@pytest.fixture(scope="module")
def kernel():
    return get_local_kernel(PROJECT, backend="cpu")


def draw(shape, dtype, **kwargs):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator).to(dtype).requires_grad_(kwargs.get("grad", False))


def test_variant_is_the_one_for_this_torch(kernel):
    major, minor = torch.__version__.split("+")[0].split(".")[:2]
    path = Path(kernel.__file__).parent
    assert path.name == f"torch{major}{minor}{'-cxx11' if platform.system() == 'Linux' else ''}-cpu-{platform_name()}"
    assert json.loads((path / "metadata.json").read_text())["id"] == kernel.__name__
    assert kernel.__name__ in [loaded.metadata.id for loaded in get_loaded_kernels()]


def test_variant_directory_loads_by_itself(kernel):
    again = get_local_kernel(Path(kernel.__file__).parent, backend="cpu")
    assert again.__name__ == kernel.__name__


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(kernel, shape, dtype):
    x = draw(shape, dtype)
    y = kernel.relu(x)
    assert y.dtype == dtype and y.shape == x.shape and y.is_contiguous()
    assert torch.equal(y, torch.relu(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_backward(kernel, shape, dtype):
    x, reference = draw(shape, dtype, grad=True), draw(shape, dtype, grad=True)
    grad = draw(shape, dtype).detach() + 0.5
    kernel.relu(x).backward(grad)
    torch.relu(reference).backward(grad)
    assert torch.equal(x.grad, reference.grad)


@pytest.mark.parametrize("dtype", DTYPES)
def test_not_contiguous(kernel, dtype):
    base = draw((6, 8, 4), dtype)
    for view in [base.transpose(0, 2), base[::2, 1::3], base.permute(1, 2, 0), base[:, :1].expand(6, 8, 4)]:
        assert not view.is_contiguous()
        assert torch.equal(kernel.relu(view), torch.relu(view))


def test_backward_through_a_view(kernel):
    x, reference = draw((5, 6), torch.float32, grad=True), draw((5, 6), torch.float32, grad=True)
    (kernel.relu(x.t()[::2]) * 3).sum().backward()
    (torch.relu(reference.t()[::2]) * 3).sum().backward()
    assert torch.equal(x.grad, reference.grad)


def test_special_values(kernel):
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, -1e-45], requires_grad=True)
    reference = x.detach().clone().requires_grad_()
    y, expected = kernel.relu(x), torch.relu(reference)
    torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)
    y.sum().backward()
    expected.sum().backward()
    assert torch.equal(x.grad, reference.grad)


def test_gradcheck(kernel):
    x = draw((4, 5), torch.float64) + 0.1
    assert torch.autograd.gradcheck(kernel.relu, (x.detach().requires_grad_(),))


def test_other_dtypes_are_refused(kernel):
    with pytest.raises(RuntimeError, match="relu: unsupported dtype Int"):
        kernel.relu(torch.ones(3, dtype=torch.int32))


def test_opcheck(kernel):
    x = draw((3, 4), torch.float32, grad=True)
    op = getattr(torch.ops, kernel.__name__).relu.default
    torch.library.opcheck(op, (x,))


def test_compiles_without_a_graph_break(kernel):
    x = draw((8, 16), torch.float32, grad=True)
    compiled = torch.compile(lambda t: kernel.relu(t * 2) + 1, backend="aot_eager", fullgraph=True)
    y = compiled(x)
    y.sum().backward()
    reference = draw((8, 16), torch.float32, grad=True)
    expected = torch.relu(reference * 2) + 1
    expected.sum().backward()
    assert torch.equal(y, expected)
    assert torch.equal(x.grad, reference.grad)


def test_layer_is_pure(kernel):
    layer = kernel.layers.ReLU
    assert layer.__init__ is torch.nn.Module.__init__
    module = torch.nn.ReLU()
    module.forward = layer.forward.__get__(module)
    x = draw((4, 4), torch.float32)
    assert torch.equal(module(x), torch.relu(x))
