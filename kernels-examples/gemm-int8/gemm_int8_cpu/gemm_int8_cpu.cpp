#include "arguments.h"
#include "torch_binding.h"

#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace {

// Multiplications that one thread should at least get.
constexpr int64_t kGrain = 1 << 18;

} // namespace

Tensor gemm_int8(const Tensor &a, const Tensor &b) {
  check_arguments(a, b);
  const Tensor left = torch::stable::contiguous(a);
  const Tensor right = torch::stable::contiguous(b);
  const int64_t m = left.size(0);
  const int64_t k = left.size(1);
  const int64_t n = right.size(1);
  const std::array<int64_t, 2> sizes = {m, n};
  Tensor output = torch::stable::new_empty(left, torch::headeronly::IntHeaderOnlyArrayRef(sizes.data(), sizes.size()), ScalarType::Int);
  if (m == 0 || n == 0) {
    return output;
  }
  const auto *x = static_cast<const int8_t *>(left.const_data_ptr());
  const auto *y = static_cast<const int8_t *>(right.const_data_ptr());
  auto *z = static_cast<int32_t *>(output.mutable_data_ptr());
  const int64_t rows = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, k * n));
  torch::stable::parallel_for(0, m, rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int32_t *to = z + row * n;
      std::fill(to, to + n, 0);
      for (int64_t i = 0; i < k; ++i) {
        const int32_t factor = x[row * k + i];
        const int8_t *from = y + i * n;
        for (int64_t column = 0; column < n; ++column) {
          to[column] += factor * from[column];
        }
      }
    }
  });
  return output;
}
