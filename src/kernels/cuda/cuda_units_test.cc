#include "kernels/cuda/cuda_units.h"

#include <gtest/gtest.h>

namespace mx8::cuda {
namespace {

TEST(CudaUnits, TargetsRunWhereTheirMachineCodeDoes) {
  EXPECT_TRUE(targets_run_on("80 90a", 80));
  EXPECT_TRUE(targets_run_on("80 90a", 86));
  EXPECT_TRUE(targets_run_on("80 90a", 89));
  EXPECT_TRUE(targets_run_on("80 90a", 90));
  EXPECT_FALSE(targets_run_on("80 90a", 87)) << "desktop code is not promised to run on a Jetson";
  EXPECT_FALSE(targets_run_on("80 90a", 75));
  EXPECT_FALSE(targets_run_on("80 90a", 100));
  EXPECT_FALSE(targets_run_on("86", 80));
  EXPECT_FALSE(targets_run_on("120a", 121)) << "an 'a' target runs on its own capability alone";
  EXPECT_FALSE(targets_run_on("", 90));
}

TEST(CudaUnits, WhatIsMissingNamesTheBuildThatHasIt) {
  EXPECT_EQ(missing_unit(Unit::kNone, 90), "");
  // No build has these.
  EXPECT_EQ(missing_unit(Unit::kSm120, 75),
            "not in this program: built without CUDA for SM75 (MX8_CUDA_ARCHITECTURES=75 has it)");
  EXPECT_EQ(
      missing_unit(Unit::kSm90, 121),
      "not in this program: built without CUDA for SM121 (MX8_CUDA_ARCHITECTURES=121a has it)");
}

}  // namespace
}  // namespace mx8::cuda
