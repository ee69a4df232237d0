// Sm100Mx: what block-scaled tensor cores (SM100 and later) and cuBLASLt's VEC32_UE8M0 read.
//
// Codes stay row-major [rows, k]. Scales lie in atoms of 128 rows x 4 scale columns (128 K), 512
// bytes: byte (r mod 32) * 16 + (r / 32 mod 4) * 4 + (b mod 4) of the atom holds block b of row r;
// atoms run along K first, then rows. Rows are padded to 128 and scale columns to 4. The same order
// serves weights and activations. Source: cuBLAS documentation, "1D block scaling factors layout".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mx/block.h"

namespace mx8 {

inline constexpr int kScaleAtomRows = 128;
inline constexpr int kScaleAtomCols = 4;
inline constexpr int kScaleAtomBytes = kScaleAtomRows * kScaleAtomCols;
// Padding must multiply its zero codes by something finite: 2^-127.
inline constexpr uint8_t kScalePadding = 0;

constexpr int64_t scale_atoms_k(int64_t k) {
  return (k / kMxBlock + kScaleAtomCols - 1) / kScaleAtomCols;
}
constexpr int64_t scale_atoms_rows(int64_t rows) {
  return (rows + kScaleAtomRows - 1) / kScaleAtomRows;
}
constexpr int64_t sf128x4_bytes(int64_t rows, int64_t k) {
  return scale_atoms_rows(rows) * scale_atoms_k(k) * kScaleAtomBytes;
}
// Place of the scale of row r, block b (of 32 K).
constexpr int64_t sf128x4_offset(int64_t r, int64_t b, int64_t k) {
  const int64_t atom = (r / kScaleAtomRows) * scale_atoms_k(k) + b / kScaleAtomCols;
  return atom * kScaleAtomBytes + (r % 32) * 16 + (r / 32 % 4) * 4 + b % kScaleAtomCols;
}

// Scales [rows, k / 32] row-major to the 128x4 order and back.
std::vector<uint8_t> pack_sf128x4(std::span<const uint8_t> scales, int64_t rows, int64_t k);
std::vector<uint8_t> unpack_sf128x4(std::span<const uint8_t> packed, int64_t rows, int64_t k);

}  // namespace mx8
