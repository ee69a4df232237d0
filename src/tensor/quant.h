// The one internal record that every checkpoint dialect is read into.
#pragma once

#include <cstdint>
#include <string>

#include "mx/block.h"
#include "tensor/dtype.h"

namespace mx8 {

// What the checkpoint wants done with the inputs of a quantised linear.
enum class ActivationScheme : uint8_t {
  kNone,          // weights only (W8A16)
  kDynamicMxfp8,  // quantised at run time, E4M3 with one E8M0 scale per 32 (W8A8)
};

// How the weight of a module is stored.
//   plain:  code_type BF16, F16 or F32, no scales (block_rows = block_cols = 0)
//   MXFP8:  code_type F8_E4M3, scale_type F8_E8M0, block 1 x 32
struct QuantScheme {
  DType code_type = DType::kBF16;
  DType scale_type = DType::kF8E8M0;
  int block_rows = 0;
  int block_cols = 0;
  ActivationScheme activations = ActivationScheme::kNone;

  static QuantScheme plain(DType dtype) { return {dtype, DType::kF8E8M0, 0, 0, ActivationScheme::kNone}; }
  static QuantScheme mxfp8(ActivationScheme a = ActivationScheme::kNone) {
    return {DType::kF8E4M3, DType::kF8E8M0, 1, kMxBlock, a};
  }
  bool is_plain() const { return block_cols == 0; }
  bool is_mxfp8() const {
    return code_type == DType::kF8E4M3 && scale_type == DType::kF8E8M0 && block_rows == 1 &&
           block_cols == kMxBlock;
  }
  bool operator==(const QuantScheme&) const = default;
};

std::string describe(const QuantScheme& scheme);  // "mxfp8 (w8a16)", "bf16", ...

// A weight in the order of checkpoint files, not owned: codes [rows, cols] of scheme.code_type,
// scales [rows / block_rows, cols / block_cols] or null for plain weights.
struct QuantView {
  const void* codes = nullptr;
  const void* scales = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  QuantScheme scheme;

  // The checked face for MXFP8.
  MxView mx() const;
};

// One rank's part of a parameter. Shards come first, packing after; a slice along K must start and
// end at multiples of `multiple` (32 for MXFP8).
struct ShardSpec {
  enum class Axis : uint8_t { kNone, kRows, kCols };
  Axis axis = Axis::kNone;
  int rank = 0;
  int world = 1;
  int multiple = 1;
};

}  // namespace mx8
