#pragma once

#include <torch/csrc/stable/tensor.h>

// The product of two matrices of 8-bit integers, with sums in 32 bits: `a` is [m, k] and `b` is [k, n], both int8; the result is
// [m, n] in int32. `k` is at most 131071: more could overflow.
torch::stable::Tensor gemm_int8(const torch::stable::Tensor &a, const torch::stable::Tensor &b);
