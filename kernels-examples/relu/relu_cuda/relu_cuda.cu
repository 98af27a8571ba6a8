#include "scalar_type.h"
#include "torch_binding.h"

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <type_traits>

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 65535;

// Whether `value` is zero or less; false for a NaN. Half types are compared as float: their own operators are ambiguous in device code.
template <typename scalar_t> __device__ bool not_positive(scalar_t value) {
  using wide_t = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;
  return static_cast<wide_t>(value) <= wide_t(0);
}

template <typename scalar_t> __global__ void relu_kernel(const scalar_t *from, scalar_t *to, int64_t count) {
  const scalar_t zero = static_cast<scalar_t>(0.0f);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    // Asked this way round, a NaN is kept.
    to[i] = not_positive(from[i]) ? zero : from[i];
  }
}

template <typename scalar_t>
__global__ void relu_backward_kernel(const scalar_t *from, const scalar_t *out, scalar_t *to, int64_t count) {
  const scalar_t zero = static_cast<scalar_t>(0.0f);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = not_positive(out[i]) ? zero : from[i];
  }
}

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>(std::min<int64_t>((count + kThreads - 1) / kThreads, kMostBlocks));
}

} // namespace

at::Tensor relu(const at::Tensor &input) {
  const c10::cuda::CUDAGuard guard(input.device());
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source, at::MemoryFormat::Contiguous);
  const int64_t count = source.numel();
  with_scalar_type(source.scalar_type(), "relu", [&](auto zero) {
    using scalar_t = decltype(zero);
    if (count == 0) {
      return;
    }
    relu_kernel<scalar_t><<<blocks_for(count), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        source.const_data_ptr<scalar_t>(), output.mutable_data_ptr<scalar_t>(), count);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return output;
}

at::Tensor relu_backward(const at::Tensor &grad_output, const at::Tensor &output) {
  TORCH_CHECK(grad_output.sizes() == output.sizes(), "relu_backward: shapes differ: ", grad_output.sizes(), " and ",
              output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == output.scalar_type(), "relu_backward: dtypes differ: ",
              grad_output.scalar_type(), " and ", output.scalar_type());
  TORCH_CHECK(grad_output.device() == output.device(), "relu_backward: devices differ");
  const c10::cuda::CUDAGuard guard(output.device());
  const at::Tensor grad = grad_output.contiguous();
  const at::Tensor result = output.contiguous();
  at::Tensor grad_input = at::empty_like(grad, at::MemoryFormat::Contiguous);
  const int64_t count = grad.numel();
  with_scalar_type(grad.scalar_type(), "relu_backward", [&](auto zero) {
    using scalar_t = decltype(zero);
    if (count == 0) {
      return;
    }
    relu_backward_kernel<scalar_t><<<blocks_for(count), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        grad.const_data_ptr<scalar_t>(), result.const_data_ptr<scalar_t>(), grad_input.mutable_data_ptr<scalar_t>(), count);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return grad_input;
}
