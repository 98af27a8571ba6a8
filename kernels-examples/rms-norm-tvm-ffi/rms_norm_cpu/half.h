#pragma once

#include <cstdint>
#include <cstring>

// The half types of DLPack, which C++17 has no names for.
namespace half_types {

template <typename To, typename From> To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// IEEE binary16.
struct Half {
  uint16_t bits;

  Half() = default;
  // To the nearest value, of two to the even one.
  explicit Half(float value) {
    uint32_t x = bits_of<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((x >> 16) & 0x8000u);
    x &= 0x7fffffffu;
    uint32_t magnitude;
    if (x > 0x7f800000u) {
      magnitude = 0x7e00u; // NaN
    } else if (x >= 0x477ff000u) {
      magnitude = 0x7c00u; // from 65520 on it rounds to infinity
    } else if (x < 0x38800000u) {
      // Below 2^-14: the last bit of a float at 0.5 is worth as much as that of such a half.
      magnitude = bits_of<uint32_t>(bits_of<float>(x) + 0.5f) - 0x3f000000u;
    } else {
      magnitude = (x + 0xc8000fffu + ((x >> 13) & 1u)) >> 13;
    }
    bits = static_cast<uint16_t>(sign | magnitude);
  }

  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    const uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0) {
      const float value = static_cast<float>(fraction) * 0x1p-24f;
      return sign != 0 ? -value : value;
    }
    return bits_of<float>(sign | ((exponent == 0x1f ? 0xffu : exponent + 112) << 23) | (fraction << 13));
  }
};

// The upper half of a float.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t x = bits_of<uint32_t>(value);
    const bool is_nan = (x & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(is_nan ? (x >> 16) | 0x40u : (x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }

  explicit operator float() const { return bits_of<float>(static_cast<uint32_t>(bits) << 16); }
};

} // namespace half_types
