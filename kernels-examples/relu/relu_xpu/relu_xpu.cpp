#include "torch_binding.h"

#include <sycl/sycl.hpp>

#include <ATen/DeviceGuard.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cstdint>

// Torch's C interface has the queue in every build, its C++ interface only in headers that are made for XPU.
extern "C" int32_t aoti_torch_get_current_sycl_queue(void **ret);

// Kernels have names, so that every SYCL compiler can take host and device apart.
template <typename scalar_t> class relu_mask_kernel;

namespace {

// The queue that torch works on just now.
sycl::queue &current_queue() {
  void *queue = nullptr;
  TORCH_CHECK(aoti_torch_get_current_sycl_queue(&queue) == 0, "relu: torch has no queue for XPU");
  return *static_cast<sycl::queue *>(queue);
}

// `kept` where `tested` is positive or a NaN, else zero.
template <typename scalar_t> void mask(const at::Tensor &kept, const at::Tensor &tested, at::Tensor &to) {
  const auto *from = static_cast<const scalar_t *>(kept.const_data_ptr());
  const auto *out = static_cast<const scalar_t *>(tested.const_data_ptr());
  auto *result = static_cast<scalar_t *>(to.mutable_data_ptr());
  current_queue().parallel_for<relu_mask_kernel<scalar_t>>(sycl::range<1>(static_cast<size_t>(to.numel())), [=](sycl::id<1> i) {
    // Asked this way round, a NaN is kept.
    result[i] = out[i] <= static_cast<scalar_t>(0) ? static_cast<scalar_t>(0) : from[i];
  });
}

at::Tensor masked(const at::Tensor &kept, const at::Tensor &tested, const char *op) {
  const at::OptionalDeviceGuard guard(kept.device());
  const at::Tensor source = kept.contiguous();
  const at::Tensor asked = tested.contiguous();
  at::Tensor result = at::empty_like(source, at::MemoryFormat::Contiguous);
  if (result.numel() == 0) {
    return result;
  }
  // The device's types have the same bits as the host's.
  switch (source.scalar_type()) {
  case at::kFloat:
    mask<float>(source, asked, result);
    break;
  case at::kDouble:
    mask<double>(source, asked, result);
    break;
  case at::kHalf:
    mask<sycl::half>(source, asked, result);
    break;
  case at::kBFloat16:
    mask<sycl::ext::oneapi::bfloat16>(source, asked, result);
    break;
  default:
    TORCH_CHECK(false, op, ": unsupported dtype ", source.scalar_type(), ", expected a floating-point tensor");
  }
  return result;
}

} // namespace

at::Tensor relu(const at::Tensor &input) { return masked(input, input, "relu"); }

at::Tensor relu_backward(const at::Tensor &grad_output, const at::Tensor &output) {
  TORCH_CHECK(grad_output.sizes() == output.sizes(), "relu_backward: shapes differ: ", grad_output.sizes(), " and ",
              output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == output.scalar_type(), "relu_backward: dtypes differ: ",
              grad_output.scalar_type(), " and ", output.scalar_type());
  TORCH_CHECK(grad_output.device() == output.device(), "relu_backward: devices differ");
  return masked(grad_output, output, "relu_backward");
}
