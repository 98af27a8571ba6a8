"""`soft-cap` as the unchanged `kernels` package loads it from `build/`: compiled for the CPU, Python for CUDA."""

import json
import platform
from pathlib import Path

import pytest
import torch
from kernels import get_local_kernel

PROJECT = Path(__file__).parent.parent
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (64, 129)]
#: With a CUDA build of torch the loader finds the Python half, which runs on any device's tensors.
DETECTED = "cuda" if torch.version.cuda else "cpu"


def platform_name():
    """The end of the names of variants for this machine, by the loader's own rules."""
    cpu = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{cpu}-{platform.system().lower()}"


DIRECTORIES = {"cpu": f"torch-stable-abi211-cpu-{platform_name()}", "cuda": "torch-cuda"}


@pytest.fixture(scope="module", params=sorted({"cpu", DETECTED}))
def kernel(request):
    kernel = get_local_kernel(PROJECT, backend=request.param)
    assert Path(kernel.__file__).parent.name == DIRECTORIES[request.param]
    return kernel


def draw(shape, dtype=torch.float32):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 3).to(dtype)


def test_each_half_is_what_it_says(kernel):
    directory = Path(kernel.__file__).parent
    metadata = json.loads((directory / "metadata.json").read_text())
    assert metadata["id"] == kernel.__name__
    assert metadata["backend"] == {"type": "cpu" if kernel.is_compiled else "cuda"}
    assert len(list(directory.glob("*.so"))) == (1 if kernel.is_compiled else 0)
    assert kernel.is_compiled == (directory.name != "torch-cuda")


@pytest.mark.parametrize("cap", [0.5, 30.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_forward_and_backward(kernel, shape, cap):
    x, wanted = draw(shape).requires_grad_(), draw(shape).requires_grad_()
    y, expected = kernel.soft_cap(x, cap), cap * torch.tanh(wanted / cap)
    torch.testing.assert_close(y, expected)
    y.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, wanted.grad, rtol=1e-4, atol=1e-5)


def test_not_contiguous(kernel):
    view = draw((6, 8)).t()[::2]
    torch.testing.assert_close(kernel.soft_cap(view, 2.0), 2.0 * torch.tanh(view / 2.0))


@pytest.mark.parametrize("x, cap, message", [(torch.ones(2).double(), 1.0, "float32"), (torch.ones(2), 0.0, "positive")])
def test_bad_arguments_are_refused(kernel, x, cap, message):
    with pytest.raises(RuntimeError, match=message):
        kernel.soft_cap(x, cap)


def test_compiles_without_a_graph_break(kernel):
    torch._dynamo.reset()
    x = draw((4, 8))
    compiled = torch.compile(lambda t: kernel.soft_cap(t, 2.0) + 1, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), 2.0 * torch.tanh(x / 2.0) + 1)
