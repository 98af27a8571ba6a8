#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Device code knows nothing of tvm-ffi: nvcc reads its headers once for each architecture.
namespace rms_norm_kernel {

enum class Type { kFloat, kHalf, kBFloat16 };

// `rows` rows of `length` elements each. A block works on a row, so that there are at most INT32_MAX of them.
struct Shape {
  int64_t rows;
  int64_t length;
};

struct Forward {
  const void *input, *weight;
  void *output;
  float *rstd;
  float eps;
};

struct Backward {
  const void *grad_output, *input, *weight;
  const float *rstd;
  void *grad_input, *grad_weight;
};

cudaError_t forward(Type type, Shape shape, const Forward &tensors, cudaStream_t stream);
cudaError_t backward(Type type, Shape shape, const Backward &tensors, cudaStream_t stream);

} // namespace rms_norm_kernel
