#pragma once

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <cstdint>

// What the kernels of all devices ask of their arguments.
inline void check_arguments(const torch::stable::Tensor &a, const torch::stable::Tensor &b) {
  using torch::headeronly::ScalarType;
  constexpr int64_t kLongestSum = 131071;
  STD_TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "gemm_int8: a and b must be matrices");
  STD_TORCH_CHECK(a.scalar_type() == ScalarType::Char && b.scalar_type() == ScalarType::Char, "gemm_int8: a and b must be int8");
  STD_TORCH_CHECK(a.size(1) == b.size(0), "gemm_int8: a has ", a.size(1), " columns and b ", b.size(0), " rows");
  STD_TORCH_CHECK(a.size(1) <= kLongestSum, "gemm_int8: sums of more than ", kLongestSum, " products could overflow");
}
