#include "mx/block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "mx/bf16.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"

namespace mx8 {
namespace {

constexpr ScaleRule kRules[] = {ScaleRule::kRceil, ScaleRule::kFloor, ScaleRule::kCompressedTensors};

TEST(MxBlock, DequantisesEveryCodeUnderEveryScale) {
  for (int s = 0; s < 256; ++s) {
    for (int c = 0; c < 256; ++c) {
      const uint8_t code = static_cast<uint8_t>(c), scale = static_cast<uint8_t>(s);
      float value;
      mx_dequantize_block({&code, 1}, scale, {&value, 1});
      const double exact = s == 255 ? NAN : static_cast<double>(e4m3_decode(code)) * std::pow(2.0, s - 127);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(value));
        EXPECT_TRUE(std::isnan(mx_value(code, scale)));
      } else {
        EXPECT_EQ(value, static_cast<float>(exact)) << c << " " << s;
        EXPECT_EQ(mx_value(code, scale), exact);
      }
    }
  }
}

// The rules by their formulas in FP64, on amax values where log2 and its ceiling are safe.
int formula_byte(double amax, ScaleRule rule) {
  const int floor_log2 = std::ilogb(amax);
  const double mantissa = std::scalbn(amax, -floor_log2);
  int e = floor_log2 - 8;
  if (rule == ScaleRule::kRceil && mantissa > 1.75) ++e;
  if (rule == ScaleRule::kCompressedTensors && mantissa >= 1.75) ++e;
  return std::min(254, std::max(0, e + 127));
}

TEST(MxScale, AroundEveryPowerAndEvery448Multiple) {
  for (ScaleRule rule : kRules) {
    for (int k = -149; k <= 127; ++k) {
      for (double base : {1.0, 1.75}) {
        const float at = static_cast<float>(std::ldexp(base, k));
        if (at == 0 || std::isinf(at)) continue;
        for (float v : {at, std::nextafter(at, 0.0f), std::nextafter(at, INFINITY)}) {
          if (v == 0 || std::isinf(v)) continue;
          EXPECT_EQ(mx_scale(v, rule), formula_byte(v, rule)) << v << " " << scale_rule_name(rule);
        }
      }
    }
  }
}

TEST(MxScale, OfEveryBf16Maximum) {
  for (ScaleRule rule : kRules) {
    for (int b = 1; b < 0x7F80; ++b) {
      const float amax = bf16_to_f32(static_cast<uint16_t>(b));
      ASSERT_EQ(mx_scale(amax, rule), formula_byte(amax, rule)) << amax << scale_rule_name(rule);
    }
  }
}

TEST(MxScale, RceilIsTheSmallestScaleThatDoesNotSaturate) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> exponent(-100, 100);
  for (int i = 0; i < 20000; ++i) {
    const float amax = std::exp2(exponent(rng));
    const int byte = mx_scale(amax, ScaleRule::kRceil);
    EXPECT_LE(amax / std::ldexp(1.0, byte - 127), 448.0);
    EXPECT_GT(amax / std::ldexp(1.0, byte - 128), 448.0);
  }
}

TEST(MxScale, EdgesHaveStatedResults) {
  for (ScaleRule rule : kRules) {
    EXPECT_EQ(mx_scale(0, rule), 0);
    EXPECT_EQ(mx_scale(INFINITY, rule), 255);
    EXPECT_EQ(mx_scale(NAN, rule), 255);
    EXPECT_EQ(parse_scale_rule(scale_rule_name(rule)), rule);
  }
  EXPECT_EQ(parse_scale_rule("round"), std::nullopt);
}

TEST(MxQuantize, NoElementIsWorseThanHalfACodeStep) {
  std::mt19937 rng(1);
  std::normal_distribution<float> gauss(0, 1);
  for (int trial = 0; trial < 4096; ++trial) {
    std::vector<float> x(32);
    const float spread = std::exp2(static_cast<float>(trial % 200) - 100);
    for (float& v : x) v = gauss(rng) * spread;
    std::vector<uint8_t> codes(32);
    const uint8_t scale = mx_quantize_block(x, ScaleRule::kRceil, codes);
    for (int i = 0; i < 32; ++i) {
      const double back = mx_value(codes[i], scale);
      const double unit = std::ldexp(1.0, scale - 127);
      // Half a step: 2^-4 of the value where normal, 2^-10 units where subnormal.
      EXPECT_LE(std::fabs(back - x[i]), std::max(std::fabs(x[i]) / 16.0, unit * 0x1p-10)) << x[i];
    }
  }
}

