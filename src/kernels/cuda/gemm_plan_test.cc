#include "kernels/cuda/gemm_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/strings.h"
#include "shapes.h"

namespace mx8::cuda {
namespace {

TEST(GemmPlan, NamesRoundTrip) {
  for (const char* name :
       {"stream/g1w4s3/s4", "gemm/128x256/whole", "gemm/128x128/streamk", "gemm/128x128/streamk1",
        "gemm/64x64lc/cluster3", "sm80/128x64/s2", "emulation"})
    EXPECT_EQ(GemmChoice::parse(name).name(), name);
}

TEST(GemmPlan, WhatIsNoNameIsAnError) {
  for (const char* name : {"",
                           "/",
                           "//",
                           "gemm",
                           "gemm/128x256",
                           "gemm/128x256/",
                           "gemm/128x256/wholes",
                           "stream//",
                           "stream/g1w4s3/",
                           "stream/g1w4s3/4",
                           "stream/g1w4s3/s",
                           "stream/g1w4s3/s0",
                           "stream/g1w4s3/s-1",
                           "stream/g1w4s3/s4x",
                           "sm80/128x64/s99999999999",
                           "sm80/128x64/cluster2",
                           "gemm/64x64lc/cluster",
                           "gemm/64x64lc/cluster0",
                           "gemm/64x64lc/s3",
                           "marlin/a/b",
                           "emulation/"}) {
    const auto choice = GemmChoice::try_parse(name);
    ASSERT_FALSE(choice.ok()) << name;
    EXPECT_NE(choice.error().message.find(str_cat("'", name, "'")), std::string::npos) << name;
  }
}

TEST(GemmPlan, MeasuredShapesGetTheirMeasuredKernels) {
  ASSERT_GT(gemm_measurements().size(), 100u);
  for (const GemmMeasurement& r : gemm_measurements()) {
    const auto plan = plan_gemm({r.act, r.rows, r.k, 8192, 90, 132});
    EXPECT_EQ(choice_for(plan, r.m).name(), r.kernel) << r.rows << "x" << r.k << " M " << r.m;
  }
}

TEST(GemmPlan, BucketsCoverEveryTokenCountOnce) {
  using Family = GemmChoice::Family;
  for (Act act : {Act::kBf16, Act::kFp16, Act::kFp8})
    for (int sm : {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121})
      for (const auto [rows, k] : shapes::awkward_shapes())
        for (int max_m : {1, 3, 16, 100, 8192, 20000}) {
          const auto plan = plan_gemm({act, rows, k, max_m, sm, 132});
          int last = 0;
          for (const GemmBucket& b : plan) {
            ASSERT_GT(b.max_m, last);
            last = b.max_m;
            ASSERT_EQ(GemmChoice::parse(b.choice.name()), b.choice);
            if (b.choice.family == Family::kStream) {
              ASSERT_LE(b.max_m, 8 * (b.choice.instance[1] - '0'));
            }
            if (sm < 80 || (act == Act::kFp8 && sm != 89 && sm != 90)) {
              ASSERT_EQ(b.choice.family, Family::kEmulation) << sm;
            } else if (sm != 90) {
              ASSERT_EQ(b.choice.family, Family::kSm80) << sm;
            }
          }
          ASSERT_EQ(last, max_m);
        }
}

TEST(GemmPlan, PartsOfKNeverExceedK) {
  for (int64_t k : {32, 64, 256, 512, 2048})
    for (int sm : {80, 90})
      for (const GemmBucket& b : plan_gemm({Act::kBf16, 128, k, 8192, sm, 132}))
        if (b.choice.parts > 1) {
          EXPECT_GE(k / 256, b.choice.parts) << b.choice.name();
        }
}

// A shape of which only the neighbours were measured runs what a neighbour runs, K shared out to
// match.
TEST(GemmPlan, UnmeasuredShapesFollowTheNearestMeasuredOne) {
  const auto plan = plan_gemm({Act::kBf16, 5120, 2560, 64, 90, 132});  // next to 5120 x 2048
  std::set<std::string> families;
  for (const GemmBucket& b : plan) families.insert(b.choice.name().substr(0, 6));
  EXPECT_TRUE(families.count("stream"));
  for (const GemmMeasurement& r : gemm_measurements())
    if (r.act == Act::kBf16 && r.rows == 5120 && r.k == 2048 && r.m == 16) {
      EXPECT_EQ(choice_for(plan, 16).instance, GemmChoice::parse(r.kernel).instance);
    }
}

// Every capability gets kernels that its instruction set has; unknown newer ones run the portable
// ones.
TEST(GemmPlan, FamiliesFollowTheCapability) {
  for (int sm : {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121, 999})
    for (const GemmBucket& b : plan_gemm({Act::kBf16, 4096, 4096, 8192, sm, 100})) {
      const bool sm90_code = b.choice.family == GemmChoice::Family::kStream ||
                             b.choice.family == GemmChoice::Family::kGemm;
      EXPECT_EQ(sm90_code && sm != 90, false) << sm << " " << b.choice.name();
      EXPECT_EQ(b.choice.family == GemmChoice::Family::kSm80, sm >= 80 && sm != 90)
          << sm << " " << b.choice.name();
    }
}

// Decoding to BF16 and calling cuBLASLt was the fastest nowhere, so that no plan of a GPU that has
// kernels depends on the library being there.
TEST(GemmPlan, NothingIsEmulatedWhereThereAreKernels) {
  for (const GemmMeasurement& r : gemm_measurements()) EXPECT_STRNE(r.kernel, "emulation");
  for (int64_t rows : {64, 2048, 5120, 57344})
    for (Act act : {Act::kBf16, Act::kFp16, Act::kFp8})
      for (const GemmBucket& b : plan_gemm({act, rows, 2048, 8192, 90, 132}))
        EXPECT_NE(b.choice.family, GemmChoice::Family::kEmulation) << rows << " M " << b.max_m;
}

// K = 576 is no multiple of 128; it must not fall off the path that K = 640 takes.
TEST(GemmPlan, KThatIsNoMultipleOf128TakesTheSamePath) {
  for (int m : {1, 16, 64, 256, 2048}) {
    const GemmChoice a = choice_for(plan_gemm({Act::kBf16, 2304, 576, 8192, 90, 132}), m);
    const GemmChoice b = choice_for(plan_gemm({Act::kBf16, 2304, 640, 8192, 90, 132}), m);
    EXPECT_EQ(a.instance, b.instance) << m;
    EXPECT_EQ(a.split, b.split) << m;
  }
}

TEST(GemmPlan, RatioToBf16IsTheMeasuredOne) {
  for (const GemmMeasurement& r : gemm_measurements())
    EXPECT_FLOAT_EQ(
        static_cast<float>(measured_ratio_to_bf16({r.act, r.rows, r.k, 8192, 90, 132}, r.m)),
        static_cast<float>(static_cast<double>(r.cublas_us) / static_cast<double>(r.us)));
  EXPECT_EQ(measured_ratio_to_bf16({Act::kBf16, 4096, 4096, 8, 80, 108}, 1), 0) << "another GPU";
  EXPECT_EQ(measured_ratio_to_bf16({Act::kFp16, 4096, 4096, 8, 90, 132}, 1), 0) << "not measured";
  EXPECT_EQ(measured_ratio_to_bf16({Act::kBf16, 128, 128, 8, 90, 132}, 1), 0) << "no such shape";
  EXPECT_GT(measured_ratio_to_bf16({Act::kBf16, 4096, 3072, 8, 90, 132}, 1), 0) << "a neighbour";
}

}  // namespace
}  // namespace mx8::cuda
