#include "arguments.h"
#include "torch_binding.h"

#include <sycl/sycl.hpp>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <cstdint>

// Torch's header for it includes others that the stable ABI hides.
extern "C" AOTITorchError aoti_torch_get_current_sycl_queue(void **ret);

// Kernels have names, so that every SYCL compiler can take host and device apart.
template <typename scalar_t> class rms_norm_forward_kernel;
template <typename scalar_t> class rms_norm_grad_input_kernel;
template <typename scalar_t> class rms_norm_grad_weight_kernel;

namespace {

using namespace rms_norm_arguments;
using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using torch::stable::accelerator::DeviceGuard;

constexpr int64_t kGroup = 256;

// Calls `body` with a value of the device's type for elements of `dtype`: the same bits as the host's.
template <typename Body> void with_device_type(ScalarType dtype, const char *op, Body body) {
  switch (dtype) {
  case ScalarType::Float:
    return body(float{});
  case ScalarType::Half:
    return body(sycl::half{});
  case ScalarType::BFloat16:
    return body(sycl::ext::oneapi::bfloat16{});
  default:
    STD_TORCH_CHECK(false, op, ": unsupported dtype, expected float32, float16 or bfloat16");
  }
}

// The queue that torch works on just now.
sycl::queue &current_queue() {
  void *queue = nullptr;
  STD_TORCH_CHECK(aoti_torch_get_current_sycl_queue(&queue) == AOTI_TORCH_SUCCESS, "rms_norm: torch has no queue for XPU");
  return *static_cast<sycl::queue *>(queue);
}

void check_device_arguments(const Tensor &input, const Tensor &weight, const char *op) {
  check_arguments(input, weight, op);
  STD_TORCH_CHECK(weight.get_device_index() == input.get_device_index(), op, ": weight and input must be on the same device");
}

sycl::nd_range<1> groups(int64_t count) { return {static_cast<size_t>(count * kGroup), static_cast<size_t>(kGroup)}; }

template <typename scalar_t> float value(scalar_t x) { return static_cast<float>(x); }

} // namespace

// A group for each row.
std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor &input, const Tensor &weight, double eps) {
  check_device_arguments(input, weight, "rms_norm_forward");
  const DeviceGuard guard(input.get_device_index());
  const Tensor source = torch::stable::contiguous(input);
  const Tensor scale = torch::stable::contiguous(weight);
  const IntHeaderOnlyArrayRef sizes = source.sizes();
  Tensor output = torch::stable::new_empty(source, sizes);
  Tensor rstd = torch::stable::new_empty(source, IntHeaderOnlyArrayRef(sizes.data(), sizes.size() - 1), ScalarType::Float);
  const Rows rows = rows_of(source);
  if (rows.count == 0) {
    return {output, torch::stable::zero_(rstd)};
  }
  with_device_type(source.scalar_type(), "rms_norm_forward", [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *x = static_cast<const scalar_t *>(source.const_data_ptr());
    const auto *w = static_cast<const scalar_t *>(scale.const_data_ptr());
    auto *y = static_cast<scalar_t *>(output.mutable_data_ptr());
    auto *inverse = static_cast<float *>(rstd.mutable_data_ptr());
    const int64_t length = rows.length;
    const float epsilon = static_cast<float>(eps);
    current_queue().parallel_for<rms_norm_forward_kernel<scalar_t>>(groups(rows.count), [=](sycl::nd_item<1> item) {
      const int64_t row = static_cast<int64_t>(item.get_group(0));
      const int64_t first = row * length;
      const int64_t lane = static_cast<int64_t>(item.get_local_id(0));
      float squares = 0.0f;
      for (int64_t i = lane; i < length; i += kGroup) {
        squares += value(x[first + i]) * value(x[first + i]);
      }
      const float sum = sycl::reduce_over_group(item.get_group(), squares, sycl::plus<float>());
      const float r = 1.0f / sycl::sqrt(sum / static_cast<float>(length) + epsilon);
      if (lane == 0) {
        inverse[row] = r;
      }
      for (int64_t i = lane; i < length; i += kGroup) {
        y[first + i] = static_cast<scalar_t>(value(x[first + i]) * r * value(w[i]));
      }
    });
  });
  return {output, rstd};
}

// d input[i] = rstd * (g[i] * w[i] - input[i] * rstd^2 * mean(g * w * input)), a group for each row;
// d weight[i] = sum over rows of g[i] * input[i] * rstd, an item for each column, its sum always in the same order.
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor &grad_output, const Tensor &input, const Tensor &weight,
                                             const Tensor &rstd) {
  check_device_arguments(input, weight, "rms_norm_backward");
  STD_TORCH_CHECK(same_sizes(grad_output, input), "rms_norm_backward: grad_output and input must have the same shape");
  STD_TORCH_CHECK(grad_output.scalar_type() == input.scalar_type(),
                  "rms_norm_backward: grad_output and input must have the same dtype");
  const DeviceGuard guard(input.get_device_index());
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
  with_device_type(source.scalar_type(), "rms_norm_backward", [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *g = static_cast<const scalar_t *>(grad.const_data_ptr());
    const auto *x = static_cast<const scalar_t *>(source.const_data_ptr());
    const auto *w = static_cast<const scalar_t *>(scale.const_data_ptr());
    const auto *inverse = static_cast<const float *>(saved.const_data_ptr());
    auto *dx = static_cast<scalar_t *>(grad_input.mutable_data_ptr());
    auto *dw = static_cast<scalar_t *>(grad_weight.mutable_data_ptr());
    const int64_t count = rows.count;
    const int64_t length = rows.length;
    sycl::queue &queue = current_queue();
    queue.parallel_for<rms_norm_grad_input_kernel<scalar_t>>(groups(count), [=](sycl::nd_item<1> item) {
      const int64_t row = static_cast<int64_t>(item.get_group(0));
      const int64_t first = row * length;
      const int64_t lane = static_cast<int64_t>(item.get_local_id(0));
      float dot = 0.0f;
      for (int64_t i = lane; i < length; i += kGroup) {
        dot += value(g[first + i]) * value(w[i]) * value(x[first + i]);
      }
      const float r = inverse[row];
      const float shared = r * r * sycl::reduce_over_group(item.get_group(), dot, sycl::plus<float>()) / static_cast<float>(length);
      for (int64_t i = lane; i < length; i += kGroup) {
        dx[first + i] = static_cast<scalar_t>(r * (value(g[first + i]) * value(w[i]) - value(x[first + i]) * shared));
      }
    });
    queue.parallel_for<rms_norm_grad_weight_kernel<scalar_t>>(groups((length + kGroup - 1) / kGroup), [=](sycl::nd_item<1> item) {
      const int64_t column = static_cast<int64_t>(item.get_global_id(0));
      if (column >= length) {
        return;
      }
      float sum = 0.0f;
      for (int64_t row = 0; row < count; ++row) {
        sum += value(g[row * length + column]) * value(x[row * length + column]) * inverse[row];
      }
      dw[column] = static_cast<scalar_t>(sum);
    });
  });
  return {grad_input, grad_weight};
}
