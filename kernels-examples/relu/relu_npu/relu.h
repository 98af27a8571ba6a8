#pragma once

#include <cstdint>

// Launchers of the kernels in `relu.asc`: on `blocks` cores, in `stream`. Zero if the launch was taken.
extern "C" {
uint32_t aclrtlaunch_relu_float(uint32_t blocks, void *stream, const void *from, void *to, uint64_t count);
uint32_t aclrtlaunch_relu_half(uint32_t blocks, void *stream, const void *from, void *to, uint64_t count);
uint32_t aclrtlaunch_relu_backward_float(uint32_t blocks, void *stream, const void *from, const void *out, void *to, uint64_t count);
uint32_t aclrtlaunch_relu_backward_half(uint32_t blocks, void *stream, const void *from, const void *out, void *to, uint64_t count);
}
