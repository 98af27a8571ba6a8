#include "arguments.h"
#include "launch.h"
#include "tile.cuh"
#include "torch_binding.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <array>

namespace {

using namespace tile;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Rows of the result that one launch can have: its grid has 65535 blocks in that direction.
constexpr int64_t kMostRows = 65535ll * kSize;

// For devices without asynchronous copies.
__global__ void gemm_int8_kernel(const int8_t *x, const int8_t *y, int32_t *z, int64_t m, int64_t n, int64_t k) {
  __shared__ alignas(32) signed char left[kSize * kDepth];
  __shared__ alignas(32) signed char right[kDepth * kSize];
  __shared__ alignas(32) int buffer[kSize * kSize];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kSize;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kSize;
  Sum sum;
  nvcuda::wmma::fill_fragment(sum, 0);
  for (int64_t depth = 0; depth < k; depth += kDepth) {
    for (int i = threadIdx.x; i < kSize * kDepth; i += kThreads) {
      const int64_t row = first_row + i / kDepth;
      const int64_t at = depth + i % kDepth;
      left[i] = row < m && at < k ? x[row * k + at] : 0;
      const int64_t down = depth + i / kSize;
      const int64_t column = first_column + i % kSize;
      right[i] = down < k && column < n ? y[down * n + column] : 0;
    }
    __syncthreads();
    multiply(left, right, sum);
    __syncthreads();
  }
  store(sum, buffer, z, m, n);
}

void check(cudaError_t error) { STD_TORCH_CHECK(error == cudaSuccess, "gemm_int8: ", cudaGetErrorString(error)); }

} // namespace

Tensor gemm_int8(const Tensor &a, const Tensor &b) {
  check_arguments(a, b);
  STD_TORCH_CHECK(a.get_device_index() == b.get_device_index(), "gemm_int8: a and b must be on the same device");
  const torch::stable::accelerator::DeviceGuard guard(a.get_device_index());
  const Tensor left = torch::stable::contiguous(a);
  const Tensor right = torch::stable::contiguous(b);
  const int64_t m = left.size(0);
  const int64_t k = left.size(1);
  const int64_t n = right.size(1);
  STD_TORCH_CHECK(m <= kMostRows, "gemm_int8: a has more rows than a launch can have");
  const std::array<int64_t, 2> sizes = {m, n};
  Tensor output = torch::stable::new_empty(left, torch::headeronly::IntHeaderOnlyArrayRef(sizes.data(), sizes.size()), ScalarType::Int);
  if (m == 0 || n == 0) {
    return output;
  }
  void *handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(a.get_device_index(), &handle));
  const auto stream = static_cast<cudaStream_t>(handle);
  const auto *x = static_cast<const int8_t *>(left.const_data_ptr());
  const auto *y = static_cast<const int8_t *>(right.const_data_ptr());
  auto *z = static_cast<int32_t *>(output.mutable_data_ptr());
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, a.get_device_index()));
  if (major >= 8) {
    check(launch_gemm_int8_async(x, y, z, m, n, k, stream));
    return output;
  }
  const dim3 blocks(static_cast<unsigned>((n + kSize - 1) / kSize), static_cast<unsigned>((m + kSize - 1) / kSize));
  gemm_int8_kernel<<<blocks, kThreads, 0, stream>>>(x, y, z, m, n, k);
  check(cudaGetLastError());
  return output;
}
