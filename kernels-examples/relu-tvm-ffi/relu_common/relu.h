#pragma once

#include <tvm/ffi/container/tensor.h>

// What each device has. The tensors agree in shape, dtype and device, and are contiguous; the dtype is one of float32, float64, float16
// and bfloat16.
namespace relu_device {

using tvm::ffi::TensorView;

// max(input, 0) for each element. A NaN stays a NaN.
void forward(TensorView input, TensorView output);

// The gradient with respect to the input, given the gradient of the output and the output itself.
void backward(TensorView grad_output, TensorView output, TensorView grad_input);

#if defined(XPU_KERNEL)
// Whether the device reads and writes what the host has allocated.
bool reaches_host();
#endif

} // namespace relu_device
