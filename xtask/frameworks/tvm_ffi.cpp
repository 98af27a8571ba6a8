#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include "kernel.h"

static void silu(tvm::ffi::TensorView input, tvm::ffi::TensorView output) {
  for (tvm::ffi::TensorView tensor : {input, output}) {
    if (tensor.device().device_type != kDLCPU || tensor.dtype() != DLDataType{kDLFloat, 32, 1} || !tensor.IsContiguous()) {
      TVM_FFI_THROW(TypeError) << "silu: unsupported tensor of " << tvm::ffi::DLDataTypeToString(tensor.dtype());
    }
  }
  if (input.numel() != output.numel()) {
    TVM_FFI_THROW(ValueError) << "silu: the tensors must have the same shape";
  }
  silu_of(static_cast<const float *>(input.data_ptr()), static_cast<float *>(output.data_ptr()), input.numel());
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(silu, silu)
