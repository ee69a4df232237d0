#include "pack/audit.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "mx/row_fold.h"
#include "pack/layout.h"

namespace mx8 {
namespace {

TEST(Audit, CountsEachKind) {
  MxMatrix m(2, 64);
  for (auto& c : m.codes) c = 0x38;
  m.scales = {120, 130, 90, 255};
  m.codes[0] = 0x7F;
  m.codes[40] = 0xFF;
  m.codes[1] = 0x01;
  m.codes[2] = 0x87;
  m.codes[3] = 0x80;
  for (int i = 64; i < 96; ++i) m.codes[i] = i % 2 ? 0x80 : 0;
  const WeightAudit a = audit_weight(m.view());
  EXPECT_EQ(a.nan_codes, 2);
  EXPECT_EQ(a.nan_scales, 1);
  EXPECT_EQ(a.subnormal_codes, 2);
  EXPECT_EQ(a.zero_blocks, 1);
  EXPECT_EQ(a.min_scale, 120);
  EXPECT_EQ(a.max_scale, 255);
  EXPECT_FALSE(a.finite());
  EXPECT_NE(describe_bad_weight(a, "q_proj.weight").find("2 NaN codes and 1 NaN scales"),
            std::string::npos);
}

TEST(Audit, ZeroBlocksDoNotCountForTheScaleRange) {
  MxMatrix m(1, 64);
  m.codes[0] = 0x38;
  m.scales = {120, 0};
  const WeightAudit a = audit_weight(m.view(), true);
  EXPECT_TRUE(a.scales_within(120, 120));
  EXPECT_FALSE(a.scales_within(121, 254));
  EXPECT_EQ(a.row_fold_error, 0);
  MxMatrix zero(1, 32);
  EXPECT_TRUE(audit_weight(zero.view()).scales_within(1, 2));
}

// The distance counts within a row, not across rows, and between blocks that hold something.
TEST(Audit, RowSpread) {
  MxMatrix m(3, 96);
  for (auto& c : m.codes) c = 0x38;
  m.scales = {120, 117, 119, 90, 91, 90, 100, 20, 104};
  for (int i = 2 * 96 + 32; i < 2 * 96 + 64; ++i) m.codes[i] = 0x80;
  EXPECT_EQ(audit_weight(m.view()).row_spread, 4);
  EXPECT_EQ(audit_weight(m.view().rows_slice(0, 2)).row_spread, 3);
  EXPECT_EQ(audit_weight(m.view().rows_slice(1, 1)).row_spread, 1);
}

TEST(Audit, MergeIsTheAuditOfTheStack) {
  std::mt19937 rng(2);
  MxMatrix m(6, 96);
  for (auto& c : m.codes) c = static_cast<uint8_t>(rng());
  for (auto& s : m.scales) s = static_cast<uint8_t>(rng());
  WeightAudit merged = audit_weight(m.view().rows_slice(0, 2));
  merged.merge(audit_weight(m.view().rows_slice(2, 4)));
  const WeightAudit whole = audit_weight(m.view());
  EXPECT_EQ(merged.nan_codes, whole.nan_codes);
  EXPECT_EQ(merged.subnormal_codes, whole.subnormal_codes);
  EXPECT_EQ(merged.min_scale, whole.min_scale);
  EXPECT_EQ(merged.max_scale, whole.max_scale);
  EXPECT_EQ(merged.elements, whole.elements);
  EXPECT_EQ(merged.row_spread, whole.row_spread);
}

TEST(RowOrder, InterleavingIsAPermutation) {
  for (int64_t rows : {2, 14, 16, 18, 32, 352, 350}) {
    std::set<int64_t> seen;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t s = source_row(RowOrder::kGateUpInterleaved, r, rows);
      ASSERT_GE(s, 0);
      ASSERT_LT(s, rows);
      seen.insert(s);
      EXPECT_EQ(source_row(RowOrder::kPlain, r, rows), r);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), rows);
  }
  EXPECT_EQ(source_row(RowOrder::kGateUpInterleaved, 8, 32), 16);
  EXPECT_EQ(source_row(RowOrder::kGateUpInterleaved, 16, 32), 8);
}

}  // namespace
}  // namespace mx8
