#include "torch_binding.h"

#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <cmath>
#include <cstdint>

using torch::stable::Tensor;

Tensor soft_cap(const Tensor &input, double cap) {
  STD_TORCH_CHECK(input.scalar_type() == torch::headeronly::ScalarType::Float, "soft_cap: expected a float32 tensor");
  STD_TORCH_CHECK(cap > 0, "soft_cap: cap must be positive, got ", cap);
  const Tensor source = torch::stable::contiguous(input);
  Tensor output = torch::stable::new_empty(source, source.sizes());
  const auto *from = static_cast<const float *>(source.const_data_ptr());
  auto *to = static_cast<float *>(output.mutable_data_ptr());
  const float limit = static_cast<float>(cap);
  const int64_t count = source.numel();
  for (int64_t i = 0; i < count; ++i) {
    to[i] = limit * std::tanh(from[i] / limit);
  }
  return output;
}
