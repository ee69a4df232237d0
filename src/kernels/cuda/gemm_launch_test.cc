// Plans with their kernels looked up, for any GPU, without one: every shape gets kernels that this
// program has, or one line that says why not.
#include "kernels/cuda/gemm_launch.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kernels/cuda/block_scaled_gemm.h"
#include "shapes.h"

namespace mx8::cuda {
namespace {

FragmentKind kind_of(Act act) {
  return act == Act::kBf16   ? FragmentKind::kBf16
         : act == Act::kFp16 ? FragmentKind::kFp16
                             : FragmentKind::kFolded;
}

Result<PlannedGemm> make(Act act, int64_t n, int64_t k, int sm, const std::string& force = "",
                         RowOrder order = RowOrder::kPlain, int max_m = 8192) {
  const FragmentShape shape{n, k, kind_of(act), order};
  return PlannedGemm::make(shape, {act, shape.packed_rows(), k, max_m, sm, 132}, force);
}

void expect_message(const Result<PlannedGemm>& r, const std::string& part) {
  ASSERT_FALSE(r.ok()) << part;
  EXPECT_NE(r.error().message.find(part), std::string::npos) << r.error().message;
  EXPECT_EQ(r.error().message.find('\n'), std::string::npos) << r.error().message;
}

TEST(PlannedGemm, EveryShapeGetsKernelsOrAReason) {
  for (const int sm : {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121})
    for (const Act act : {Act::kBf16, Act::kFp16, Act::kFp8})
      for (const auto [n, k] : shapes::awkward_shapes())
        for (const RowOrder order : {RowOrder::kPlain, RowOrder::kGateUpInterleaved}) {
          if (order == RowOrder::kGateUpInterleaved && n % 2 != 0) continue;
          const std::string what =
              str_cat("SM", sm, " act ", static_cast<int>(act), " ", n, "x", k);
          const auto plan = make(act, n, k, sm, "", order);
          if (act == Act::kFp8 && sm != 89 && sm != 90) {
            expect_message(plan, str_cat("SM", sm, " has no kernel"));
            continue;
          }
          // Emulation runs a library's GEMM: cuBLASLt without a GPU, or no libcublasLt at all.
          if (sm < 80 && !plan.ok()) {
            expect_message(plan, "Lt");
            continue;
          }
          ASSERT_TRUE(plan.ok()) << what << ": " << plan.error().message;
          EXPECT_GE(plan->workspace_bytes(), PlannedGemm::flag_bytes()) << what;
          for (const int m : {1, 2, 8, 9, 16, 17, 64, 65, 300, 4096, 8192}) {
            const GemmLaunch& l = plan->launch_for(m);
            EXPECT_GE(l.max_m, m) << what;
            // A kernel that its own plan forbids would fail at the first launch.
            const auto again = make(act, n, k, sm, l.choice.name(), order, l.max_m);
            EXPECT_TRUE(again.ok()) << what << ": " << again.error().message;
          }
        }
}

TEST(PlannedGemm, ForcedKernelsThatCannotRunAreRefused) {
  const struct {
    const char* name;
    Act act;
    int sm;
    int64_t k;
    const char* part;
  } rows[] = {
      {"marlin", Act::kBf16, 90, 128, "names no GEMM kernel"},
      {"gemm/128x256/", Act::kBf16, 90, 128, "names no GEMM kernel"},
      {"gemm/1x1/whole", Act::kBf16, 90, 128, "not part of this program"},
      {"stream/x/s1", Act::kBf16, 90, 128, "not part of this program"},
      {"stream/g1w4s3/s9", Act::kBf16, 90, 128, "at most 8"},
      {"stream/g1w4s3/s1", Act::kBf16, 90, 128, "tokens"},
      {"gemm/128x256/whole", Act::kBf16, 120, 128, "this is SM120"},
      {"stream/g1w4s3/s1", Act::kFp8, 89, 128, "this is SM89"},
      {"gemm/64x64lc/cluster9", Act::kBf16, 90, 8192, "at most 8"},
      {"gemm/64x64lc/cluster8", Act::kBf16, 90, 32, "K = 32 among at most"},
      {"gemm/64x64lc/whole", Act::kBf16, 90, 128, "does not exist"},
      {"sm80/x/s1", Act::kBf16, 80, 128, "the tiles"},
      {"sm80/128x32/s1", Act::kBf16, 80, 128, "the tiles"},
      {"sm80/128x64/s3", Act::kBf16, 80, 128, "among at most 2"},
      {"sm80/128x64/s17", Act::kBf16, 80, 8192, "among at most 16"},
      {"sm80/128x64/s1", Act::kBf16, 75, 128, "needs SM80"},
      {"sm80/128x64/s1", Act::kFp8, 86, 128, "SM86"},
      {"emulation", Act::kFp8, 90, 128, "does not take FP8"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    expect_message(make(row.act, 256, row.k, row.sm, row.name), row.part);
  }
}

// A workspace is sized for the most tokens and used for all of them.
TEST(Sm100Workspace, IsEnoughForFewerTokens) {
  for (const int rows : {128, 1024, 8192, 28672})
    for (const int max_m : {1, 2016, 3000, 8192, 200000}) {
      BlockScaledParams b;
      b.rows = rows;
      b.p.m = max_m;
      const size_t planned = sm100_workspace_bytes(b);
      for (b.p.m = 0; b.p.m <= max_m; ++b.p.m) {
        const size_t bytes = sm100_workspace_bytes(b);
        ASSERT_LE(bytes, planned) << rows << " rows, " << b.p.m << " of " << max_m;
        ASSERT_GE(bytes, kSm100LibraryBytes + sizeof(float) * sm100_panel_rows(b) * b.p.m)
            << rows << " rows, " << b.p.m << " tokens";
      }
    }
}

TEST(PlannedGemm, UnalignedRowsAreNamed) {
  const auto at = [](uintptr_t address) { return reinterpret_cast<const void*>(address); };
  EXPECT_TRUE(check_rows("X", at(4096), 64, 2).ok());
  EXPECT_TRUE(check_rows("X", at(4096), 16, 1).ok());
  EXPECT_FALSE(check_rows("X", at(4096), 8, 1).ok());
  EXPECT_FALSE(check_rows("X", at(4096), 68, 2).ok());
  const auto pointer = check_rows("X", at(4104), 64, 2);
  ASSERT_FALSE(pointer.ok());
  EXPECT_EQ(pointer.error().message,
            "rows of X must be 16-byte aligned, found an address of 8 mod 16 and a row stride "
            "of 64 elements of 2 bytes");
}

}  // namespace
}  // namespace mx8::cuda
