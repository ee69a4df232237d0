#include "mx/row_fold.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"

namespace mx8 {

namespace {

bool block_is_zero(const uint8_t* codes) {
  for (int i = 0; i < kMxBlock; ++i) {
    if ((codes[i] & 0x7F) != 0) return false;
  }
  return true;
}

// The largest scale byte among the row's blocks that are not all zero, or -1.
int row_scale_byte(const MxView& view, int64_t n) {
  int largest = -1;
  for (int64_t b = 0; b < view.blocks_per_row(); ++b) {
    const int scale = view.scales[n * view.blocks_per_row() + b];
    if (scale > largest && !block_is_zero(view.codes + n * view.cols + b * kMxBlock)) {
      largest = scale;
    }
  }
  return largest;
}

// How a code changes when its block's exponent is `shift` below the row's.
struct ShiftTable {
  std::array<uint8_t, 256> code;
  std::array<double, 256> squared_error;  // in units of the block's own scale, squared

  explicit ShiftTable(int shift) {
    for (int c = 0; c < 256; ++c) {
      const float value = e4m3_decode(static_cast<uint8_t>(c));
      code[c] = e4m3_encode(std::ldexp(value, -shift));
      const double back = std::ldexp(static_cast<double>(e4m3_decode(code[c])), shift);
      squared_error[c] = (back - value) * (back - value);
    }
  }
};

// Shifts above 18 turn every code into zero: 448 * 2^-18 is below half the smallest subnormal.
constexpr int kMaxShift = 19;

const ShiftTable& shift_table(int shift) {
  static const std::vector<ShiftTable> tables = [] {
    std::vector<ShiftTable> t;
    for (int s = 0; s <= kMaxShift; ++s) t.emplace_back(s);
    return t;
  }();
  return tables[static_cast<size_t>(shift < kMaxShift ? shift : kMaxShift)];
}

const std::array<double, 256>& squared_values() {
  static const std::array<double, 256> table = [] {
    std::array<double, 256> t{};
    for (int c = 0; c < 256; ++c) {
      const double v = e4m3_decode(static_cast<uint8_t>(c));
      t[c] = v * v;
    }
    return t;
  }();
  return table;
}

double fold(const MxView& view, RowFold* out) {
  const auto& squares = squared_values();
  double error = 0;
  double norm = 0;
  for (int64_t n = 0; n < view.rows; ++n) {
    const int row_byte = row_scale_byte(view, n);
    if (out != nullptr) {
      out->exponents[static_cast<size_t>(n)] =
          static_cast<int16_t>(row_byte < 0 ? 0 : row_byte - kE8m0Bias);
    }
    if (row_byte < 0) continue;
    for (int64_t b = 0; b < view.blocks_per_row(); ++b) {
      const uint8_t* codes = view.codes + n * view.cols + b * kMxBlock;
      const int scale = view.scales[n * view.blocks_per_row() + b];
      const int shift = row_byte - scale;
      if (shift < 0) continue;  // an all-zero block with a larger scale byte: its codes stay zero
      const ShiftTable& table = shift_table(shift);
      const double unit = std::ldexp(1.0, 2 * (scale - kE8m0Bias));
      double block_error = 0;
      double block_norm = 0;
      for (int i = 0; i < kMxBlock; ++i) {
        block_error += shift >= kMaxShift ? squares[codes[i]] : table.squared_error[codes[i]];
        block_norm += squares[codes[i]];
        if (out != nullptr) {
          out->codes[static_cast<size_t>(n * view.cols + b * kMxBlock + i)] = table.code[codes[i]];
        }
      }
      error += unit * block_error;
      norm += unit * block_norm;
    }
  }
  return norm > 0 ? std::sqrt(error / norm) : 0;
}

}  // namespace

RowFold mx_fold_rows(const MxView& view) {
  RowFold out;
  out.codes.resize(static_cast<size_t>(view.rows * view.cols));
  out.exponents.resize(static_cast<size_t>(view.rows));
  out.error = fold(view, &out);
  return out;
}

double mx_row_fold_error(const MxView& view) { return fold(view, nullptr); }

}  // namespace mx8
