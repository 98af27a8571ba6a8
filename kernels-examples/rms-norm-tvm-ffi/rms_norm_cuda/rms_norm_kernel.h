#pragma once

#include <cstdint>

// Device code knows nothing of tvm-ffi: its compiler would read those headers once for each architecture. No type of CUDA's is here,
// since what includes this for HIP is not converted.
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

// Both return what the run time says of their launches.
int forward(Type type, Shape shape, const Forward &tensors, void *stream);
int backward(Type type, Shape shape, const Backward &tensors, void *stream);

} // namespace rms_norm_kernel
