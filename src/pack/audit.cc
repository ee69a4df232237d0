#include "pack/audit.h"

#include <algorithm>

#include "base/strings.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"
#include "mx/row_fold.h"

namespace mx8 {

void WeightAudit::merge(const WeightAudit& other) {
  nan_codes += other.nan_codes;
  nan_scales += other.nan_scales;
  subnormal_codes += other.subnormal_codes;
  zero_blocks += other.zero_blocks;
  elements += other.elements;
  min_scale = std::min(min_scale, other.min_scale);
  max_scale = std::max(max_scale, other.max_scale);
  row_spread = std::max(row_spread, other.row_spread);
  row_fold_error = std::max(row_fold_error, other.row_fold_error);
}

WeightAudit audit_weight(const MxView& view, bool with_fold) {
  WeightAudit audit;
  audit.elements = view.rows * view.cols;
  const int64_t blocks = view.rows * view.blocks_per_row();
  int row_low = 255, row_high = 0;  // of the row so far
  for (int64_t b = 0; b < blocks; ++b) {
    if (b % view.blocks_per_row() == 0) row_low = 255, row_high = 0;
    const uint8_t* codes = view.codes + b * kMxBlock;
    int nan = 0, subnormal = 0;
    uint8_t any = 0;
    for (int i = 0; i < kMxBlock; ++i) {
      const uint8_t magnitude = codes[i] & 0x7F;
      nan += magnitude == 0x7F;
      subnormal += static_cast<uint8_t>(magnitude - 1) < 7;
      any |= magnitude;
    }
    audit.nan_codes += nan;
    audit.subnormal_codes += subnormal;
    const int scale = view.scales[b];
    audit.nan_scales += scale == kE8m0Nan;
    if (any == 0) {
      ++audit.zero_blocks;
    } else {
      audit.min_scale = std::min(audit.min_scale, scale);
      audit.max_scale = std::max(audit.max_scale, scale);
      row_low = std::min(row_low, scale);
      row_high = std::max(row_high, scale);
      audit.row_spread = std::max(audit.row_spread, row_high - row_low);
    }
  }
  if (with_fold && audit.finite()) audit.row_fold_error = mx_row_fold_error(view);
  return audit;
}

std::string describe_bad_weight(const WeightAudit& audit, const std::string& name) {
  return str_cat(name, " holds ", audit.nan_codes, " NaN codes and ", audit.nan_scales,
                 " NaN scales among ", audit.elements,
                 " weights; the file is damaged or was quantised from a model with NaN or infinity");
}

}  // namespace mx8
