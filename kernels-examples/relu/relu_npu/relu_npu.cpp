#include "relu.h"
#include "torch_binding.h"

#include <ATen/ops/empty_like.h>
#include <torch_npu/csrc/core/npu/NPUGuard.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>

#include <algorithm>

namespace {

// Elements of a tile of a core, as the kernels have it, and the most cores that a launch asks for: more than a device has wait for others.
constexpr int64_t kTile = 4096;
constexpr int64_t kMostBlocks = 48;

uint32_t blocks_for(int64_t count) {
  return static_cast<uint32_t>(std::min((count + kTile - 1) / kTile, kMostBlocks));
}

// Calls one of two launchers, by the type of the elements, with the number of blocks and the current stream of the device. What torch-npu
// still has in its queue of tasks is launched before.
template <typename Launch> void launch(const char *op, const at::Tensor &tensor, Launch of_float, Launch of_half) {
  const at::ScalarType dtype = tensor.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kHalf, op, ": unsupported dtype ", dtype, ", expected float or half");
  if (tensor.numel() == 0) {
    return;
  }
  void *stream = c10_npu::getCurrentNPUStream(tensor.device().index()).stream(true);
  const uint32_t failed = (dtype == at::kFloat ? of_float : of_half)(blocks_for(tensor.numel()), stream);
  TORCH_CHECK(failed == 0, op, ": the launch failed with ", failed);
}

} // namespace

at::Tensor relu(const at::Tensor &input) {
  const c10_npu::NPUGuard guard(input.device());
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source, at::MemoryFormat::Contiguous);
  const auto with = [&](auto launcher) {
    return [&source, &output, launcher](uint32_t blocks, void *stream) {
      return launcher(blocks, stream, source.const_data_ptr(), output.mutable_data_ptr(), static_cast<uint64_t>(source.numel()));
    };
  };
  launch("relu", source, with(&aclrtlaunch_relu_float), with(&aclrtlaunch_relu_half));
  return output;
}

at::Tensor relu_backward(const at::Tensor &grad_output, const at::Tensor &output) {
  TORCH_CHECK(grad_output.sizes() == output.sizes(), "relu_backward: shapes differ: ", grad_output.sizes(), " and ",
              output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == output.scalar_type(), "relu_backward: dtypes differ: ",
              grad_output.scalar_type(), " and ", output.scalar_type());
  TORCH_CHECK(grad_output.device() == output.device(), "relu_backward: devices differ");
  const c10_npu::NPUGuard guard(output.device());
  const at::Tensor grad = grad_output.contiguous();
  const at::Tensor result = output.contiguous();
  at::Tensor grad_input = at::empty_like(grad, at::MemoryFormat::Contiguous);
  const auto with = [&](auto launcher) {
    return [&grad, &result, &grad_input, launcher](uint32_t blocks, void *stream) {
      return launcher(blocks, stream, grad.const_data_ptr(), result.const_data_ptr(), grad_input.mutable_data_ptr(),
                      static_cast<uint64_t>(grad.numel()));
    };
  };
  launch("relu_backward", grad, with(&aclrtlaunch_relu_backward_float), with(&aclrtlaunch_relu_backward_half));
  return grad_input;
}
