#pragma once

#include <cstdint>

// Device code knows nothing of tvm-ffi: its compiler would read those headers once for each architecture. No type of CUDA's is here,
// since what includes this for HIP is not converted.
namespace relu_kernel {

enum class Type { kFloat, kDouble, kHalf, kBFloat16 };

// `kept` where `tested` is positive or a NaN, else zero, for `count` elements. Returns what the run time says of the launch.
int mask(Type type, const void *kept, const void *tested, void *to, int64_t count, void *stream);

} // namespace relu_kernel
