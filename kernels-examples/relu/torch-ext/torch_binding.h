#pragma once

#include <ATen/core/Tensor.h>

// max(input, 0) for each element, in a new contiguous tensor. A NaN stays a NaN, as in torch.
at::Tensor relu(const at::Tensor &input);

// The gradient with respect to the input of `relu`, given the gradient of its output and that output itself.
at::Tensor relu_backward(const at::Tensor &grad_output, const at::Tensor &output);
