#include "scalar_type.h"
#include "torch_binding.h"

#include <ATen/ops/empty_like.h>

at::Tensor relu(const at::Tensor &input) {
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source, at::MemoryFormat::Contiguous);
  with_scalar_type(source.scalar_type(), "relu", [&](auto zero) {
    using scalar_t = decltype(zero);
    const scalar_t *from = source.const_data_ptr<scalar_t>();
    scalar_t *to = output.mutable_data_ptr<scalar_t>();
    const int64_t count = source.numel();
    for (int64_t i = 0; i < count; ++i) {
      // Asked this way round, a NaN is kept.
      to[i] = from[i] <= zero ? zero : from[i];
    }
  });
  return output;
}

at::Tensor relu_backward(const at::Tensor &grad_output, const at::Tensor &output) {
  TORCH_CHECK(grad_output.sizes() == output.sizes(), "relu_backward: shapes differ: ", grad_output.sizes(), " and ",
              output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == output.scalar_type(), "relu_backward: dtypes differ: ",
              grad_output.scalar_type(), " and ", output.scalar_type());
  const at::Tensor grad = grad_output.contiguous();
  const at::Tensor result = output.contiguous();
  at::Tensor grad_input = at::empty_like(grad, at::MemoryFormat::Contiguous);
  with_scalar_type(grad.scalar_type(), "relu_backward", [&](auto zero) {
    using scalar_t = decltype(zero);
    const scalar_t *from = grad.const_data_ptr<scalar_t>();
    const scalar_t *out = result.const_data_ptr<scalar_t>();
    scalar_t *to = grad_input.mutable_data_ptr<scalar_t>();
    const int64_t count = grad.numel();
    for (int64_t i = 0; i < count; ++i) {
      to[i] = out[i] <= zero ? zero : from[i];
    }
  });
  return grad_input;
}
