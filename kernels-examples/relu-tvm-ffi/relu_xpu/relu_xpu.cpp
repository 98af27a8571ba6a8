#include "relu.h"

#include <sycl/sycl.hpp>

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>

// Kernels have names, so that every SYCL compiler can take host and device apart.
template <typename scalar_t> class relu_mask_kernel;

namespace {

using tvm::ffi::TensorView;

// A queue of this library's own, for callers who have none. It is never destroyed: at the end of the process its runtime may be gone.
sycl::queue &own_queue() {
  static auto *queue = new sycl::queue(sycl::property::queue::in_order());
  return *queue;
}

// What the caller works with just now; none for a tensor of the host.
sycl::queue *queue_of(DLDevice device) {
  if (device.device_type != kDLOneAPI) {
    return nullptr;
  }
  return static_cast<sycl::queue *>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}

template <typename scalar_t> scalar_t *data(TensorView tensor) {
  return reinterpret_cast<scalar_t *>(static_cast<char *>(tensor.data_ptr()) + tensor.byte_offset());
}

// `kept` where `tested` is positive or a NaN, else zero.
template <typename scalar_t> void mask(sycl::queue &queue, TensorView kept, TensorView tested, TensorView to) {
  const auto *from = data<const scalar_t>(kept);
  const auto *out = data<const scalar_t>(tested);
  auto *result = data<scalar_t>(to);
  queue.parallel_for<relu_mask_kernel<scalar_t>>(sycl::range<1>(static_cast<size_t>(to.numel())), [=](sycl::id<1> i) {
    // Asked this way round, a NaN is kept.
    result[i] = out[i] <= static_cast<scalar_t>(0) ? static_cast<scalar_t>(0) : from[i];
  });
}

void mask_all(TensorView kept, TensorView tested, TensorView to) {
  if (to.numel() == 0) {
    return;
  }
  sycl::queue *caller = queue_of(to.device());
  sycl::queue &queue = caller != nullptr ? *caller : own_queue();
  if (to.dtype().code == kDLBfloat) {
    mask<sycl::ext::oneapi::bfloat16>(queue, kept, tested, to);
  } else if (to.dtype().bits == 16) {
    mask<sycl::half>(queue, kept, tested, to);
  } else if (to.dtype().bits == 32) {
    mask<float>(queue, kept, tested, to);
  } else if (queue.get_device().has(sycl::aspect::fp64)) {
    mask<double>(queue, kept, tested, to);
  } else {
    TVM_FFI_THROW(TypeError) << "relu: the device has no float64";
  }
  // Nobody else could wait for what is done on a queue that nobody else knows.
  if (caller == nullptr) {
    queue.wait_and_throw();
  }
}

} // namespace

namespace relu_device {

bool reaches_host() { return own_queue().get_device().has(sycl::aspect::usm_system_allocations); }

void forward(TensorView input, TensorView output) { mask_all(input, input, output); }

void backward(TensorView grad_output, TensorView output, TensorView grad_input) { mask_all(grad_output, output, grad_input); }

} // namespace relu_device
