#include "relu_kernel.h"

#if defined(ROCM_KERNEL)
#include <hip/hip_bfloat16.h>
#else
#include <cuda_bf16.h>
#endif
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

namespace {

// The type that every release of the run time has.
#if defined(ROCM_KERNEL)
using bfloat16_t = hip_bfloat16;
#else
using bfloat16_t = __nv_bfloat16;
#endif

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 65535;

// Whether `value` is zero or less; false for a NaN.
template <typename scalar_t> __device__ bool not_positive(scalar_t value) {
  using wide_t = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;
  return static_cast<wide_t>(value) <= wide_t(0);
}

template <typename scalar_t>
__global__ void mask_kernel(const scalar_t *kept, const scalar_t *tested, scalar_t *to, int64_t count) {
  const scalar_t zero = static_cast<scalar_t>(0.0f);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = not_positive(tested[i]) ? zero : kept[i];
  }
}

template <typename scalar_t>
cudaError_t launch(const void *kept, const void *tested, void *to, int64_t count, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>((count + kThreads - 1) / kThreads, kMostBlocks));
  mask_kernel<scalar_t><<<blocks, kThreads, 0, stream>>>(static_cast<const scalar_t *>(kept), static_cast<const scalar_t *>(tested),
                                                         static_cast<scalar_t *>(to), count);
  return cudaGetLastError();
}

} // namespace

namespace relu_kernel {

int mask(Type type, const void *kept, const void *tested, void *to, int64_t count, void *on) {
  auto *stream = static_cast<cudaStream_t>(on);
  switch (type) {
  case Type::kFloat:
    return launch<float>(kept, tested, to, count, stream);
  case Type::kDouble:
    return launch<double>(kept, tested, to, count, stream);
  case Type::kHalf:
    return launch<__half>(kept, tested, to, count, stream);
  case Type::kBFloat16:
    return launch<bfloat16_t>(kept, tested, to, count, stream);
  }
  return cudaErrorInvalidValue;
}

} // namespace relu_kernel
