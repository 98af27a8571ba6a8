#pragma once

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Exception.h>
#include <torch/headeronly/util/Half.h>

#include <algorithm>
#include <cstdint>

// What the kernels of all devices ask of their arguments.
namespace rms_norm_arguments {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Calls `body` with a value of the C++ type that holds elements of `dtype`. All sums are made in float.
template <typename Body> void with_scalar_type(ScalarType dtype, const char *op, Body body) {
  switch (dtype) {
  case ScalarType::Float:
    return body(float{});
  case ScalarType::Half:
    return body(torch::headeronly::Half{});
  case ScalarType::BFloat16:
    return body(torch::headeronly::BFloat16{});
  default:
    STD_TORCH_CHECK(false, op, ": unsupported dtype, expected float32, float16 or bfloat16");
  }
}

struct Rows {
  int64_t count;
  int64_t length;
};

inline Rows rows_of(const Tensor &input) {
  const int64_t length = input.size(input.dim() - 1);
  return {length == 0 ? 0 : input.numel() / length, length};
}

inline void check_arguments(const Tensor &input, const Tensor &weight, const char *op) {
  STD_TORCH_CHECK(input.dim() >= 1, op, ": input must have at least one dimension");
  STD_TORCH_CHECK(weight.dim() == 1 && weight.size(0) == input.size(input.dim() - 1), op,
                  ": weight must be a vector as long as the last dimension of input");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type(), op, ": weight and input must have the same dtype");
}

inline bool same_sizes(const Tensor &a, const Tensor &b) {
  const auto left = a.sizes();
  const auto right = b.sizes();
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

} // namespace rms_norm_arguments
