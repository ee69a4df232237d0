// E8M0: an 8-bit power-of-two scale. Byte b means 2^(b - 127); 255 is NaN; 0 is 2^-127.
// Source: OCP Microscaling Formats (MX) Specification, version 1.0.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace mx8 {

inline constexpr uint8_t kE8m0Nan = 255;
inline constexpr int kE8m0Bias = 127;

// The value of a scale byte, exactly (byte 0 is the FP32 subnormal 2^-127); NaN for 255.
constexpr float e8m0_decode(uint8_t byte) {
  if (byte == kE8m0Nan) return std::numeric_limits<float>::quiet_NaN();
  if (byte == 0) return 0x1p-127f;
  return std::bit_cast<float>(static_cast<uint32_t>(byte) << 23);
}

// The byte of 2^exponent, saturating at 2^-127 and 2^127.
constexpr uint8_t e8m0_from_exponent(int exponent) {
  const int biased = exponent + kE8m0Bias;
  return static_cast<uint8_t>(biased < 0 ? 0 : biased > 254 ? 254 : biased);
}

}  // namespace mx8
