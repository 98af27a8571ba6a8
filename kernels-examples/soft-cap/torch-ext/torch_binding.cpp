#include <torch/csrc/stable/library.h>

#include "registration.h"
#include "torch_binding.h"

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("soft_cap(Tensor input, float cap) -> Tensor"); }

#if defined(CPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("soft_cap", TORCH_BOX(&soft_cap)); }
#endif

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
