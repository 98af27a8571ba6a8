"""The kernel as a target of JAX."""

import jax

from ._ops import jax_ffi_call, jax_register_ffi_target, ops

jax_register_ffi_target("relu", ops.relu, ["args", "rets"], platform="cpu")


def is_one(array) -> bool:
    return isinstance(array, jax.Array)


def relu(input):
    return jax_ffi_call("relu", jax.ShapeDtypeStruct(input.shape, input.dtype))(input)
