// The audit of a weight matrix before it is packed: what the fast kernels assume is checked once.
#pragma once

#include <cstdint>
#include <string>

#include "mx/block.h"

namespace mx8 {

struct WeightAudit {
  int64_t nan_codes = 0;        // codes 0x7F and 0xFF
  int64_t nan_scales = 0;       // scale bytes 255
  int64_t subnormal_codes = 0;
  int64_t zero_blocks = 0;      // blocks whose codes are all +-0
  int64_t elements = 0;
  // Over blocks that are not all zero; min > max when there is none.
  int min_scale = 255;
  int max_scale = 0;
  int row_spread = 0;           // most powers of two that such a block lies below its row's largest
  double row_fold_error = 0;    // relative Frobenius norm, see mx/row_fold.h

  // True if the matrix holds no NaN of either kind.
  bool finite() const { return nan_codes == 0 && nan_scales == 0; }
  // True if every block that matters has its scale byte in [low, high].
  bool scales_within(int low, int high) const {
    return min_scale > max_scale || (min_scale >= low && max_scale <= high);
  }
  // Combines with the audit of another part of the same matrix.
  void merge(const WeightAudit& other);
};

// `with_fold` also computes row_fold_error (a second pass; 0 otherwise).
WeightAudit audit_weight(const MxView& view, bool with_fold = false);

// One line that says what is wrong with a matrix that is not finite, for an error about `name`.
std::string describe_bad_weight(const WeightAudit& audit, const std::string& name);

}  // namespace mx8
