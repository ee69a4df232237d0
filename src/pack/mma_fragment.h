// MmaFragment: the resident weight layouts of the GPU kernels (mma_fragment_map.h has the byte
// map).
//
// One kind per activation mode, fixed at load: kBf16 and kFp16 keep one scale per 32 codes inside
// the records, kFolded has one scale a row beside them. Every kind has an exact inverse.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "mx/block.h"
#include "pack/mma_fragment_map.h"

namespace mx8 {

// What the bytes of a packed matrix mean; the bytes themselves may lie on a GPU.
struct FragmentShape {
  int64_t n = 0;  // rows of W
  int64_t k = 0;  // multiple of 32
  FragmentKind kind = FragmentKind::kBf16;
  RowOrder order = RowOrder::kPlain;

  constexpr int64_t packed_rows() const { return fragment_packed_rows(n, order); }
  constexpr int64_t row_blocks() const { return fragment_row_blocks(packed_rows()); }
  constexpr int64_t k_records() const { return fragment_k_records(k); }
  constexpr int64_t record_bytes() const { return fragment_record_bytes(kind); }
  constexpr int64_t bytes() const { return row_blocks() * k_records() * record_bytes(); }
  // Entries of the row scale array (FP32); 0 for kBf16, whose scales are all inside.
  constexpr int64_t row_scales() const {
    return kind == FragmentKind::kBf16 ? 0 : row_blocks() * kFragmentRows;
  }
  bool operator==(const FragmentShape&) const = default;
};

// A packed matrix in CPU memory.
struct FragmentMatrix {
  FragmentShape shape;
  std::vector<uint8_t> records;
  std::vector<float> row_scales;  // packed order; 1 for padding rows
};

// Packs W. kFolded folds the rows (mx/row_fold.h) first. Errors: k not a multiple of 32, odd n with
// kGateUp, NaN codes or scales for the kinds that cannot hold them (kFp16, kFolded), and for kFp16
// a block more than 2^15 below the largest of its row, whose codes FP16 cannot hold exactly.
Result<FragmentMatrix> pack_mma_fragment(const MxView& w, FragmentKind kind, RowOrder order);

// The inverse: the codes and scales that were packed, without padding. kBf16 gives back every byte;
// kFp16 too, but for the scales of all-zero blocks, which come back as 0; kFolded gives the folded
// codes with the row's exponent in every block.
MxMatrix unpack_mma_fragment(const FragmentMatrix& packed);

}  // namespace mx8
