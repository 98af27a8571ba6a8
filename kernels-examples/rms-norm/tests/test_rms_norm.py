"""`rms-norm` as the unchanged `kernels` package loads it from `build/`, against torch."""

import json
import platform
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from kernels import LocalLayerRepository, Mode, get_local_kernel, kernelize, register_kernel_mapping
from kernels import use_kernel_forward_from_hub

PROJECT = Path(__file__).parent.parent
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(1,), (7,), (1, 1), (3, 5), (2, 3, 64), (0, 8), (2, 0, 8), (1, 4097), (257, 33), (300, 512)]
EPS = 1e-6


def platform_name():
    """The end of the names of variants for this machine, by the loader's own rules."""
    cpu = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{cpu}-{platform.system().lower()}"


@pytest.fixture(scope="module")
def kernel():
    return get_local_kernel(PROJECT, backend="cpu")


def tolerance(dtype):
    # One rounding of the result, and for float32 the order of the sums.
    return {torch.float32: dict(rtol=2e-5, atol=2e-5), torch.float16: dict(rtol=2e-3, atol=2e-3)}.get(
        dtype, dict(rtol=1.6e-2, atol=1.6e-2)
    )


def draw(shape, dtype, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def reference(x, weight, eps=EPS):
    """The definition, in float64, differentiable."""
    wide = x.double()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight.double()


def arguments(shape, dtype):
    x = draw(shape, dtype).requires_grad_()
    weight = (draw(shape[-1:], dtype, seed=1) * 0.1 + 1).detach().requires_grad_()
    return x, weight


def test_one_library_serves_every_torch(kernel):
    path = Path(kernel.__file__).parent
    assert path.name == f"torch-stable-abi211-cpu-{platform_name()}"
    metadata = json.loads((path / "metadata.json").read_text())
    assert metadata["id"] == kernel.__name__
    assert [p.name for p in path.glob("*.so")] == [f"{metadata['id']}.abi3.so"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(kernel, shape, dtype):
    x, weight = arguments(shape, dtype)
    y = kernel.rms_norm(x, weight, EPS)
    assert y.dtype == dtype and y.shape == x.shape and y.is_contiguous()
    torch.testing.assert_close(y, reference(x, weight).to(dtype), **tolerance(dtype))
    torch.testing.assert_close(y, F.rms_norm(x, (shape[-1],), weight, EPS), **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_backward(kernel, shape, dtype):
    x, weight = arguments(shape, dtype)
    wanted_x, wanted_weight = arguments(shape, dtype)
    grad = draw(shape, dtype, seed=2)
    kernel.rms_norm(x, weight, EPS).backward(grad)
    reference(wanted_x, wanted_weight).backward(grad.double())
    torch.testing.assert_close(x.grad, wanted_x.grad, **tolerance(dtype))
    rows = max(1, grad.numel() // shape[-1])
    scaled = {name: value * (rows**0.5 if name == "atol" else 1) for name, value in tolerance(dtype).items()}
    torch.testing.assert_close(weight.grad, wanted_weight.grad, **scaled)


@pytest.mark.parametrize("dtype", DTYPES)
def test_not_contiguous(kernel, dtype):
    base = draw((6, 8, 4), dtype)
    for view in [base.transpose(0, 2), base[::2, 1::3], base[:, :1].expand(6, 8, 4)]:
        assert not view.is_contiguous()
        weight = draw((view.shape[-1] * 2,), dtype, seed=1)[::2]
        torch.testing.assert_close(
            kernel.rms_norm(view, weight, EPS), reference(view, weight).to(dtype), **tolerance(dtype)
        )


def test_backward_of_a_strided_gradient(kernel):
    x, weight = arguments((4, 6), torch.float32)
    wanted_x, wanted_weight = arguments((4, 6), torch.float32)
    kernel.rms_norm(x, weight, EPS).t().contiguous().sum(0).sum().backward()
    reference(wanted_x, wanted_weight).sum().backward()
    torch.testing.assert_close(x.grad, wanted_x.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(weight.grad, wanted_weight.grad, rtol=1e-5, atol=1e-5)


def test_only_one_gradient_wanted(kernel):
    x, weight = arguments((3, 8), torch.float32)
    kernel.rms_norm(x, weight.detach(), EPS).sum().backward()
    assert x.grad is not None
    _, weight = arguments((3, 8), torch.float32)
    kernel.rms_norm(x.detach(), weight, EPS).sum().backward()
    assert weight.grad is not None


def test_threads_give_the_same_bits(kernel):
    x, weight = arguments((512, 384), torch.float32)
    grad = draw((512, 384), torch.float32, seed=2)
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            x.grad = weight.grad = None
            y = kernel.rms_norm(x, weight, EPS)
            y.backward(grad)
            results.append((y.detach().clone(), x.grad.clone(), weight.grad.clone()))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


@pytest.mark.parametrize(
    "x, weight, message",
    [
        (torch.ones(2, 3, dtype=torch.float64), torch.ones(3, dtype=torch.float64), "unsupported dtype"),
        (torch.ones(2, 3), torch.ones(4), "as long as the last dimension"),
        (torch.ones(2, 3), torch.ones(3, dtype=torch.float16), "same dtype"),
        (torch.tensor(1.0), torch.ones(1), "at least one dimension"),
    ],
)
def test_bad_arguments_are_refused(kernel, x, weight, message):
    with pytest.raises(RuntimeError, match=message):
        kernel.rms_norm(x, weight, EPS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck(kernel, dtype):
    ops = getattr(torch.ops, kernel.__name__)
    x, weight = arguments((3, 8), dtype)
    torch.library.opcheck(ops.rms_norm_forward.default, (x, weight, EPS))
    rstd = torch.ones(3)
    torch.library.opcheck(
        ops.rms_norm_backward.default, (x.detach(), x.detach(), weight.detach(), rstd)
    )


# Every combination where only tracing is asked for; the compiler of torch itself takes seconds for each.
COMPILED = [("aot_eager", dtype, dynamic) for dtype in DTYPES for dynamic in (False, True)] + [
    ("inductor", torch.float32, True),
    ("inductor", torch.float16, False),
    ("inductor", torch.bfloat16, False),
]


@pytest.mark.parametrize("backend, dtype, dynamic", COMPILED)
def test_torch_compile(kernel, backend, dtype, dynamic):
    torch._dynamo.reset()

    def block(x, weight):
        return kernel.rms_norm(x * 2, weight, EPS) + 1

    compiled = torch.compile(block, backend=backend, fullgraph=True, dynamic=dynamic)
    for shape in [(4, 16), (9, 16)]:
        x, weight = arguments(shape, dtype)
        wanted_x, wanted_weight = arguments(shape, dtype)
        y, expected = compiled(x, weight), block(wanted_x, wanted_weight)
        torch.testing.assert_close(y, expected, **tolerance(dtype))
        y.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(x.grad, wanted_x.grad, **tolerance(dtype))
        torch.testing.assert_close(weight.grad, wanted_weight.grad, **tolerance(dtype))


@use_kernel_forward_from_hub("ExampleRMSNorm")
class SlowRMSNorm(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))
        self.variance_epsilon = EPS

    def forward(self, hidden_states):
        raise AssertionError("the layer was not replaced")


@pytest.mark.parametrize("mode", [Mode.INFERENCE, Mode.TRAINING, Mode.TRAINING | Mode.TORCH_COMPILE])
def test_layer_takes_the_place_of_a_module(kernel, mode):
    # The variant's own directory: from the project's the loader would want the backend that torch was built for.
    repo = LocalLayerRepository(Path(kernel.__file__).parent, layer_name="RMSNorm")
    register_kernel_mapping({"ExampleRMSNorm": {"cpu": repo}})
    module = SlowRMSNorm(16)
    module = kernelize(module, mode=mode, device="cpu", use_fallback=False)
    x = draw((3, 16), torch.float32)
    torch.testing.assert_close(module(x), F.rms_norm(x, (16,), module.weight, EPS))
