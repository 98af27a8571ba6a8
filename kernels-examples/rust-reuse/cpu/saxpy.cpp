#include "saxpy.h"

void saxpy_cpu(std::size_t count, float a, const float *x, float *y) {
  for (std::size_t at = 0; at < count; ++at) {
    y[at] += a * x[at];
  }
}
