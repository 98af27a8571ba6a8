#include "relu.h"
#include "relu_kernel.h"
#include "runtime.h"

#include <tvm/ffi/extra/c_env_api.h>

namespace {

using relu_kernel::Type;
using tvm::ffi::TensorView;

Type type_of(DLDataType dtype) {
  if (dtype.code == kDLBfloat) {
    return Type::kBFloat16;
  }
  return dtype.bits == 64 ? Type::kDouble : dtype.bits == 32 ? Type::kFloat : Type::kHalf;
}

char *data(TensorView tensor) { return static_cast<char *>(tensor.data_ptr()) + tensor.byte_offset(); }

void mask(TensorView kept, TensorView tested, TensorView to) {
  const int64_t count = to.numel();
  if (count == 0) {
    return;
  }
  const DLDevice device = to.device();
  const DeviceGuard guard(device.device_id);
  // The stream that the caller works on just now.
  void *stream = TVMFFIEnvGetStream(device.device_type, device.device_id);
  check(relu_kernel::mask(type_of(to.dtype()), data(kept), data(tested), data(to), count, stream));
}

} // namespace

namespace relu_device {

void forward(TensorView input, TensorView output) { mask(input, input, output); }

void backward(TensorView grad_output, TensorView output, TensorView grad_input) { mask(grad_output, output, grad_input); }

} // namespace relu_device
