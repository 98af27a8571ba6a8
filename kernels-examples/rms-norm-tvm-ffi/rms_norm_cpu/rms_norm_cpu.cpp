#include "half.h"
#include "rms_norm.h"

#include <cmath>

namespace {

using namespace rms_norm_device;

// Calls `body` with a value of the type that holds elements of `tensor`.
template <typename Body> void with_scalar_type(TensorView tensor, Body body) {
  if (tensor.dtype().code == kDLBfloat) {
    return body(half_types::BFloat16{});
  }
  return tensor.dtype().bits == 16 ? body(half_types::Half{}) : body(float{});
}

} // namespace

namespace rms_norm_device {

void forward(Rows rows, TensorView input, TensorView weight, TensorView output, TensorView rstd, float eps) {
  with_scalar_type(input, [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *factor = data<const scalar_t>(weight);
    auto *inverse = data<float>(rstd);
    for (int64_t row = 0; row < rows.count; ++row) {
      const scalar_t *x = data<const scalar_t>(input) + row * rows.length;
      scalar_t *y = data<scalar_t>(output) + row * rows.length;
      float squares = 0.0f;
      for (int64_t i = 0; i < rows.length; ++i) {
        const float value = static_cast<float>(x[i]);
        squares += value * value;
      }
      const float r = 1.0f / std::sqrt(squares / static_cast<float>(rows.length) + eps);
      inverse[row] = r;
      for (int64_t i = 0; i < rows.length; ++i) {
        y[i] = static_cast<scalar_t>(static_cast<float>(x[i]) * r * static_cast<float>(factor[i]));
      }
    }
  });
}

// d input[i] = rstd * (g[i] * w[i] - input[i] * rstd^2 * mean(g * w * input)); d weight[i] = sum over rows of g[i] * input[i] * rstd.
void backward(Rows rows, TensorView grad_output, TensorView input, TensorView weight, TensorView rstd, TensorView grad_input,
              TensorView grad_weight) {
  with_scalar_type(input, [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *g = data<const scalar_t>(grad_output);
    const auto *x = data<const scalar_t>(input);
    const auto *w = data<const scalar_t>(weight);
    const auto *r = data<const float>(rstd);
    auto *dx = data<scalar_t>(grad_input);
    auto *dw = data<scalar_t>(grad_weight);
    for (int64_t row = 0; row < rows.count; ++row) {
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
    for (int64_t i = 0; i < rows.length; ++i) {
      float sum = 0.0f;
      for (int64_t row = 0; row < rows.count; ++row) {
        const int64_t at = row * rows.length + i;
        sum += static_cast<float>(g[at]) * static_cast<float>(x[at]) * r[row];
      }
      dw[i] = static_cast<scalar_t>(sum);
    }
  });
}

} // namespace rms_norm_device
