#pragma once

#include <torch/csrc/stable/tensor.h>

#include <tuple>

// Normalises each row (the last dimension) of `input` to a root mean square of one and scales it by `weight`:
// `output = input * rstd * weight` with `rstd = 1 / sqrt(mean(input^2) + eps)`.
// Gives `output`, like `input`, and `rstd`, one float for each row.
std::tuple<torch::stable::Tensor, torch::stable::Tensor>
rms_norm_forward(const torch::stable::Tensor &input, const torch::stable::Tensor &weight, double eps);

// The gradients with respect to `input` and `weight`.
std::tuple<torch::stable::Tensor, torch::stable::Tensor>
rms_norm_backward(const torch::stable::Tensor &grad_output, const torch::stable::Tensor &input,
                  const torch::stable::Tensor &weight, const torch::stable::Tensor &rstd);
