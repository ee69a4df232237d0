#include "pack/mma_fragment.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"
#include "mx/row_fold.h"

namespace mx8 {
namespace {

bool block_is_zero(const MxView& w, int64_t n, int64_t block) {
  const uint8_t* codes = w.codes + n * w.cols + block * kMxBlock;
  return std::all_of(codes, codes + kMxBlock, [](uint8_t c) { return (c & 0x7F) == 0; });
}

// The largest block exponent of a row among blocks that are not all zero; 0 for a row of zeros.
int fold_exponent(const MxView& w, int64_t n) {
  int largest = -1;
  for (int64_t b = 0; b < w.blocks_per_row(); ++b)
    if (!block_is_zero(w, n, b)) largest = std::max<int>(largest, w.scale(n, b * kMxBlock));
  return largest < 0 ? 0 : largest - kE8m0Bias;
}

Result<void> check_no_nan(const MxView& w) {
  for (int64_t i = 0; i < w.rows * w.cols; ++i)
    if (e4m3_is_nan(w.codes[i]))
      return unsupported("row " + std::to_string(i / w.cols) + " holds a NaN code");
  for (int64_t i = 0; i < w.rows * w.blocks_per_row(); ++i)
    if (w.scales[i] == kE8m0Nan)
      return unsupported("row " + std::to_string(i / w.blocks_per_row()) + " holds a NaN scale");
  return {};
}

// Scale byte of one block in the records.
uint8_t scale_byte(const MxView& w, FragmentKind kind, int64_t n, int64_t k, int fold) {
  const uint8_t e = w.scale(n, k);
  if (kind == FragmentKind::kBf16) return bf16_scale_byte(e);
  if (block_is_zero(w, n, k / kMxBlock)) return 0;
  return static_cast<uint8_t>(e - kE8m0Bias - fold + kFp16ScaleBias);
}

Result<void> check_fp16_range(const MxView& w, int64_t n, int fold) {
  for (int64_t b = 0; b < w.blocks_per_row(); ++b) {
    const int relative = w.scale(n, b * kMxBlock) - kE8m0Bias - fold;
    if (relative < kFp16MinRelativeExponent && !block_is_zero(w, n, b))
      return unsupported("row " + std::to_string(n) + ": a block lies 2^" +
                         std::to_string(-relative) +
                         " below the largest of its row; FP16 holds 2^15");
  }
  return {};
}

uint8_t* record_of(FragmentMatrix* m, int64_t row_block, int64_t k_record) {
  return m->records.data() +
         (row_block * m->shape.k_records() + k_record) * m->shape.record_bytes();
}

void pack_codes(const uint8_t* codes, FragmentMatrix* m, int64_t rb, int64_t kr) {
  const FragmentShape& s = m->shape;
  uint8_t* record = record_of(m, rb, kr);
  for (int word = 0; word < kFragmentCodeBytes / 4; ++word) {
    uint32_t value = 0;
    for (int byte = 0; byte < 4; ++byte) {
      const FragmentCoord at = fragment_code_coord(word, byte);
      const int64_t row = fragment_source_row(rb * kFragmentRows + at.row, s.n, s.order);
      const int64_t k = kr * kFragmentCols + at.k;
      if (row >= 0 && k < s.k) value |= static_cast<uint32_t>(codes[row * s.k + k]) << (8 * byte);
    }
    if (s.kind != FragmentKind::kFolded) value = interleave_word(value);
    std::memcpy(record + 4 * word, &value, 4);
  }
}

void pack_scales(const MxView& w, const std::vector<int>& fold, FragmentMatrix* m, int64_t rb,
                 int64_t kr) {
  const FragmentShape& s = m->shape;
  uint8_t* scales = record_of(m, rb, kr) + kFragmentCodeBytes;
  for (int byte = 0; byte < kFragmentScaleBytes; ++byte) {
    const FragmentCoord at = fragment_scale_coord(byte);
    const int64_t row = fragment_source_row(rb * kFragmentRows + at.row, s.n, s.order);
    const int64_t k = kr * kFragmentCols + at.k;
    // Padding must multiply its zero codes by something finite.
    scales[byte] = row >= 0 && k < s.k ? scale_byte(w, s.kind, row, k, fold[row]) : 1;
  }
}

}  // namespace

Result<FragmentMatrix> pack_mma_fragment(const MxView& w, FragmentKind kind, RowOrder order) {
  if (w.cols % kMxBlock != 0)
    return invalid_argument("K = " + std::to_string(w.cols) + " is not a multiple of 32");
  if (order == RowOrder::kGateUpInterleaved && w.rows % 2 != 0)
    return invalid_argument("gate and up need an even number of rows, found " +
                            std::to_string(w.rows));
  FragmentMatrix m{{w.rows, w.cols, kind, order}, {}, {}};
  std::vector<int> fold(w.rows, 0);
  if (kind != FragmentKind::kBf16) {
    MX8_RETURN_IF_ERROR(check_no_nan(w));
    for (int64_t n = 0; n < w.rows; ++n) fold[n] = fold_exponent(w, n);
  }
  if (kind == FragmentKind::kFp16)
    for (int64_t n = 0; n < w.rows; ++n) MX8_RETURN_IF_ERROR(check_fp16_range(w, n, fold[n]));
  RowFold folded;
  if (kind == FragmentKind::kFolded) folded = mx_fold_rows(w);
  const uint8_t* codes = kind == FragmentKind::kFolded ? folded.codes.data() : w.codes;
  m.records.assign(m.shape.bytes(), 0);
  for (int64_t rb = 0; rb < m.shape.row_blocks(); ++rb)
    for (int64_t kr = 0; kr < m.shape.k_records(); ++kr) {
      pack_codes(codes, &m, rb, kr);
      if (kind != FragmentKind::kFolded) pack_scales(w, fold, &m, rb, kr);
    }
  m.row_scales.assign(m.shape.row_scales(), 1.0f);
  for (int64_t p = 0; p < m.shape.row_scales(); ++p) {
    const int64_t row = fragment_source_row(p, w.rows, order);
    if (row >= 0) m.row_scales[p] = std::ldexp(1.0f, fold[row]);
  }
  return m;
}

MxMatrix unpack_mma_fragment(const FragmentMatrix& packed) {
  const FragmentShape& s = packed.shape;
  MX8_CHECK(static_cast<int64_t>(packed.records.size()) == s.bytes(), packed.records.size());
  MxMatrix out(s.n, s.k);
  for (int64_t rb = 0; rb < s.row_blocks(); ++rb)
    for (int64_t kr = 0; kr < s.k_records(); ++kr) {
      const uint8_t* record = packed.records.data() + (rb * s.k_records() + kr) * s.record_bytes();
      for (int word = 0; word < kFragmentCodeBytes / 4; ++word) {
        uint32_t value;
        std::memcpy(&value, record + 4 * word, 4);
        if (s.kind != FragmentKind::kFolded) value = deinterleave_word(value);
        for (int byte = 0; byte < 4; ++byte) {
          const FragmentCoord at = fragment_code_coord(word, byte);
          const int64_t row = fragment_source_row(rb * kFragmentRows + at.row, s.n, s.order);
          const int64_t k = kr * kFragmentCols + at.k;
          if (row >= 0 && k < s.k)
            out.codes[row * s.k + k] = static_cast<uint8_t>(value >> (8 * byte));
        }
      }
      for (int byte = 0; byte < kFragmentScaleBytes; ++byte) {
        const FragmentCoord at = fragment_scale_coord(byte);
        const int64_t p = rb * kFragmentRows + at.row;
        const int64_t row = fragment_source_row(p, s.n, s.order), k = kr * kFragmentCols + at.k;
        if (row < 0 || k >= s.k) continue;
        int e = 0;
        if (s.kind == FragmentKind::kBf16) {
          e = bf16_scale_byte_inverse(record[kFragmentCodeBytes + byte]);
        } else {
          e = std::ilogb(packed.row_scales[p]) + kE8m0Bias;
          if (s.kind == FragmentKind::kFp16) {
            const int stored = record[kFragmentCodeBytes + byte];
            e = stored == 0 ? 0 : e + stored - kFp16ScaleBias;
          }
        }
        out.scales[row * (s.k / kMxBlock) + k / kMxBlock] = static_cast<uint8_t>(e);
      }
    }
  return out;
}

}  // namespace mx8