TEST(MxQuantize, EveryBf16ValueAloneInABlockComesBackExactly) {
  // RCEIL: alone in its block a BF16 value of at most 4 significant bits is representable.
  for (int b = 0; b < 0x7F80; ++b) {
    const float v = bf16_to_f32(static_cast<uint16_t>(b));
    if ((b & 0x0F) != 0 || v < 0x1p-110f) continue;
    std::vector<float> x(32, 0.0f);
    x[b % 32] = v;
    std::vector<uint8_t> codes(32);
    const uint8_t scale = mx_quantize_block(x, ScaleRule::kRceil, codes);
    EXPECT_EQ(mx_value(codes[b % 32], scale), v);
  }
}

TEST(MxQuantize, HostileBlocks) {
  std::vector<uint8_t> codes(32, 0xAA);
  std::vector<float> x(32, 0.0f);
  EXPECT_EQ(mx_quantize_block(x, ScaleRule::kRceil, codes), 0);
  for (uint8_t c : codes) EXPECT_EQ(c, 0);

  x[3] = -1.5f;
  x[7] = NAN;
  x[9] = -INFINITY;
  EXPECT_EQ(mx_quantize_block(x, ScaleRule::kRceil, codes), 255);
  EXPECT_EQ(codes[3], 0);
  EXPECT_EQ(codes[7], 0x7F);
  EXPECT_EQ(codes[9], 0x7F);

  // The smallest BF16 subnormal: the exponent saturates at 2^-127, the value is then 2^-133.
  x.assign(32, 0.0f);
  x[0] = bf16_to_f32(1);
  EXPECT_EQ(mx_quantize_block(x, ScaleRule::kRceil, codes), 0);
  EXPECT_EQ(mx_value(codes[0], 0), 0x1p-133);
  // The largest BF16 value.
  x[0] = bf16_to_f32(0x7F7F);
  const uint8_t s = mx_quantize_block(x, ScaleRule::kRceil, codes);
  EXPECT_EQ(s, 127 + 120);
  EXPECT_EQ(mx_value(codes[0], s), 0x1p128);
  // Signed zeros keep their sign in a block that is not all zero.
  x[1] = -0.0f;
  (void)mx_quantize_block(x, ScaleRule::kRceil, codes);
  EXPECT_EQ(codes[1], 0x80);
}

TEST(MxQuantize, SmallValuesBesideALargeOneUnderflowGradually) {
  std::vector<float> x(32, 1e-3f);
  x[0] = 300;
  std::vector<uint8_t> codes(32);
  const uint8_t scale = mx_quantize_block(x, ScaleRule::kRceil, codes);
  EXPECT_EQ(scale, 127);
  EXPECT_EQ(codes[1], 1);  // 1e-3 is nearer to 2^-9 than to 0
}

TEST(MxQuantize, FloorSaturatesAndCompressedTensorsDoesNot) {
  std::vector<float> x(32, 0.0f);
  x[0] = 500;
  std::vector<uint8_t> codes(32);
  EXPECT_EQ(mx_quantize_block(x, ScaleRule::kFloor, codes), 127);
  EXPECT_EQ(mx_value(codes[0], 127), 448);
  const uint8_t s = mx_quantize_block(x, ScaleRule::kCompressedTensors, codes);
  EXPECT_EQ(mx_value(codes[0], s), 512);
}

TEST(MxMatrix, RoundTripOfRepresentableValues) {
  std::mt19937 rng(3);
  MxMatrix m(5, 96);
  for (auto& c : m.codes) c = static_cast<uint8_t>(rng() % 0x7F);
  for (auto& s : m.scales) s = static_cast<uint8_t>(100 + rng() % 50);
  for (int64_t b = 0; b < 15; ++b) m.codes[b * 32] = 0x7E;  // the block maximum fixes the scale
  const std::vector<float> x = mx_dequantize(m.view());
  const MxMatrix again = mx_quantize(x.data(), 5, 96, 96, ScaleRule::kRceil);
  EXPECT_EQ(again.codes, m.codes);
  EXPECT_EQ(again.scales, m.scales);
}

}  // namespace
}  // namespace mx8
