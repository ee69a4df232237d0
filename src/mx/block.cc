#include "mx/block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"

namespace mx8 {

std::string_view scale_rule_name(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::kRceil: return "rceil";
    case ScaleRule::kFloor: return "floor";
    case ScaleRule::kCompressedTensors: return "compressed-tensors";
  }
  return "?";
}

std::optional<ScaleRule> parse_scale_rule(std::string_view name) {
  for (ScaleRule rule : {ScaleRule::kRceil, ScaleRule::kFloor, ScaleRule::kCompressedTensors}) {
    if (name == scale_rule_name(rule)) return rule;
  }
  return std::nullopt;
}

uint8_t mx_scale(float amax, ScaleRule rule) {
  if (!(amax <= std::numeric_limits<float>::max())) return kE8m0Nan;
  if (amax == 0) return 0;
  int exponent;  // amax = fraction * 2^exponent with fraction in [0.5, 1): floor(log2) is exponent - 1
  const float fraction = std::frexp(amax, &exponent);
  const int floor_log2 = exponent - 1;
  // 448 = 1.75 * 2^8, and 1.75 is 0.875 as a fraction in [0.5, 1).
  const bool above = fraction > 0.875f;
  const bool at_or_above = fraction >= 0.875f;
  switch (rule) {
    case ScaleRule::kRceil: return e8m0_from_exponent(floor_log2 - 8 + (above ? 1 : 0));
    case ScaleRule::kFloor: return e8m0_from_exponent(floor_log2 - 8);
    case ScaleRule::kCompressedTensors:
      return e8m0_from_exponent(floor_log2 - 8 + (at_or_above ? 1 : 0));
  }
  return kE8m0Nan;
}

uint8_t mx_quantize_block(std::span<const float> values, ScaleRule rule, std::span<uint8_t> codes) {
  MX8_DCHECK(values.size() == codes.size() && values.size() <= kMxBlock, values.size());
  float amax = 0;
  bool finite = true;
  for (float v : values) {
    finite &= std::isfinite(v);
    amax = std::max(amax, std::fabs(v));
  }
  if (!finite) {
    for (size_t i = 0; i < values.size(); ++i) {
      codes[i] = std::isfinite(values[i]) ? uint8_t{0} : kE4m3Nan;
    }
    return kE8m0Nan;
  }
  const uint8_t scale = mx_scale(amax, rule);
  if (amax == 0) {
    std::fill(codes.begin(), codes.end(), uint8_t{0});
    return scale;
  }
  // Dividing by a power of two is exact here: FP64 has room for every quotient.
  const double inverse = std::ldexp(1.0, kE8m0Bias - scale);
  for (size_t i = 0; i < values.size(); ++i) {
    // The product of an FP32 and a power of two has 24 significant bits, so it rounds to FP32 only
    // where it leaves FP32's range: far below half a subnormal code, or above 448.
    codes[i] = e4m3_encode(static_cast<float>(static_cast<double>(values[i]) * inverse));
  }
  return scale;
}

double mx_value(uint8_t code, uint8_t scale) {
  if (scale == kE8m0Nan) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(static_cast<double>(e4m3_decode(code)), static_cast<int>(scale) - kE8m0Bias);
}

void mx_dequantize_block(std::span<const uint8_t> codes, uint8_t scale, std::span<float> values) {
  for (size_t i = 0; i < codes.size(); ++i) {
    values[i] = static_cast<float>(mx_value(codes[i], scale));
  }
}

MxMatrix::MxMatrix(int64_t n, int64_t k)
    : codes(static_cast<size_t>(n * k)), scales(static_cast<size_t>(n * (k / kMxBlock))), rows(n),
      cols(k) {
  MX8_CHECK(k % kMxBlock == 0, k);
}

MxMatrix mx_quantize(const float* values, int64_t rows, int64_t cols, int64_t ld, ScaleRule rule) {
  MxMatrix out(rows, cols);
  const int64_t blocks = cols / kMxBlock;
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t b = 0; b < blocks; ++b) {
      out.scales[static_cast<size_t>(n * blocks + b)] = mx_quantize_block(
          {values + n * ld + b * kMxBlock, kMxBlock}, rule,
          {out.codes.data() + n * cols + b * kMxBlock, kMxBlock});
    }
  }
  return out;
}

std::vector<float> mx_dequantize(const MxView& view) {
  std::vector<float> out(static_cast<size_t>(view.rows * view.cols));
  const int64_t blocks = view.rows * view.blocks_per_row();
  for (int64_t b = 0; b < blocks; ++b) {
    mx_dequantize_block({view.codes + b * kMxBlock, kMxBlock}, view.scales[b],
                        {out.data() + b * kMxBlock, kMxBlock});
  }
  return out;
}

}  // namespace mx8
