#include "kernel.h"

#include <cmath>

void silu_of(const float *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[i] / (1.0f + std::exp(-from[i]));
  }
}
