#include <torch/csrc/stable/library.h>

#include "registration.h"
#include "torch_binding.h"

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("rms_norm_forward(Tensor input, Tensor weight, float eps) -> (Tensor output, Tensor rstd)");
  ops.def("rms_norm_backward(Tensor grad_output, Tensor input, Tensor weight, Tensor rstd)"
          " -> (Tensor grad_input, Tensor grad_weight)");
}

#if defined(CPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
  ops.impl("rms_norm_forward", TORCH_BOX(&rms_norm_forward));
  ops.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
#endif

// To torch, an AMD device is a CUDA device.
#if defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
  ops.impl("rms_norm_forward", TORCH_BOX(&rms_norm_forward));
  ops.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
#endif

#if defined(XPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, XPU, ops) {
  ops.impl("rms_norm_forward", TORCH_BOX(&rms_norm_forward));
  ops.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
#endif

#if defined(METAL_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, MPS, ops) {
  ops.impl("rms_norm_forward", TORCH_BOX(&rms_norm_forward));
  ops.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
#endif

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
