#pragma once
#include <cstdint>

// x * sigmoid(x) for each of `count` elements.
void silu_of(const float *from, float *to, int64_t count);
