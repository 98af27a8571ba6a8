#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Device code knows nothing of tvm-ffi: nvcc reads its headers once for each architecture.
namespace relu_kernel {

enum class Type { kFloat, kDouble, kHalf, kBFloat16 };

// `kept` where `tested` is positive or a NaN, else zero, for `count` elements.
cudaError_t mask(Type type, const void *kept, const void *tested, void *to, int64_t count, cudaStream_t stream);

} // namespace relu_kernel
