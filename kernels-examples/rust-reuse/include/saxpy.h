#pragma once

#include <cstddef>

// y = a * x + y, for `count` numbers.
extern "C" void saxpy_cpu(std::size_t count, float a, const float *x, float *y);

// The same on the first CUDA device; 0, or the runtime's error.
extern "C" int saxpy_cuda(std::size_t count, float a, const float *x, float *y);
