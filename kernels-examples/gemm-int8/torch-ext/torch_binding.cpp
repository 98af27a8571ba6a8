#include <torch/csrc/stable/library.h>

#include "registration.h"
#include "torch_binding.h"

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("gemm_int8(Tensor a, Tensor b) -> Tensor"); }

#if defined(CPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("gemm_int8", TORCH_BOX(&gemm_int8)); }
#endif

#if defined(CUDA_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) { ops.impl("gemm_int8", TORCH_BOX(&gemm_int8)); }
#endif

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
