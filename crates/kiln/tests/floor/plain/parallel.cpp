#include "programs.h"

int64_t program_parallel_sum(int64_t count) {
  int64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic)
  for (int64_t i = 0; i < count; i++) sum += i;
  return sum;
}
