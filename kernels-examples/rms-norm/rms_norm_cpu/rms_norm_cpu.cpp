#include "arguments.h"
#include "torch_binding.h"

#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Exception.h>
#include <torch/headeronly/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

using namespace rms_norm_arguments;
using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Elements that one thread should at least get; below that a thread costs more than it saves.
constexpr int64_t kGrain = 32768;

int64_t rows_at_once(Rows rows) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows.length)); }

} // namespace

std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor &input, const Tensor &weight, double eps) {
  check_arguments(input, weight, "rms_norm_forward");
  const Tensor source = torch::stable::contiguous(input);
  const Tensor scale = torch::stable::contiguous(weight);
  const IntHeaderOnlyArrayRef sizes = source.sizes();
  Tensor output = torch::stable::new_empty(source, sizes);
  Tensor rstd = torch::stable::new_empty(source, IntHeaderOnlyArrayRef(sizes.data(), sizes.size() - 1), ScalarType::Float);
  const Rows rows = rows_of(source);
  if (rows.count == 0) {
    return {output, torch::stable::zero_(rstd)};
  }

  with_scalar_type(source.scalar_type(), "rms_norm_forward", [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *from = static_cast<const scalar_t *>(source.const_data_ptr());
    const auto *factor = static_cast<const scalar_t *>(scale.const_data_ptr());
    auto *to = static_cast<scalar_t *>(output.mutable_data_ptr());
    auto *inverse = static_cast<float *>(rstd.mutable_data_ptr());
    torch::stable::parallel_for(0, rows.count, rows_at_once(rows), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const scalar_t *x = from + row * rows.length;
        scalar_t *y = to + row * rows.length;
        float squares = 0.0f;
        for (int64_t i = 0; i < rows.length; ++i) {
          const float value = static_cast<float>(x[i]);
          squares += value * value;
        }
        const float r = 1.0f / std::sqrt(squares / static_cast<float>(rows.length) + static_cast<float>(eps));
        inverse[row] = r;
        for (int64_t i = 0; i < rows.length; ++i) {
          y[i] = static_cast<scalar_t>(static_cast<float>(x[i]) * r * static_cast<float>(factor[i]));
        }
      }
    });
  });
  return {output, rstd};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor &grad_output, const Tensor &input, const Tensor &weight,
                                             const Tensor &rstd) {
  check_arguments(input, weight, "rms_norm_backward");
  STD_TORCH_CHECK(same_sizes(grad_output, input), "rms_norm_backward: grad_output and input must have the same shape");
  STD_TORCH_CHECK(grad_output.scalar_type() == input.scalar_type(),
                  "rms_norm_backward: grad_output and input must have the same dtype");
  const Tensor grad = torch::stable::contiguous(grad_output);
  const Tensor source = torch::stable::contiguous(input);
  const Tensor scale = torch::stable::contiguous(weight);
  const Tensor saved = torch::stable::contiguous(rstd);
  const Rows rows = rows_of(source);
  STD_TORCH_CHECK(saved.scalar_type() == ScalarType::Float && (rows.count == 0 || saved.numel() == rows.count),
                  "rms_norm_backward: rstd must hold one float for each row of input");
  Tensor grad_input = torch::stable::new_empty(source, source.sizes());
  Tensor grad_weight = torch::stable::new_empty(scale, scale.sizes());
  if (rows.count == 0) {
    return {grad_input, torch::stable::zero_(grad_weight)};
  }

  with_scalar_type(source.scalar_type(), "rms_norm_backward", [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *g = static_cast<const scalar_t *>(grad.const_data_ptr());
    const auto *x = static_cast<const scalar_t *>(source.const_data_ptr());
    const auto *w = static_cast<const scalar_t *>(scale.const_data_ptr());
    const auto *r = static_cast<const float *>(saved.const_data_ptr());
    auto *dx = static_cast<scalar_t *>(grad_input.mutable_data_ptr());
    auto *dw = static_cast<scalar_t *>(grad_weight.mutable_data_ptr());

    // d input[i] = rstd * (g[i] * w[i] - input[i] * rstd^2 * mean(g * w * input))
    torch::stable::parallel_for(0, rows.count, rows_at_once(rows), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * rows.length;
        float dot = 0.0f;
        for (int64_t i = 0; i < rows.length; ++i) {
          dot += static_cast<float>(g[first + i]) * static_cast<float>(w[i]) * static_cast<float>(x[first + i]);
        }
        const float shared = r[row] * r[row] * dot / static_cast<float>(rows.length);
        for (int64_t i = 0; i < rows.length; ++i) {
          const float direct = static_cast<float>(g[first + i]) * static_cast<float>(w[i]);
          dx[first + i] = static_cast<scalar_t>(r[row] * (direct - static_cast<float>(x[first + i]) * shared));
        }
      }
    });

    // d weight[i] = sum over rows of g[i] * input[i] * rstd. Threads share columns, so the order of the sum is fixed.
    const int64_t columns = std::max<int64_t>(1, kGrain / rows.count);
    torch::stable::parallel_for(0, rows.length, columns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float sum = 0.0f;
        for (int64_t row = 0; row < rows.count; ++row) {
          const int64_t at = row * rows.length + i;
          sum += static_cast<float>(g[at]) * static_cast<float>(x[at]) * r[row];
        }
        dw[i] = static_cast<scalar_t>(sum);
      }
    });
  });
  return {grad_input, grad_weight};
}
