// MX blocks: 32 consecutive elements along K share one E8M0 scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mx8 {

inline constexpr int kMxBlock = 32;

// How the shared exponent e of a block follows from amax, the largest magnitude in it.
enum class ScaleRule {
  kRceil,              // ceil(log2(amax / 448)): never saturates; the default
  kFloor,              // floor(log2(amax)) - 8, the OCP text: saturates above 1.75 * 2^(e+8)
  kCompressedTensors,  // floor(log2(amax)) - 8, one more from mantissa 1.75 on
};

std::string_view scale_rule_name(ScaleRule rule);              // "rceil", "floor", "compressed-tensors"
std::optional<ScaleRule> parse_scale_rule(std::string_view name);

// The scale byte of a block whose largest magnitude is `amax`. amax = 0 gives 0; NaN and infinity
// give 255. Exponents saturate at 2^-127 and 2^127.
uint8_t mx_scale(float amax, ScaleRule rule);

// Quantises `values` (at most 32; fewer only at the end of a row that is not a multiple of 32) into
// codes and returns the scale byte. A block with a NaN or an infinity gets scale 255 and all codes
// zero but for NaN codes at the places of the NaNs and infinities. A block of zeros gets scale 0 and
// codes 0.
uint8_t mx_quantize_block(std::span<const float> values, ScaleRule rule, std::span<uint8_t> codes);

// values[i] = 2^(scale - 127) * code[i], rounded once to FP32; NaN wherever scale is 255.
void mx_dequantize_block(std::span<const uint8_t> codes, uint8_t scale, std::span<float> values);

// The value of one element in FP64: exact for every code and scale.
double mx_value(uint8_t code, uint8_t scale);

// A matrix of MXFP8 weights in the order of checkpoint files, not owned.
//   codes:  [rows, cols] E4M3, row-major
//   scales: [rows, cols / 32] E8M0, row-major
// cols is a multiple of 32 (K); rows is N, the output features.
struct MxView {
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;

  int64_t blocks_per_row() const { return cols / kMxBlock; }
  uint8_t code(int64_t n, int64_t k) const { return codes[n * cols + k]; }
  uint8_t scale(int64_t n, int64_t k) const { return scales[n * blocks_per_row() + k / kMxBlock]; }
  MxView rows_slice(int64_t first, int64_t count) const {
    return {codes + first * cols, scales + first * blocks_per_row(), count, cols};
  }
};

// An owned MXFP8 matrix.
struct MxMatrix {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  int64_t rows = 0;
  int64_t cols = 0;

  MxMatrix() = default;
  MxMatrix(int64_t n, int64_t k);  // zero codes, zero scales; k must be a multiple of 32
  MxView view() const { return {codes.data(), scales.data(), rows, cols}; }
};

// Quantises a row-major [rows, cols] FP32 matrix (row stride ld elements).
MxMatrix mx_quantize(const float* values, int64_t rows, int64_t cols, int64_t ld, ScaleRule rule);
// The whole matrix in FP32, row-major.
std::vector<float> mx_dequantize(const MxView& view);

}  // namespace mx8
