#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

// Calls `body` with a value of the C++ type that holds elements of `dtype`.
template <typename Body> void with_scalar_type(at::ScalarType dtype, const char *op, Body body) {
  switch (dtype) {
  case at::kFloat:
    return body(float{});
  case at::kDouble:
    return body(double{});
  case at::kHalf:
    return body(c10::Half{});
  case at::kBFloat16:
    return body(c10::BFloat16{});
  default:
    TORCH_CHECK(false, op, ": unsupported dtype ", dtype, ", expected a floating-point tensor");
  }
}
