#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "mx/bf16.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"

namespace mx8 {
namespace {

// The value of a code by the specification's formula, in FP64.
double spec_value(int code) {
  const int sign = code >> 7, exponent = (code >> 3) & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return std::nan("");
  const double magnitude = exponent == 0 ? std::ldexp(mantissa / 8.0, -6)
                                         : std::ldexp(1 + mantissa / 8.0, exponent - 7);
  return sign ? -magnitude : magnitude;
}

// The nearest code by search, ties to the even code, saturating.
uint8_t nearest_code(double value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(value);
  int best = 0;
  for (int c = 0; c <= 0x7E; ++c) {
    const double d = std::fabs(spec_value(c) - magnitude), b = std::fabs(spec_value(best) - magnitude);
    if (d < b || (d == b && c % 2 == 0)) best = c;
  }
  return static_cast<uint8_t>(sign | best);
}

TEST(E4m3, DecodesEveryCode) {
  for (int c = 0; c < 256; ++c) {
    const float got = e4m3_decode(static_cast<uint8_t>(c));
    if (std::isnan(spec_value(c))) {
      EXPECT_TRUE(std::isnan(got)) << c;
      EXPECT_TRUE(e4m3_is_nan(static_cast<uint8_t>(c)));
    } else {
      EXPECT_EQ(got, spec_value(c)) << c;
      EXPECT_EQ(std::signbit(got), c >= 128) << c;
      EXPECT_EQ(e4m3_is_subnormal(static_cast<uint8_t>(c)), got != 0 && std::fabs(got) < 0x1p-6) << c;
    }
  }
  static_assert(e4m3_decode(0x7E) == 448.0f && e4m3_decode(0x01) == 0x1p-9f);
}

TEST(E4m3, EncodesItsOwnValues) {
  for (int c = 0; c < 256; ++c) {
    const uint8_t code = static_cast<uint8_t>(c);
    if (e4m3_is_nan(code)) {
      EXPECT_EQ(e4m3_encode(e4m3_decode(code)), kE4m3Nan);
    } else {
      EXPECT_EQ(e4m3_encode(e4m3_decode(code)), code);
    }
  }
}

TEST(E4m3, EncodesEveryBf16Value) {
  for (int b = 0; b < 65536; ++b) {
    const float value = bf16_to_f32(static_cast<uint16_t>(b));
    if (std::isnan(value)) {
      EXPECT_EQ(e4m3_encode(value), kE4m3Nan);
    } else {
      ASSERT_EQ(e4m3_encode(value), nearest_code(value)) << value;
    }
  }
}

TEST(E4m3, RoundsMidpointsToEvenAndNeighboursToNearest) {
  for (int c = 0; c < 0x7E; ++c) {
    const float low = e4m3_decode(static_cast<uint8_t>(c));
    const float high = e4m3_decode(static_cast<uint8_t>(c + 1));
    const float mid = low + (high - low) / 2;
    for (float v : {mid, std::nextafter(mid, 0.0f), std::nextafter(mid, 1e9f)}) {
      EXPECT_EQ(e4m3_encode(v), nearest_code(v)) << v;
      EXPECT_EQ(e4m3_encode(-v), nearest_code(-v)) << v;
    }
  }
  EXPECT_EQ(e4m3_encode(464.0f), 0x7E);
  EXPECT_EQ(e4m3_encode(1e30f), 0x7E);
  EXPECT_EQ(e4m3_encode(-INFINITY), 0xFE);
}

TEST(E8m0, DecodesEveryByte) {
  for (int b = 0; b < 255; ++b) {
    EXPECT_EQ(e8m0_decode(static_cast<uint8_t>(b)), std::ldexp(1.0, b - 127)) << b;
    EXPECT_EQ(e8m0_from_exponent(b - 127), b);
  }
  EXPECT_TRUE(std::isnan(e8m0_decode(255)));
  EXPECT_EQ(e8m0_from_exponent(-500), 0);
  EXPECT_EQ(e8m0_from_exponent(500), 254);
}

TEST(Bf16, RoundsEveryMidpoint) {
  for (uint32_t b = 0; b < 0x7F7F; ++b) {
    const float low = bf16_to_f32(static_cast<uint16_t>(b));
    EXPECT_EQ(f32_to_bf16(low), b);
    const uint32_t mid = (b << 16) | 0x8000;
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(mid)), b + (b & 1));
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(mid + 1)), b + 1);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(mid - 1)), b);
  }
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(NAN))));
}

// IEEE half precision by its formula.
double half_value(int bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double m = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -m : m;
}

TEST(F16, EveryValueAndMidpoint) {
  for (int b = 0; b < 0x7C00; ++b) {
    EXPECT_EQ(f16_to_f32(static_cast<uint16_t>(b)), half_value(b));
    EXPECT_EQ(f32_to_f16(static_cast<float>(half_value(b))), b);
    const float mid = static_cast<float>((half_value(b) + half_value(b + 1)) / 2);
    EXPECT_EQ(f32_to_f16(mid), b + (b & 1)) << b;
    EXPECT_EQ(f32_to_f16(std::nextafter(mid, 1e9f)), b + 1) << b;
    EXPECT_EQ(f32_to_f16(std::nextafter(mid, 0.0f)), b) << b;
  }
  EXPECT_EQ(f32_to_f16(1e6f), 0x7C00);
  EXPECT_TRUE(std::isinf(f16_to_f32(0xFC00)));
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(NAN))));
}

}  // namespace
}  // namespace mx8
