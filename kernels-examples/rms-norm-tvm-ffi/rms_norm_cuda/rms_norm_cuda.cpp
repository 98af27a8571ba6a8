#include "rms_norm.h"
#include "rms_norm_kernel.h"
#include "runtime.h"

#include <tvm/ffi/extra/c_env_api.h>

namespace {

using namespace rms_norm_device;
using rms_norm_kernel::Shape;
using rms_norm_kernel::Type;

Type type_of(DLDataType dtype) {
  if (dtype.code == kDLBfloat) {
    return Type::kBFloat16;
  }
  return dtype.bits == 32 ? Type::kFloat : Type::kHalf;
}

Shape shape_of(Rows rows, const char *op) {
  if (rows.count > INT32_MAX) {
    TVM_FFI_THROW(ValueError) << op << ": `input` has more rows than a launch has blocks";
  }
  return {rows.count, rows.length};
}

// The stream that the caller works on just now.
void *current_stream(DLDevice device) { return TVMFFIEnvGetStream(device.device_type, device.device_id); }

} // namespace

namespace rms_norm_device {

void forward(Rows rows, TensorView input, TensorView weight, TensorView output, TensorView rstd, float eps) {
  const Shape shape = shape_of(rows, "rms_norm_forward");
  const DeviceGuard guard(input.device().device_id);
  const rms_norm_kernel::Forward tensors{data<void>(input), data<void>(weight), data<void>(output), data<float>(rstd), eps};
  check(rms_norm_kernel::forward(type_of(input.dtype()), shape, tensors, current_stream(input.device())));
}

void backward(Rows rows, TensorView grad_output, TensorView input, TensorView weight, TensorView rstd, TensorView grad_input,
              TensorView grad_weight) {
  const Shape shape = shape_of(rows, "rms_norm_backward");
  const DeviceGuard guard(input.device().device_id);
  const rms_norm_kernel::Backward tensors{data<void>(grad_output), data<void>(input),      data<void>(weight),
                                          data<float>(rstd),       data<void>(grad_input), data<void>(grad_weight)};
  check(rms_norm_kernel::backward(type_of(input.dtype()), shape, tensors, current_stream(input.device())));
}

} // namespace rms_norm_device
