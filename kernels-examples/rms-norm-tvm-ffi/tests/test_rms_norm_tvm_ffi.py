"""`rms-norm-tvm-ffi` as the unchanged `kernels` package loads it from `build/`, with the arrays of every library that is here."""

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
SHAPES = [(1,), (7,), (1, 1), (3, 5), (2, 3, 64), (0, 8), (2, 0, 8), (3, 0), (1, 4097), (257, 33)]
EPS = 1e-6
# A library, and the dtypes that it has.
ARRAYS = [("numpy", name) for name in ("float32", "float16")]
if torch is not None:
    ARRAYS += [("torch", name) for name in ("float32", "float16", "bfloat16")]
if jax is not None:
    ARRAYS += [("jax", name) for name in ("float32", "float16", "bfloat16")]
# One rounding of the result, and for float32 the order of the sums.
TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


@pytest.fixture(scope="module")
def kernel():
    return get_local_kernel(PROJECT, backend="cpu")


def draw(library, dtype, shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    if library == "torch":
        return torch.from_numpy(np.asarray(values)).to(getattr(torch, dtype))
    if library == "jax":
        return jax.numpy.asarray(values, dtype=dtype)
    return np.asarray(values.astype(dtype))


def wide(array):
    """The values as float64 of NumPy."""
    if torch is not None and isinstance(array, torch.Tensor):
        return array.detach().double().numpy()
    return np.asarray(array).astype(np.float64)


def reference(x, weight):
    x, weight = wide(x), wide(weight)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight if x.size else x


def check(kernel, x, weight, dtype):
    y = kernel.rms_norm(x, weight, EPS)
    assert type(y) is type(x) and y.dtype == x.dtype and y.shape == x.shape
    np.testing.assert_allclose(wide(y), reference(x, weight), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("library, dtype", ARRAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(kernel, library, dtype, shape):
    check(kernel, draw(library, dtype, shape), draw(library, dtype, shape[-1:], seed=1), dtype)


@pytest.mark.parametrize("library, dtype", [array for array in ARRAYS if array[0] != "jax"])
def test_not_contiguous(kernel, library, dtype):
    base = draw(library, dtype, (6, 8, 4))
    weight = draw(library, dtype, (16,), seed=1)[::2]
    for view in [base[::2, :, 1], base.T[1] if library == "numpy" else base.permute(2, 1, 0)[1]]:
        check(kernel, view, weight[: view.shape[-1]], dtype)


def test_half_types_round_as_numpy_does(kernel):
    """Every finite half goes through float32 and back: with a weight of one and rows of one element the sign is what is left."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(np.float16)
    x = np.ascontiguousarray(x[np.isfinite(x)])[:, None]
    scale = np.array([0.333], np.float16)
    for eps in (0.0, 1.0):
        y = kernel.rms_norm(x, scale, eps)
        with np.errstate(all="ignore"):
            r = (1 / np.sqrt(x.astype(np.float32) ** 2 + np.float32(eps))).astype(np.float32)
            wanted = (x.astype(np.float32) * r * scale.astype(np.float32)).astype(np.float16)
        np.testing.assert_array_equal(y, wanted)


def test_through_tvm_ffi_alone(kernel):
    (path,) = Path(kernel.__file__).parent.glob("*.so")
    module = tvm_ffi.load_module(str(path))
    x, weight = draw("numpy", "float32", (3, 8)), draw("numpy", "float32", (8,), seed=1)
    y, rstd = np.empty_like(x), np.empty(3, np.float32)
    module.rms_norm_forward(x, weight, y, rstd, EPS)
    np.testing.assert_allclose(y, reference(x, weight), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(rstd, 1 / np.sqrt((wide(x) ** 2).mean(-1) + EPS), rtol=1e-5)


ONES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "x, weight, output, rstd, error, message",
    [
        (np.ones((2, 3)), np.ones(3), np.ones((2, 3)), np.ones(2, np.float32), TypeError, "unsupported dtype float64"),
        (ONES[0, 0], ONES[0, :1], ONES[0, 0], ONES[0, 0], ValueError, "at least one dimension"),
        (ONES, np.ones(4, np.float32), ONES, np.ones(2, np.float32), ValueError, "`weight` must be a vector as long"),
        (ONES, np.ones(3, np.float16), ONES, np.ones(2, np.float32), TypeError, "`weight` must be of float32"),
        (ONES, ONES[0], ONES[:1], np.ones(2, np.float32), ValueError, "`output` must have the shape"),
        (ONES, ONES[0], np.ones((3, 2), np.float32).T, np.ones(2, np.float32), ValueError, "`output` must be contiguous"),
        (ONES, ONES[0], ONES, np.ones(3, np.float32), ValueError, "`rstd` must hold one float"),
        (ONES, ONES[0], ONES, np.ones(2), TypeError, "`rstd` must be of float32"),
    ],
)
def test_bad_arguments_are_refused(kernel, x, weight, output, rstd, error, message):
    with pytest.raises(error, match=message):
        kernel._ops.ops.rms_norm_forward(np.asarray(x), weight, np.array(output), np.array(rstd), EPS)


if torch is not None:

    def arguments(shape, dtype):
        x = draw("torch", dtype, shape).requires_grad_()
        weight = (draw("torch", dtype, shape[-1:], seed=1) * 0.1 + 1).detach().requires_grad_()
        return x, weight

    @pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
    @pytest.mark.parametrize("shape", [(7,), (3, 5), (0, 8), (257, 33)])
    def test_backward(kernel, shape, dtype):
        (x, weight), (wanted_x, wanted_weight) = arguments(shape, dtype), arguments(shape, dtype)
        grad = draw("torch", dtype, shape, seed=2)
        kernel.rms_norm(x, weight, EPS).backward(grad)
        wide_x = wanted_x.double()
        expected = wide_x * torch.rsqrt(wide_x.pow(2).mean(-1, keepdim=True) + EPS) * wanted_weight.double()
        expected.backward(grad.double())
        tolerance = TOLERANCE[dtype]
        torch.testing.assert_close(x.grad, wanted_x.grad, rtol=tolerance, atol=tolerance)
        rows = max(1, grad.numel() // shape[-1])
        torch.testing.assert_close(weight.grad, wanted_weight.grad, rtol=tolerance, atol=tolerance * rows**0.5)


if jax is not None:

    def test_in_a_compiled_function_of_jax(kernel):
        x, weight = draw("jax", "float32", (8, 16)), draw("jax", "float32", (16,), seed=1)
        y = jax.jit(lambda x, weight: kernel.rms_norm(x * 2, weight, EPS))(x, weight)
        np.testing.assert_allclose(wide(y), reference(x * 2, weight), rtol=2e-5, atol=2e-5)
