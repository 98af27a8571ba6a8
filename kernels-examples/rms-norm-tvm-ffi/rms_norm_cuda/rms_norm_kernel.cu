#include "rms_norm_kernel.h"

#if defined(ROCM_KERNEL)
#include <hip/hip_bfloat16.h>
#else
#include <cuda_bf16.h>
#endif
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

using namespace rms_norm_kernel;

// The type that every release of the run time has.
#if defined(ROCM_KERNEL)
using bfloat16_t = hip_bfloat16;
#else
using bfloat16_t = __nv_bfloat16;
#endif

constexpr int kWarp = 32;
constexpr int kThreads = 256;
// Columns and rows that a block of the weight's gradient works on.
constexpr int kTileColumns = 32;
constexpr int kTileRows = kThreads / kTileColumns;

// The sum of `value` over the block, for every thread. `partial` holds a float for each warp.
__device__ float block_sum(float value, float *partial) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
#if defined(ROCM_KERNEL)
    value += __shfl_xor(value, offset, kWarp);
#else
    value += __shfl_xor_sync(0xffffffffu, value, offset);
#endif
  }
  if (threadIdx.x % kWarp == 0) {
    partial[threadIdx.x / kWarp] = value;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kThreads / kWarp; ++warp) {
    sum += partial[warp];
  }
  return sum;
}

// A block for each row.
template <typename scalar_t>
__global__ void forward_kernel(const scalar_t *input, const scalar_t *weight, scalar_t *output, float *rstd, int64_t length,
                               float eps) {
  __shared__ float partial[kThreads / kWarp];
  const int64_t row = blockIdx.x;
  const scalar_t *x = input + row * length;
  scalar_t *y = output + row * length;
  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < length; i += kThreads) {
    const float value = static_cast<float>(x[i]);
    squares += value * value;
  }
  const float r = rsqrtf(block_sum(squares, partial) / static_cast<float>(length) + eps);
  if (threadIdx.x == 0) {
    rstd[row] = r;
  }
  for (int64_t i = threadIdx.x; i < length; i += kThreads) {
    y[i] = static_cast<scalar_t>(static_cast<float>(x[i]) * r * static_cast<float>(weight[i]));
  }
}

// d input[i] = rstd * (g[i] * w[i] - input[i] * rstd^2 * mean(g * w * input)). A block for each row.
template <typename scalar_t>
__global__ void grad_input_kernel(const scalar_t *grad, const scalar_t *input, const scalar_t *weight, const float *rstd,
                                  scalar_t *grad_input, int64_t length) {
  __shared__ float partial[kThreads / kWarp];
  const int64_t row = blockIdx.x;
  const int64_t first = row * length;
  float dot = 0.0f;
  for (int64_t i = threadIdx.x; i < length; i += kThreads) {
    dot += static_cast<float>(grad[first + i]) * static_cast<float>(weight[i]) * static_cast<float>(input[first + i]);
  }
  const float r = rstd[row];
  const float shared = r * r * block_sum(dot, partial) / static_cast<float>(length);
  for (int64_t i = threadIdx.x; i < length; i += kThreads) {
    const float direct = static_cast<float>(grad[first + i]) * static_cast<float>(weight[i]);
    grad_input[first + i] = static_cast<scalar_t>(r * (direct - static_cast<float>(input[first + i]) * shared));
  }
}

// d weight[i] = sum over rows of g[i] * input[i] * rstd. A block for some columns, its sum always in the same order.
template <typename scalar_t>
__global__ void grad_weight_kernel(const scalar_t *grad, const scalar_t *input, const float *rstd, scalar_t *grad_weight,
                                   int64_t rows, int64_t length) {
  __shared__ float partial[kTileRows][kTileColumns];
  const int column_in_tile = threadIdx.x % kTileColumns;
  const int row_in_tile = threadIdx.x / kTileColumns;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTileColumns + column_in_tile;
  float sum = 0.0f;
  if (column < length) {
    for (int64_t row = row_in_tile; row < rows; row += kTileRows) {
      const int64_t at = row * length + column;
      sum += static_cast<float>(grad[at]) * static_cast<float>(input[at]) * rstd[row];
    }
  }
  partial[row_in_tile][column_in_tile] = sum;
  __syncthreads();
  if (row_in_tile == 0 && column < length) {
    float total = 0.0f;
    for (int row = 0; row < kTileRows; ++row) {
      total += partial[row][column_in_tile];
    }
    grad_weight[column] = static_cast<scalar_t>(total);
  }
}

// Calls `body` with a value of the type.
template <typename Body> cudaError_t with_scalar_type(Type type, Body body) {
  switch (type) {
  case Type::kFloat:
    return body(float{});
  case Type::kHalf:
    return body(__half{});
  case Type::kBFloat16:
    return body(bfloat16_t{});
  }
  return cudaErrorInvalidValue;
}

} // namespace

namespace rms_norm_kernel {

int forward(Type type, Shape shape, const Forward &tensors, void *on) {
  auto *stream = static_cast<cudaStream_t>(on);
  return with_scalar_type(type, [&](auto tag) {
    using scalar_t = decltype(tag);
    forward_kernel<scalar_t><<<static_cast<unsigned>(shape.rows), kThreads, 0, stream>>>(
        static_cast<const scalar_t *>(tensors.input), static_cast<const scalar_t *>(tensors.weight),
        static_cast<scalar_t *>(tensors.output), tensors.rstd, shape.length, tensors.eps);
    return cudaGetLastError();
  });
}

int backward(Type type, Shape shape, const Backward &tensors, void *on) {
  auto *stream = static_cast<cudaStream_t>(on);
  return with_scalar_type(type, [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *g = static_cast<const scalar_t *>(tensors.grad_output);
    const auto *x = static_cast<const scalar_t *>(tensors.input);
    grad_input_kernel<scalar_t><<<static_cast<unsigned>(shape.rows), kThreads, 0, stream>>>(
        g, x, static_cast<const scalar_t *>(tensors.weight), tensors.rstd, static_cast<scalar_t *>(tensors.grad_input), shape.length);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) {
      return error;
    }
    const auto tiles = static_cast<unsigned>((shape.length + kTileColumns - 1) / kTileColumns);
    grad_weight_kernel<scalar_t><<<tiles, kThreads, 0, stream>>>(g, x, tensors.rstd, static_cast<scalar_t *>(tensors.grad_weight),
                                                                 shape.rows, shape.length);
    return cudaGetLastError();
  });
}

} // namespace rms_norm_kernel
