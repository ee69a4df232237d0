#include "kernels/select.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace mx8 {
namespace {

LinearProblem problem(int64_t n, int64_t k, ActivationScheme scheme = ActivationScheme::kNone) {
  LinearProblem p;
  p.n = n;
  p.k = k;
  p.weight = QuantScheme::mxfp8(scheme);
  return p;
}

// Capability x activation dtype x scheme x shape, one line each. Regenerate after a wanted change with
// MX8_WRITE_GOLDEN=1.
std::string selection_table() {
  std::ostringstream out;
  for (const std::string& device : forcible_caps()) {
    const DeviceCaps caps = forced_caps(device).value();
    for (DType activation : {DType::kBF16, DType::kF16}) {
      for (ActivationScheme scheme : {ActivationScheme::kNone, ActivationScheme::kDynamicMxfp8}) {
        for (auto [n, k] : {std::pair<int64_t, int64_t>{4096, 4096}, {32, 576}, {1, 32}}) {
          LinearProblem p = problem(n, k, scheme);
          p.activation = activation;
          const auto plan = select_mxfp8_linear_backend(caps, p);
          out << device << ' ' << dtype_name(activation) << ' ' << describe(p.weight) << ' ' << n
              << 'x' << k << ": ";
          if (!plan.ok()) {
            out << "none";
          } else {
            out << backend_name(plan->backend) << " in " << layout_name(plan->layout);
          }
          const auto& refused = plan.ok() ? plan->refused : std::vector<Refusal>{};
          for (const Refusal& r : refused) out << " | " << r.kernel << ": " << r.reason;
          out << '\n';
        }
      }
    }
  }
  return out.str();
}

TEST(Select, MatchesTheGoldenTable) {
  const std::string path = MX8_SOURCE_DIR "/tests/data/select_golden.txt";
  const std::string table = selection_table();
  if (env("MX8_WRITE_GOLDEN")) {
    std::ofstream(path) << table;
    GTEST_SKIP() << "golden written";
  }
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(table, golden.str());
}

TEST(Select, EveryRefusalHasAReasonAndEveryPlanReachesMaxM) {
  for (const std::string& device : forcible_caps()) {
    const auto plan = select_mxfp8_linear_backend(forced_caps(device).value(), problem(256, 256));
    if (!plan.ok()) continue;
    for (const Refusal& r : plan->refused) EXPECT_FALSE(r.reason.empty()) << r.kernel;
    EXPECT_EQ(plan->bucket(8192).max_m, 8192);
    EXPECT_EQ(plan->bucket(1).kernel->layout, plan->layout);
  }
}

TEST(Select, NeverPicksCodeThatTheDeviceLacks) {
  for (const std::string& device : forcible_caps()) {
    const DeviceCaps caps = forced_caps(device).value();
    const auto plan = select_mxfp8_linear_backend(
        caps, problem(4096, 4096, ActivationScheme::kDynamicMxfp8));
    if (!plan.ok()) continue;
    if (plan->backend == Backend::kBlockScaled) {
      EXPECT_TRUE(caps.sm >= 100) << device;
    }
    if (plan->backend == Backend::kFp8Folded) {
      EXPECT_TRUE(caps.sm == 89 || caps.sm == 90) << device;
    }
    if (caps.kind == DeviceKind::kCpu) {
      EXPECT_GE(plan->backend, Backend::kCpuAmx) << device;
      EXPECT_LE(plan->backend, Backend::kCpuScalar) << device;
    }
  }
}

TEST(Select, ScaleBytesOutsideTheExactRangeFallToASlowerKernel) {
  const DeviceCaps caps = forced_caps("cpu-avx2").value();
  LinearProblem p = problem(64, 64);
  p.audit.elements = 64 * 64;
  p.audit.min_scale = 110;
  p.audit.max_scale = 125;
  EXPECT_EQ(select_mxfp8_linear_backend(caps, p)->backend, Backend::kCpuAvx2);
  p.audit.max_scale = 250;
  const auto plan = select_mxfp8_linear_backend(caps, p);
  EXPECT_EQ(plan->backend, Backend::kCpuScalar);
  EXPECT_NE(plan->refused.back().reason.find("this matrix has 110..250"), std::string::npos);
}

TEST(Select, BadProblemsAndDemands) {
  const DeviceCaps caps = forced_caps("cpu-avx2").value();
  EXPECT_NE(select_mxfp8_linear_backend(caps, problem(8, 48)).error().message.find("multiple of 32"),
            std::string::npos);
  EXPECT_FALSE(select_mxfp8_linear_backend(caps, problem(0, 32)).ok());
  LinearProblem plain = problem(8, 32);
  plain.weight = QuantScheme::plain(DType::kBF16);
  EXPECT_FALSE(select_mxfp8_linear_backend(caps, plain).ok());
  Preference want;
  want.backend = "cpu-scalar";
  EXPECT_EQ(select_mxfp8_linear_backend(caps, problem(8, 32), want)->backend, Backend::kCpuScalar);
  want.backend = "w8a16";
  EXPECT_NE(select_mxfp8_linear_backend(caps, problem(8, 32), want).error().message.find("needs a GPU"),
            std::string::npos);
  want.backend = "marlin";
  EXPECT_NE(select_mxfp8_linear_backend(caps, problem(8, 32), want).error().message.find("cpu-avx2"),
            std::string::npos);
}

TEST(Select, MoeLayersNeedAGroupedKernel) {
  LinearProblem p = problem(1536, 2048);
  p.experts = 128;
  EXPECT_EQ(select_mxfp8_moe_backend(forced_caps("cpu-avx2").value(), p)->backend, Backend::kCpuAvx2);
}

}  // namespace
}  // namespace mx8
