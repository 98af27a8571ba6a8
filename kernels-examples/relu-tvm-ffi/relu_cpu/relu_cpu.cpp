#include "relu.h"

#include <cstdint>

namespace {

using tvm::ffi::TensorView;

// Whether a value is zero or less; false for a NaN.
template <typename scalar_t> bool not_positive(scalar_t value) { return value <= scalar_t(0); }

// Half types by their bits: a sign and a magnitude that is at most infinity's.
template <uint16_t infinity> struct Bits {
  uint16_t bits = 0;
};
using Half = Bits<0x7c00>;
using BFloat16 = Bits<0x7f80>;

template <uint16_t infinity> bool not_positive(Bits<infinity> value) {
  const bool is_nan = (value.bits & 0x7fff) > infinity;
  return !is_nan && (value.bits >= 0x8000 || value.bits == 0);
}

// Calls `body` with a value of the type that holds elements of `tensor`.
template <typename Body> void with_scalar_type(TensorView tensor, Body body) {
  if (tensor.dtype().code == kDLBfloat) {
    return body(BFloat16{});
  }
  switch (tensor.dtype().bits) {
  case 64:
    return body(double{});
  case 32:
    return body(float{});
  default:
    return body(Half{});
  }
}

template <typename scalar_t> scalar_t *data(TensorView tensor) {
  return reinterpret_cast<scalar_t *>(static_cast<char *>(tensor.data_ptr()) + tensor.byte_offset());
}

} // namespace

namespace relu_device {

void forward(TensorView input, TensorView output) {
  with_scalar_type(input, [&](auto zero) {
    using scalar_t = decltype(zero);
    const scalar_t *from = data<scalar_t>(input);
    scalar_t *to = data<scalar_t>(output);
    const int64_t count = input.numel();
    for (int64_t i = 0; i < count; ++i) {
      to[i] = not_positive(from[i]) ? zero : from[i];
    }
  });
}

void backward(TensorView grad_output, TensorView output, TensorView grad_input) {
  with_scalar_type(output, [&](auto zero) {
    using scalar_t = decltype(zero);
    const scalar_t *from = data<scalar_t>(grad_output);
    const scalar_t *out = data<scalar_t>(output);
    scalar_t *to = data<scalar_t>(grad_input);
    const int64_t count = output.numel();
    for (int64_t i = 0; i < count; ++i) {
      to[i] = not_positive(out[i]) ? zero : from[i];
    }
  });
}

} // namespace relu_device
