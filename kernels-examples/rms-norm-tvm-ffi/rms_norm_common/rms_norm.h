#pragma once

#include <tvm/ffi/container/tensor.h>

#include <cstdint>

// What each device has. The binding has checked the tensors: contiguous, on one device, `input` of at least one element, all of one dtype
// (float32, float16 or bfloat16) but for `rstd`, which is float32. Sums are made in float32.
namespace rms_norm_device {

using tvm::ffi::TensorView;

// `input` as rows: its last dimension is the length of one.
struct Rows {
  int64_t count;
  int64_t length;
};

// output = input * rstd * weight with rstd = 1 / sqrt(mean(input^2) + eps), a float for each row.
void forward(Rows rows, TensorView input, TensorView weight, TensorView output, TensorView rstd, float eps);

// The gradients with respect to `input` and `weight`.
void backward(Rows rows, TensorView grad_output, TensorView input, TensorView weight, TensorView rstd, TensorView grad_input,
              TensorView grad_weight);

#if defined(XPU_KERNEL)
// Whether the device reads and writes what the host has allocated.
bool reaches_host();
#endif

// The first element.
template <typename scalar_t> scalar_t *data(TensorView tensor) {
  return reinterpret_cast<scalar_t *>(static_cast<char *>(tensor.data_ptr()) + tensor.byte_offset());
}

} // namespace rms_norm_device
