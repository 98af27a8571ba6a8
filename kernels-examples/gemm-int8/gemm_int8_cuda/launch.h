#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// z = x * y on `stream`: x is [m, k], y is [k, n], z is [m, n], all by rows. Needs a device of capability 8.0 or newer.
cudaError_t launch_gemm_int8_async(const int8_t *x, const int8_t *y, int32_t *z, int64_t m, int64_t n, int64_t k, cudaStream_t stream);
