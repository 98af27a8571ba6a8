#include <torch/library.h>

#include "registration.h"
#include "torch_binding.h"

TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("relu(Tensor input) -> Tensor");
  ops.def("relu_backward(Tensor grad_output, Tensor output) -> Tensor");
}

// A block of its own for each device: a build for one backend never names another's functions.
#if defined(CPU_KERNEL)
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
  ops.impl("relu", &relu);
  ops.impl("relu_backward", &relu_backward);
}
#endif

// Torch calls AMD's devices CUDA too.
#if defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
  ops.impl("relu", &relu);
  ops.impl("relu_backward", &relu_backward);
}
#endif

// The device that torch-npu adds to torch is torch's private one.
#if defined(CANN_KERNEL)
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, PrivateUse1, ops) {
  ops.impl("relu", &relu);
  ops.impl("relu_backward", &relu_backward);
}
#endif

#if defined(XPU_KERNEL)
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, XPU, ops) {
  ops.impl("relu", &relu);
  ops.impl("relu_backward", &relu_backward);
}
#endif

#if defined(METAL_KERNEL)
TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, MPS, ops) {
  ops.impl("relu", &relu);
  ops.impl("relu_backward", &relu_backward);
}
#endif

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
