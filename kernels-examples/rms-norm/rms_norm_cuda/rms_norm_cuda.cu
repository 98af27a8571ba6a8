#include "arguments.h"
#include "torch_binding.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Exception.h>
#include <torch/headeronly/util/Half.h>

#include <algorithm>
#include <cstdint>

#if defined(USE_ROCM)
// It has this name for ROCm too, and torch's header declares it for CUDA alone.
extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void **ret_stream);
#endif

namespace {

using namespace rms_norm_arguments;
using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using torch::stable::accelerator::DeviceGuard;

constexpr int kWarp = 32;
constexpr int kThreads = 256;
// Columns and rows that a block of the weight's gradient works on.
constexpr int kTileColumns = 32;
constexpr int kTileRows = kThreads / kTileColumns;

// The sum of `value` over the block, for every thread. `partial` holds a float for each warp.
__device__ float block_sum(float value, float *partial) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
#if defined(USE_ROCM)
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

// A block works on a row.
Rows launchable_rows_of(const Tensor &input, const char *op) {
  const Rows rows = rows_of(input);
  STD_TORCH_CHECK(rows.count <= INT32_MAX, op, ": input has more rows than a launch has blocks");
  return rows;
}

void check_device_arguments(const Tensor &input, const Tensor &weight, const char *op) {
  check_arguments(input, weight, op);
  STD_TORCH_CHECK(weight.get_device_index() == input.get_device_index(), op, ": weight and input must be on the same device");
}

// The stream that torch works on just now.
cudaStream_t current_stream(const Tensor &tensor) {
  void *stream = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(tensor.get_device_index(), &stream));
  return static_cast<cudaStream_t>(stream);
}

void check_launch(const char *op) {
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, op, ": ", cudaGetErrorString(error));
}

} // namespace

std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor &input, const Tensor &weight, double eps) {
  check_device_arguments(input, weight, "rms_norm_forward");
  const DeviceGuard guard(input.get_device_index());
  const Tensor source = torch::stable::contiguous(input);
  const Tensor scale = torch::stable::contiguous(weight);
  const IntHeaderOnlyArrayRef sizes = source.sizes();
  Tensor output = torch::stable::new_empty(source, sizes);
  Tensor rstd = torch::stable::new_empty(source, IntHeaderOnlyArrayRef(sizes.data(), sizes.size() - 1), ScalarType::Float);
  const Rows rows = launchable_rows_of(source, "rms_norm_forward");
  if (rows.count == 0) {
    return {output, torch::stable::zero_(rstd)};
  }
  with_scalar_type(source.scalar_type(), "rms_norm_forward", [&](auto tag) {
    using scalar_t = decltype(tag);
    forward_kernel<scalar_t><<<static_cast<unsigned>(rows.count), kThreads, 0, current_stream(source)>>>(
        static_cast<const scalar_t *>(source.const_data_ptr()), static_cast<const scalar_t *>(scale.const_data_ptr()),
        static_cast<scalar_t *>(output.mutable_data_ptr()), static_cast<float *>(rstd.mutable_data_ptr()), rows.length,
        static_cast<float>(eps));
    check_launch("rms_norm_forward");
  });
  return {output, rstd};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor &grad_output, const Tensor &input, const Tensor &weight,
                                             const Tensor &rstd) {
  check_device_arguments(input, weight, "rms_norm_backward");
  STD_TORCH_CHECK(same_sizes(grad_output, input), "rms_norm_backward: grad_output and input must have the same shape");
  STD_TORCH_CHECK(grad_output.scalar_type() == input.scalar_type(),
                  "rms_norm_backward: grad_output and input must have the same dtype");
  const DeviceGuard guard(input.get_device_index());
  const Tensor grad = torch::stable::contiguous(grad_output);
  const Tensor source = torch::stable::contiguous(input);
  const Tensor scale = torch::stable::contiguous(weight);
  const Tensor saved = torch::stable::contiguous(rstd);
  const Rows rows = launchable_rows_of(source, "rms_norm_backward");
  STD_TORCH_CHECK(saved.scalar_type() == ScalarType::Float && (rows.count == 0 || saved.numel() == rows.count),
                  "rms_norm_backward: rstd must hold one float for each row of input");
  Tensor grad_input = torch::stable::new_empty(source, source.sizes());
  Tensor grad_weight = torch::stable::new_empty(scale, scale.sizes());
  if (rows.count == 0) {
    return {grad_input, torch::stable::zero_(grad_weight)};
  }
  with_scalar_type(source.scalar_type(), "rms_norm_backward", [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *g = static_cast<const scalar_t *>(grad.const_data_ptr());
    const auto *x = static_cast<const scalar_t *>(source.const_data_ptr());
    const auto *r = static_cast<const float *>(saved.const_data_ptr());
    const cudaStream_t stream = current_stream(source);
    grad_input_kernel<scalar_t><<<static_cast<unsigned>(rows.count), kThreads, 0, stream>>>(
        g, x, static_cast<const scalar_t *>(scale.const_data_ptr()), r, static_cast<scalar_t *>(grad_input.mutable_data_ptr()),
        rows.length);
    check_launch("rms_norm_backward");
    const unsigned tiles = static_cast<unsigned>((rows.length + kTileColumns - 1) / kTileColumns);
    grad_weight_kernel<scalar_t><<<tiles, kThreads, 0, stream>>>(g, x, r, static_cast<scalar_t *>(grad_weight.mutable_data_ptr()),
                                                                 rows.count, rows.length);
    check_launch("rms_norm_backward");
  });
  return {grad_input, grad_weight};
}
