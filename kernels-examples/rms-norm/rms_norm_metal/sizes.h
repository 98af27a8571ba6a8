#pragma once

// What the host tells every shader. Both sides read this file.

#ifndef __METAL_VERSION__
#include <cstdint>
#endif

#ifdef __METAL_VERSION__
#define RMS_NORM_CONSTANT constant
using rms_norm_uint = uint;
#else
#define RMS_NORM_CONSTANT
using rms_norm_uint = std::uint32_t;
#endif

// Threads of a group, which works on one row, or on as many columns as it has threads.
RMS_NORM_CONSTANT constexpr rms_norm_uint kGroup = 256;

// The rows, how long they are, and what keeps the root of a row of zeros away from zero.
struct Sizes {
  rms_norm_uint count;
  rms_norm_uint length;
  float eps;
};
