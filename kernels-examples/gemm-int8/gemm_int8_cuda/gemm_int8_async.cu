#include "launch.h"
#include "tile.cuh"

#include <cuda_pipeline.h>

namespace {

using namespace tile;

// Bytes of one asynchronous copy.
constexpr int kPiece = 16;

// Starts the copy of a tile, `rows` by `columns` from (`row`, `column`) of a matrix of `height` by `width`; what lies outside is zero.
template <int rows, int columns>
__device__ void start(signed char *to, const int8_t *from, int64_t row, int64_t column, int64_t height, int64_t width) {
  const bool aligned = width % kPiece == 0 && reinterpret_cast<uintptr_t>(from) % kPiece == 0;
  for (int i = threadIdx.x; i < rows * columns / kPiece; i += kThreads) {
    const int64_t y = row + i / (columns / kPiece);
    const int64_t x = column + i % (columns / kPiece) * kPiece;
    signed char *piece = to + i * kPiece;
    if (aligned && y < height && x < width) {
      __pipeline_memcpy_async(piece, from + y * width + x, kPiece);
    } else {
      for (int at = 0; at < kPiece; ++at) {
        piece[at] = y < height && x + at < width ? from[y * width + x + at] : 0;
      }
    }
  }
}

// Two buffers: while one tile is multiplied, the next one is on its way.
__global__ void gemm_int8_async_kernel(const int8_t *x, const int8_t *y, int32_t *z, int64_t m, int64_t n, int64_t k) {
  __shared__ alignas(32) signed char left[2][kSize * kDepth];
  __shared__ alignas(32) signed char right[2][kDepth * kSize];
  __shared__ alignas(32) int buffer[kSize * kSize];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kSize;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kSize;
  Sum sum;
  nvcuda::wmma::fill_fragment(sum, 0);
  start<kSize, kDepth>(left[0], x, row, 0, m, k);
  start<kDepth, kSize>(right[0], y, 0, column, k, n);
  __pipeline_commit();
  int now = 0;
  for (int64_t depth = 0; depth < k; depth += kDepth, now ^= 1) {
    if (depth + kDepth < k) {
      start<kSize, kDepth>(left[now ^ 1], x, row, depth + kDepth, m, k);
      start<kDepth, kSize>(right[now ^ 1], y, depth + kDepth, column, k, n);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    multiply(left[now], right[now], sum);
    __syncthreads();
  }
  store(sum, buffer, z, m, n);
}

} // namespace

cudaError_t launch_gemm_int8_async(const int8_t *x, const int8_t *y, int32_t *z, int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + kSize - 1) / kSize), static_cast<unsigned>((m + kSize - 1) / kSize));
  gemm_int8_async_kernel<<<blocks, kThreads, 0, stream>>>(x, y, z, m, n, k);
  return cudaGetLastError();
}
