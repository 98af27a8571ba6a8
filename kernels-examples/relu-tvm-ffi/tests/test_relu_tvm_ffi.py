"""`relu-tvm-ffi` as the unchanged `kernels` package loads it from `build/`, with the arrays of every library that is here."""

import json
import platform
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
from kernels import get_local_kernel

try:
    import torch
except ImportError:
    torch = None
try:
    import jax
    import jax_tvm_ffi  # noqa: F401
except ImportError:
    jax = None

PROJECT = Path(__file__).parent.parent
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (2, 3, 5), (1023,), (64, 129)]
# A library, and the dtypes that it has.
ARRAYS = [("numpy", name) for name in ("float32", "float64", "float16")]
if torch is not None:
    ARRAYS += [("torch", name) for name in ("float32", "float64", "float16", "bfloat16")]
if jax is not None:
    ARRAYS += [("jax", name) for name in ("float32", "float16", "bfloat16")]


@pytest.fixture(scope="module")
def kernel():
    return get_local_kernel(PROJECT, backend="cpu")


def draw(library, dtype, shape):
    values = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    if library == "torch":
        return torch.from_numpy(np.asarray(values)).to(getattr(torch, dtype))
    if library == "jax":
        return jax.numpy.asarray(values, dtype=dtype)
    return np.asarray(values.astype(dtype))


def wanted(library, x):
    if library == "torch":
        return torch.relu(x)
    return jax.nn.relu(x) if library == "jax" else np.maximum(x, 0)


def same(library, a, b):
    if library == "torch":
        return a.dtype == b.dtype and torch.equal(a, b)
    return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())


def library_of(kernel):
    """The shared object of the variant, loaded by tvm-ffi alone."""
    (path,) = Path(kernel.__file__).parent.glob("*.so")
    return tvm_ffi.load_module(str(path)), path


def test_one_library_serves_every_framework(kernel):
    directory = Path(kernel.__file__).parent
    cpu = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    assert directory.name == f"tvm-ffi01-cpu-{cpu}-{platform.system().lower()}"
    metadata = json.loads((directory / "metadata.json").read_text())
    assert metadata["id"] == kernel.__name__ and metadata["python-depends"] == ["tvm-ffi"]
    assert [path.name for path in directory.glob("*.so")] == [f"{metadata['id']}.so"]
    assert kernel._ops.has_torch == (torch is not None)


@pytest.mark.parametrize("library, dtype", ARRAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(kernel, library, dtype, shape):
    x = draw(library, dtype, shape)
    y = kernel.relu(x)
    assert type(y) is type(x) and same(library, y, wanted(library, x))


@pytest.mark.parametrize("library, dtype", [array for array in ARRAYS if array[0] != "jax"])
def test_not_contiguous(kernel, library, dtype):
    base = draw(library, dtype, (6, 8, 4))
    for view in [base.T if library == "numpy" else base.permute(2, 1, 0), base[::2, 1::3], base[:, 2]]:
        assert same(library, kernel.relu(view), wanted(library, view))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_special_values(kernel, dtype):
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, -6e-8], dtype=dtype)
    np.testing.assert_array_equal(kernel.relu(x), np.maximum(x, 0))


def test_through_tvm_ffi_alone(kernel):
    module, _ = library_of(kernel)
    assert module.implements_function("relu") and module.implements_function("relu_backward")
    assert not module.implements_function("relu_forward")
    x = draw("numpy", "float32", (5, 3))
    y = np.empty_like(x)
    module.relu(x, y)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    # Tensors of tvm-ffi itself, and functions of a call that come from it.
    out = tvm_ffi.from_dlpack(np.empty_like(x))
    module["relu"](tvm_ffi.from_dlpack(x), out)
    np.testing.assert_array_equal(np.from_dlpack(out), y)


@pytest.mark.parametrize(
    "x, y, error, message",
    [
        (np.ones(3, np.int32), np.ones(3, np.int32), TypeError, "relu: unsupported dtype int32"),
        (np.ones(3, np.float32), np.ones(3, np.float64), TypeError, "the same dtype"),
        (np.ones(3, np.float32), np.ones(4, np.float32), ValueError, "the same shape"),
        (np.ones((3, 4), np.float32).T, np.ones((4, 3), np.float32), ValueError, "must be contiguous"),
    ],
)
def test_bad_arguments_are_refused(kernel, x, y, error, message):
    with pytest.raises(error, match=message):
        kernel._ops.ops.relu(x, y)


def test_wrong_calls_are_told(kernel):
    with pytest.raises(TypeError, match="relu"):
        kernel._ops.ops.relu(1, 2)
    with pytest.raises(TypeError, match="relu"):
        kernel._ops.ops.relu(np.ones(3, np.float32))


if torch is not None:

    @pytest.mark.parametrize("shape", SHAPES)
    def test_backward(kernel, shape):
        x, reference = (draw("torch", "float32", shape).requires_grad_() for _ in range(2))
        grad = draw("torch", "float32", shape) + 0.5
        kernel.relu(x).backward(grad)
        torch.relu(reference).backward(grad)
        assert torch.equal(x.grad, reference.grad)

    def test_backward_of_a_strided_gradient(kernel):
        x, reference = (draw("torch", "float32", (5, 6)).requires_grad_() for _ in range(2))
        (kernel.relu(x.t()[::2]) * 3).t().sum().backward()
        (torch.relu(reference.t()[::2]) * 3).t().sum().backward()
        assert torch.equal(x.grad, reference.grad)

    def test_opcheck(kernel):
        op = getattr(torch.ops, kernel.__name__).relu.default
        torch.library.opcheck(op, (draw("torch", "float32", (3, 4)).requires_grad_(),))

    def test_compiles_without_a_graph_break(kernel):
        x, reference = (draw("torch", "float32", (8, 16)).requires_grad_() for _ in range(2))
        y = torch.compile(lambda t: kernel.relu(t * 2) + 1, backend="aot_eager", fullgraph=True)(x)
        expected = torch.relu(reference * 2) + 1
        y.sum().backward()
        expected.sum().backward()
        assert torch.equal(y, expected) and torch.equal(x.grad, reference.grad)


if jax is not None:

    def test_in_a_compiled_function_of_jax(kernel):
        x = draw("jax", "float32", (8, 16))
        y = jax.jit(lambda x: kernel.relu(x * 2) + 1)(x)
        assert same("jax", y, jax.nn.relu(x * 2) + 1)
