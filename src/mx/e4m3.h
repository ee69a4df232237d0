// E4M3: the 8-bit floating point of OCP FP8 (sign, 4 exponent bits, 3 mantissa bits, bias 7).
//
// No infinity; 0x7F and 0xFF are NaN; the largest finite value is 448 (0x7E), the smallest normal
// 2^-6, the smallest subnormal 2^-9. Source: OCP 8-bit Floating Point Specification, revision 1.0.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace mx8 {

inline constexpr float kE4m3Max = 448.0f;
inline constexpr uint8_t kE4m3Nan = 0x7F;

constexpr bool e4m3_is_nan(uint8_t code) { return (code & 0x7F) == 0x7F; }
// True for codes with exponent field 0 other than +-0.
constexpr bool e4m3_is_subnormal(uint8_t code) { return (code & 0x78) == 0 && (code & 0x07) != 0; }

// The value of a code, exactly; NaN for the two NaN codes.
constexpr float e4m3_decode(uint8_t code) {
  if (e4m3_is_nan(code)) return std::numeric_limits<float>::quiet_NaN();
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  const uint32_t exponent = (code >> 3) & 0x0F;
  const uint32_t mantissa = code & 0x07;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

// The nearest code, ties to even; magnitudes above 448 and infinities saturate to +-448, NaN gives
// 0x7F. The sign of zero is kept.
constexpr uint8_t e4m3_encode(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint8_t sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return kE4m3Nan;
  // 464 = 448 + 16 is the midpoint above the largest code: everything from there saturates too.
  if (magnitude >= std::bit_cast<uint32_t>(448.0f)) return sign | 0x7E;
  if (magnitude < std::bit_cast<uint32_t>(0x1p-6f)) {
    // Subnormal result: adding 2^14 leaves the value in units of 2^-9 in the low mantissa bits of
    // the sum (ulp of [2^14, 2^15) is 2^-9), rounded to nearest even by the addition itself.
    const float sum = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(sum) & 0x0F));
  }
  // Normal result: keep 3 of 23 mantissa bits. Carry into the exponent is wanted.
  const uint32_t odd = (magnitude >> 20) & 1;
  const uint32_t rounded = magnitude + 0x7FFFFu + odd;
  const uint32_t code = (rounded >> 20) - (120u << 3);
  return static_cast<uint8_t>(sign | (code > 0x7E ? 0x7E : code));
}

}  // namespace mx8
