#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include "kernel.h"
#include "registration.h"

using torch::stable::Tensor;

static Tensor silu(const Tensor &input) {
  STD_TORCH_CHECK(input.scalar_type() == torch::headeronly::ScalarType::Float, "silu: unsupported dtype");
  const Tensor source = torch::stable::contiguous(input);
  Tensor output = torch::stable::empty_like(source);
  silu_of(static_cast<const float *>(source.const_data_ptr()), static_cast<float *>(output.mutable_data_ptr()), source.numel());
  return output;
}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("silu(Tensor input) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("silu", TORCH_BOX(&silu)); }
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
