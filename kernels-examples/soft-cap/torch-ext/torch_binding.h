#pragma once

#include <torch/csrc/stable/tensor.h>

// `cap * tanh(input / cap)` for each element of a float32 tensor, in a new contiguous tensor.
torch::stable::Tensor soft_cap(const torch::stable::Tensor &input, double cap);
