// Index arithmetic of the MmaFragment layouts, shared by the CPU packer, the GPU packer and the
// tests. Everything is constexpr, so device code can call it (nvcc --expt-relaxed-constexpr).
//
// The matrix W [N, K] is cut into records of 64 rows x 64 K, stored row block by row block, K
// inside. A record starts with 4096 bytes of codes in the register order of the tensor core's A
// operand:
//
//   word = kb * 512 + frag * 128 + lane * 4 + q      (1024 words of 4 codes)
//     kb   0..1   which 32 of the 64 K           frag 0..3  which 16 of the 64 rows
//     lane 0..31  g = lane / 4, c = lane % 4     q    0..3  row g + 8 * (q & 1), K half q >> 1
//   the four codes of a word: k = 32 kb + 16 (q >> 1) + 2 c + {0, 8, 1, 9}
//
// so one 16-byte load per lane is the A fragment of two m16n8k16 (or wgmma m64nNk16) steps once its
// codes are converted, and of one m16n8k32 / wgmma m64nNk32 E4M3 step as it is; in the second case
// the activations must use the same order of K inside each 16 (kFragmentK below).
//
// kInterleaved records then hold 128 bytes of scales: byte 4 * (8 frag + g) + 2 * (half) + kb is
// the scale of row 16 frag + g + 8 half. Each half word of their codes is bit-interleaved (see
// interleave_pair), which saves two of seven integer operations per four weights in the kernels.
// kFolded records have no scales (one FP32 scale a row, beside the records) and plain code bytes.
#pragma once

#include <cstdint>

#include "pack/layout.h"

namespace mx8 {

inline constexpr int kFragmentRows = 64;
inline constexpr int kFragmentCols = 64;
inline constexpr int kFragmentCodeBytes = kFragmentRows * kFragmentCols;
inline constexpr int kFragmentScaleBytes = kFragmentRows * kFragmentCols / 32;
inline constexpr int kFragmentRecordBytes =
    kFragmentCodeBytes + kFragmentScaleBytes;  // interleaved
// K is padded to a multiple of this (two records), N to kFragmentRows.
inline constexpr int kFragmentKPad = 128;

enum class FragmentKind : uint8_t {
  kBf16,    // interleaved, scale bytes biased for BF16: byte = (e8m0 + 120) mod 256
  kFp16,    // interleaved, scale bytes relative to the row's fold exponent, biased for FP16
  kFolded,  // plain bytes of the row-folded matrix, no scales in the records
};

constexpr int fragment_record_bytes(FragmentKind kind) {
  return kind == FragmentKind::kFolded ? kFragmentCodeBytes : kFragmentRecordBytes;
}

struct FragmentCoord {
  int row;  // 0..63
  int k;    // 0..63
};

// Order of K inside 16: slot s of a folded fragment (and of the activations that meet it) holds
// k = kFragmentK[s].
inline constexpr int kFragmentK[16] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
constexpr int fragment_k_of_slot(int slot) {
  return (slot >> 2) * 2 + (slot & 1) * 8 + ((slot >> 1) & 1);
}

// Coordinates of code `byte` (0..3) of word `word` (0..1023) of a record.
constexpr FragmentCoord fragment_code_coord(int word, int byte) {
  const int kb = word >> 9, frag = (word >> 7) & 3, lane = (word >> 2) & 31, q = word & 3;
  return {frag * 16 + (lane >> 2) + (q & 1) * 8,
          kb * 32 + (q >> 1) * 16 + 2 * (lane & 3) + (byte & 1) * 8 + (byte >> 1)};
}
// Coordinates (row, first k) of scale byte `byte` (0..127) of a record.
constexpr FragmentCoord fragment_scale_coord(int byte) {
  const int pair = byte >> 2, frag = pair >> 3, g = pair & 7;
  return {frag * 16 + g + ((byte >> 1) & 1) * 8, (byte & 1) * 32};
}

// Two code bytes -> one half word: bit 15 sign of a; 14..12 top exponent bits of b; 11 sign of b;
// 10..4 magnitude of a; 3..0 the rest of b. With `w` a word of two half words, w & 0x87F087F0 is
// then the pair of a's as BF16 * 2^-120 and ((w << 4) & 0x80F080F0) | ((w >> 4) & 0x07000700) the
// pair of b's.
constexpr uint32_t interleave_pair(uint32_t a, uint32_t b) {
  return (a >> 7) << 15 | ((b >> 4) & 7) << 12 | (b >> 7) << 11 | (a & 127) << 4 | (b & 15);
}
constexpr uint32_t deinterleave_pair(uint32_t half) {
  const uint32_t a = ((half >> 15) & 1) << 7 | ((half >> 4) & 127);
  const uint32_t b = ((half >> 11) & 1) << 7 | ((half >> 12) & 7) << 4 | (half & 15);
  return a | b << 8;
}
// A whole word of plain bytes to its interleaved form and back.
constexpr uint32_t interleave_word(uint32_t plain) {
  return interleave_pair(plain & 255, (plain >> 8) & 255) |
         interleave_pair((plain >> 16) & 255, plain >> 24) << 16;
}
constexpr uint32_t deinterleave_word(uint32_t word) {
  return deinterleave_pair(word & 0xFFFF) | deinterleave_pair(word >> 16) << 16;
}

// Scale bytes. BF16: exponent field of the multiplier that undoes the 2^-120 of the bit placement.
constexpr uint8_t bf16_scale_byte(uint8_t e8m0) { return static_cast<uint8_t>(e8m0 + 120); }
constexpr uint8_t bf16_scale_byte_inverse(uint8_t byte) { return static_cast<uint8_t>(byte - 120); }
// FP16: codes land with 2^-8; the multiplier is 2^(8 + e - fold), exponent field 23 + e - fold, and
// every product is exact while e - fold >= -15 (the smallest code step, 2^-9, meets 2^-24).
inline constexpr int kFp16ScaleBias = 23;
inline constexpr int kFp16MinRelativeExponent = -15;

// Padded sizes.
constexpr int64_t fragment_row_blocks(int64_t packed_rows) {
  return (packed_rows + kFragmentRows - 1) / kFragmentRows;
}
constexpr int64_t fragment_k_records(int64_t k) {
  return (k + kFragmentKPad - 1) / kFragmentKPad * (kFragmentKPad / kFragmentCols);
}
// Packed rows of a matrix with n rows (before padding to 64). Gate and up rows come in groups of 8,
// the last ones padded.
constexpr int64_t fragment_packed_rows(int64_t n, RowOrder order) {
  return order == RowOrder::kPlain ? n : (n / 2 + 7) / 8 * 16;
}
// The row of W that packed row p holds; -1 where it is padding.
constexpr int64_t fragment_source_row(int64_t p, int64_t n, RowOrder order) {
  if (order == RowOrder::kPlain) return p < n ? p : -1;
  const int64_t half = n / 2, feature = (p >> 4) * 8 + (p & 7);
  if (feature >= half) return -1;
  return (p & 8) ? half + feature : feature;
}

}  // namespace mx8
