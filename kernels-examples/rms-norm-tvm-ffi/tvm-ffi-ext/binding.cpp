#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <algorithm>

#include "rms_norm.h"

namespace {

using rms_norm_device::Rows;
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
constexpr DLDataType kFloat{kDLFloat, 32, 1};

bool is_supported(DLDataType dtype) {
  const bool real = dtype.code == kDLFloat && (dtype.bits == 16 || dtype.bits == 32);
  return dtype.lanes == 1 && (real || (dtype.code == kDLBfloat && dtype.bits == 16));
}

bool is_on_device(DLDevice device) {
#if defined(XPU_KERNEL)
  // Some devices of SYCL work on the memory of the host: the processor is one of them.
  if (device.device_type == kDLCPU) {
    return rms_norm_device::reaches_host();
  }
#endif
  return device.device_type == kDevice;
}

bool same_shape(TensorView a, TensorView b) {
  return std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
}

// One call's checks: each names the argument that is wrong.
struct Call {
  const char *op;
  TensorView input;

  // What every tensor of the call must be.
  void check(TensorView tensor, const char *name, DLDataType dtype) const {
    if (!is_on_device(tensor.device())) {
      TVM_FFI_THROW(ValueError) << op << ": expected `" << name << "` on a " << kDeviceName << " device";
    }
    if (tensor.device().device_id != input.device().device_id) {
      TVM_FFI_THROW(ValueError) << op << ": `" << name << "` must be on the device of `input`";
    }
    if (tensor.dtype() != dtype) {
      TVM_FFI_THROW(TypeError) << op << ": `" << name << "` must be of " << tvm::ffi::DLDataTypeToString(dtype);
    }
    // The strides of a tensor without elements may be anything.
    if (tensor.numel() != 0 && !tensor.IsContiguous()) {
      TVM_FFI_THROW(ValueError) << op << ": `" << name << "` must be contiguous";
    }
  }

  Rows rows() const {
    if (!is_supported(input.dtype())) {
      TVM_FFI_THROW(TypeError) << op << ": unsupported dtype " << tvm::ffi::DLDataTypeToString(input.dtype())
                               << ", expected float32, float16 or bfloat16";
    }
    if (input.ndim() < 1) {
      TVM_FFI_THROW(ValueError) << op << ": `input` must have at least one dimension";
    }
    check(input, "input", input.dtype());
    const int64_t length = input.size(-1);
    return {length == 0 ? 0 : input.numel() / length, length};
  }

  void like_input(TensorView tensor, const char *name) const {
    check(tensor, name, input.dtype());
    if (!same_shape(tensor, input)) {
      TVM_FFI_THROW(ValueError) << op << ": `" << name << "` must have the shape of `input`";
    }
  }

  void like_weight(TensorView tensor, const char *name) const {
    check(tensor, name, input.dtype());
    if (tensor.ndim() != 1 || tensor.size(0) != input.size(-1)) {
      TVM_FFI_THROW(ValueError) << op << ": `" << name << "` must be a vector as long as the last dimension of `input`";
    }
  }

  void like_rstd(TensorView tensor, Rows rows) const {
    check(tensor, "rstd", kFloat);
    if (rows.count != 0 && tensor.numel() != rows.count) {
      TVM_FFI_THROW(ValueError) << op << ": `rstd` must hold one float for each row of `input`";
    }
  }
};

// The results come last, as JAX passes them, and then what is no tensor.
void rms_norm_forward(TensorView input, TensorView weight, TensorView output, TensorView rstd, double eps) {
  const Call call{"rms_norm_forward", input};
  const Rows rows = call.rows();
  call.like_weight(weight, "weight");
  call.like_input(output, "output");
  call.like_rstd(rstd, rows);
  if (rows.count != 0) {
    rms_norm_device::forward(rows, input, weight, output, rstd, static_cast<float>(eps));
  }
}

// Nothing is written where `input` has no element.
void rms_norm_backward(TensorView grad_output, TensorView input, TensorView weight, TensorView rstd, TensorView grad_input,
                       TensorView grad_weight) {
  const Call call{"rms_norm_backward", input};
  const Rows rows = call.rows();
  call.like_input(grad_output, "grad_output");
  call.like_weight(weight, "weight");
  call.like_rstd(rstd, rows);
  call.like_input(grad_input, "grad_input");
  call.like_weight(grad_weight, "grad_weight");
  if (rows.count != 0) {
    rms_norm_device::backward(rows, grad_output, input, weight, rstd, grad_input, grad_weight);
  }
}

} // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(rms_norm_forward, rms_norm_forward)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(rms_norm_backward, rms_norm_backward)
