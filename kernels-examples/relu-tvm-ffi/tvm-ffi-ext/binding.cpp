#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <algorithm>

#include "relu.h"

namespace {

using tvm::ffi::TensorView;

#if defined(CUDA_KERNEL)
constexpr DLDeviceType kDevice = kDLCUDA;
constexpr const char *kDeviceName = "CUDA";
#elif defined(ROCM_KERNEL)
constexpr DLDeviceType kDevice = kDLROCM;
constexpr const char *kDeviceName = "ROCm";
#elif defined(XPU_KERNEL)
constexpr DLDeviceType kDevice = kDLOneAPI;
constexpr const char *kDeviceName = "SYCL";
#else
constexpr DLDeviceType kDevice = kDLCPU;
constexpr const char *kDeviceName = "CPU";
#endif

bool is_supported(DLDataType dtype) {
  const bool real = dtype.code == kDLFloat && (dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64);
  return dtype.lanes == 1 && (real || (dtype.code == kDLBfloat && dtype.bits == 16));
}

bool is_on_device(DLDevice device) {
#if defined(XPU_KERNEL)
  // Some devices of SYCL work on the memory of the host: the processor is one of them.
  if (device.device_type == kDLCPU) {
    return relu_device::reaches_host();
  }
#endif
  return device.device_type == kDevice;
}

bool same_shape(TensorView a, TensorView b) {
  return std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
}

// Refuses what the devices do not take. `tensor` is another one that goes with `first`.
void check(TensorView first, TensorView tensor, const char *op) {
  if (!is_on_device(tensor.device())) {
    TVM_FFI_THROW(ValueError) << op << ": expected tensors on a " << kDeviceName << " device";
  }
  if (!is_supported(tensor.dtype())) {
    TVM_FFI_THROW(TypeError) << op << ": unsupported dtype " << tvm::ffi::DLDataTypeToString(tensor.dtype())
                             << ", expected float32, float64, float16 or bfloat16";
  }
  if (tensor.dtype() != first.dtype()) {
    TVM_FFI_THROW(TypeError) << op << ": the tensors must have the same dtype";
  }
  if (tensor.device().device_id != first.device().device_id) {
    TVM_FFI_THROW(ValueError) << op << ": the tensors must be on the same device";
  }
  if (!same_shape(first, tensor)) {
    TVM_FFI_THROW(ValueError) << op << ": the tensors must have the same shape";
  }
  // The strides of a tensor without elements may be anything.
  if (tensor.numel() != 0 && !tensor.IsContiguous()) {
    TVM_FFI_THROW(ValueError) << op << ": the tensors must be contiguous";
  }
}

// The results come last, as JAX passes them.
void relu(TensorView input, TensorView output) {
  check(input, input, "relu");
  check(input, output, "relu");
  relu_device::forward(input, output);
}

void relu_backward(TensorView grad_output, TensorView output, TensorView grad_input) {
  for (TensorView tensor : {grad_output, output, grad_input}) {
    check(grad_output, tensor, "relu_backward");
  }
  relu_device::backward(grad_output, output, grad_input);
}

} // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu, relu)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu_backward, relu_backward)
