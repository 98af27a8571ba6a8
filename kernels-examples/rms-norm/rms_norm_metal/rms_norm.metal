#include <metal_stdlib>

#include "sizes.h"

using namespace metal;

// The sum of one value of each thread of a group, the same for all of them.
static float group_sum(float value, threadgroup float *partial, uint lane, uint simd, uint simds) {
  value = simd_sum(value);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    partial[simd] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0.0f;
  for (uint i = 0; i < simds; ++i) {
    sum += partial[i];
  }
  return sum;
}

// A group for each row.
template <typename scalar_t>
kernel void forward(device const scalar_t *x [[buffer(0)]], device const scalar_t *w [[buffer(1)]],
                    device scalar_t *y [[buffer(2)]], device float *rstd [[buffer(3)]], constant Sizes &sizes [[buffer(4)]],
                    uint row [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                    uint simds [[simdgroups_per_threadgroup]]) {
  threadgroup float partial[kGroup];
  const ulong first = ulong(row) * sizes.length;
  float squares = 0.0f;
  for (uint i = thread_index; i < sizes.length; i += kGroup) {
    const float value = float(x[first + i]);
    squares += value * value;
  }
  const float sum = group_sum(squares, partial, lane, simd, simds);
  const float r = 1.0f / precise::sqrt(sum / float(sizes.length) + sizes.eps);
  if (thread_index == 0) {
    rstd[row] = r;
  }
  for (uint i = thread_index; i < sizes.length; i += kGroup) {
    y[first + i] = scalar_t(float(x[first + i]) * r * float(w[i]));
  }
}

// d input[i] = rstd * (g[i] * w[i] - input[i] * rstd^2 * mean(g * w * input)), a group for each row.
template <typename scalar_t>
kernel void grad_input(device const scalar_t *g [[buffer(0)]], device const scalar_t *x [[buffer(1)]],
                       device const scalar_t *w [[buffer(2)]], device const float *rstd [[buffer(3)]],
                       device scalar_t *dx [[buffer(4)]], constant Sizes &sizes [[buffer(5)]],
                       uint row [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
                       uint simds [[simdgroups_per_threadgroup]]) {
  threadgroup float partial[kGroup];
  const ulong first = ulong(row) * sizes.length;
  float dot = 0.0f;
  for (uint i = thread_index; i < sizes.length; i += kGroup) {
    dot += float(g[first + i]) * float(w[i]) * float(x[first + i]);
  }
  const float r = rstd[row];
  const float shared = r * r * group_sum(dot, partial, lane, simd, simds) / float(sizes.length);
  for (uint i = thread_index; i < sizes.length; i += kGroup) {
    dx[first + i] = scalar_t(r * (float(g[first + i]) * float(w[i]) - float(x[first + i]) * shared));
  }
}

// d weight[i] = sum over rows of g[i] * input[i] * rstd, a thread for each column, its sum always in the same order.
template <typename scalar_t>
kernel void grad_weight(device const scalar_t *g [[buffer(0)]], device const scalar_t *x [[buffer(1)]],
                        device const float *rstd [[buffer(2)]], device scalar_t *dw [[buffer(3)]],
                        constant Sizes &sizes [[buffer(4)]], uint column [[thread_position_in_grid]]) {
  if (column >= sizes.length) {
    return;
  }
  float sum = 0.0f;
  for (uint row = 0; row < sizes.count; ++row) {
    const ulong at = ulong(row) * sizes.length + column;
    sum += float(g[at]) * float(x[at]) * rstd[row];
  }
  dw[column] = scalar_t(sum);
}

#define KERNELS_FOR(scalar_t)                                                                                          \
  template [[host_name("forward_" #scalar_t)]] kernel void forward<scalar_t>(                                         \
      device const scalar_t *, device const scalar_t *, device scalar_t *, device float *, constant Sizes &, uint,    \
      uint, uint, uint, uint);                                                                                         \
  template [[host_name("grad_input_" #scalar_t)]] kernel void grad_input<scalar_t>(                                   \
      device const scalar_t *, device const scalar_t *, device const scalar_t *, device const float *,                \
      device scalar_t *, constant Sizes &, uint, uint, uint, uint, uint);                                             \
  template [[host_name("grad_weight_" #scalar_t)]] kernel void grad_weight<scalar_t>(                                 \
      device const scalar_t *, device const scalar_t *, device const float *, device scalar_t *, constant Sizes &,    \
      uint)

KERNELS_FOR(float);
KERNELS_FOR(half);
KERNELS_FOR(bfloat);
