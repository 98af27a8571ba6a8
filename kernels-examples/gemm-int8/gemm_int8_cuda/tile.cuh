#pragma once

#include <mma.h>

#include <cstdint>

// What both kernels share: a block of four warps makes a tile of 32 by 32, each warp a quarter of it with its tensor cores.
namespace tile {

constexpr int kSize = 32;
constexpr int kDepth = 32;
constexpr int kThreads = 128;
constexpr int kFragment = 16;

using Left = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kFragment, kFragment, kFragment, signed char, nvcuda::wmma::row_major>;
using Right = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kFragment, kFragment, kFragment, signed char, nvcuda::wmma::row_major>;
using Sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kFragment, kFragment, kFragment, int>;

// Rows of `left` are [kSize][kDepth], of `right` [kDepth][kSize].
__device__ inline void multiply(const signed char *left, const signed char *right, Sum &sum) {
  const int warp = threadIdx.x / 32;
  const int row = warp / 2 * kFragment;
  const int column = warp % 2 * kFragment;
  for (int depth = 0; depth < kDepth; depth += kFragment) {
    Left a;
    Right b;
    nvcuda::wmma::load_matrix_sync(a, left + row * kDepth + depth, kDepth);
    nvcuda::wmma::load_matrix_sync(b, right + depth * kSize + column, kSize);
    nvcuda::wmma::mma_sync(sum, a, b, sum);
  }
}

// Writes the block's sums through `buffer`, [kSize][kSize], as far as they lie in the result.
__device__ inline void store(const Sum &sum, int *buffer, int32_t *z, int64_t m, int64_t n) {
  const int warp = threadIdx.x / 32;
  int *own = buffer + warp / 2 * kFragment * kSize + warp % 2 * kFragment;
  nvcuda::wmma::store_matrix_sync(own, sum, kSize, nvcuda::wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < kSize * kSize; i += kThreads) {
    const int64_t row = static_cast<int64_t>(blockIdx.y) * kSize + i / kSize;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * kSize + i % kSize;
    if (row < m && column < n) {
      z[row * n + column] = buffer[i];
    }
  }
}

} // namespace tile
