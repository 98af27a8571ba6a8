#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "kernel.h"
#include "registration.h"

static at::Tensor silu(const at::Tensor &input) {
  TORCH_CHECK(input.scalar_type() == at::kFloat, "silu: unsupported dtype ", input.scalar_type());
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source);
  silu_of(source.const_data_ptr<float>(), output.mutable_data_ptr<float>(), source.numel());
  return output;
}

TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("silu(Tensor input) -> Tensor"); }
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("silu", &silu); }
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
