#include <metal_stdlib>

using namespace metal;

// Asked this way round, a NaN is kept.
template <typename scalar_t>
kernel void forward(device const scalar_t *from [[buffer(0)]], device scalar_t *to [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  to[i] = float(from[i]) <= 0.0f ? scalar_t(0.0f) : from[i];
}

template <typename scalar_t>
kernel void backward(device const scalar_t *from [[buffer(0)]], device const scalar_t *out [[buffer(1)]],
                     device scalar_t *to [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  to[i] = float(out[i]) <= 0.0f ? scalar_t(0.0f) : from[i];
}

#define KERNELS_FOR(scalar_t)                                                                                          \
  template [[host_name("forward_" #scalar_t)]] kernel void forward<scalar_t>(device const scalar_t *,                 \
                                                                             device scalar_t *, uint);                 \
  template [[host_name("backward_" #scalar_t)]] kernel void backward<scalar_t>(                                       \
      device const scalar_t *, device const scalar_t *, device scalar_t *, uint)

KERNELS_FOR(float);
KERNELS_FOR(half);
KERNELS_FOR(bfloat);
