// Row folding: turns an MXFP8 row (one scale per 32) into FP8 codes with one power-of-two scale a
// row, which FP8 tensor cores without block scaling can run.
//
// The row's exponent E is the largest block exponent among blocks that are not all zero. A block with
// exponent e < E is re-encoded as code * 2^(e - E): exact while the results stay E4M3 values, rounded
// to the nearest subnormal (or zero) below. The error is the relative Frobenius norm of the change.
#pragma once

#include <cstdint>
#include <vector>

#include "mx/block.h"

namespace mx8 {

// Matrices whose fold error is above this do not take the folded path.
inline constexpr double kMaxRowFoldError = 1e-5;

struct RowFold {
  std::vector<uint8_t> codes;      // [rows, cols] E4M3
  std::vector<int16_t> exponents;  // [rows]: row scale is 2^exponent; 0 for an all-zero row
  double error = 0;                // ||folded - original||_F / ||original||_F; 0 for a zero matrix
};

// `view` must hold no NaN code and no scale byte 255 (see pack/audit.h).
RowFold mx_fold_rows(const MxView& view);
// The error alone, without the codes.
double mx_row_fold_error(const MxView& view);

}  // namespace mx8
