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

const Preference kAnyBuild{"", ActivationMode::kAuto, true};

void print_plan(std::ostream& out, const Result<LinearPlan>& plan) {
  if (!plan.ok()) {
    out << "none: " << plan.error().message << '\n';
    return;
  }
  out << backend_name(plan->backend) << ' ' << plan->buckets.front().kernel->name << " in "
      << layout_name(plan->layout) << " from " << act_layout_name(plan->activations);
  for (const Refusal& r : plan->refused) {
    if (r.elsewhere) continue;  // one sentence each, in the lines of demanded backends
    out << " | " << r.kernel << ": " << r.reason;
  }
  out << '\n';
}

// Capability x activation dtype x scheme x shape, then capability x activation mode x dtype x
// demanded backend, one line each, as a program built for every GPU decides. Regenerate after a
// wanted change with MX8_WRITE_GOLDEN=1.
std::string selection_table() {
  std::ostringstream out;
  for (const std::string& device : forcible_caps()) {
    const DeviceCaps caps = forced_caps(device).value();
    for (DType activation : {DType::kBF16, DType::kF16}) {
      for (ActivationScheme scheme : {ActivationScheme::kNone, ActivationScheme::kDynamicMxfp8}) {
        for (auto [n, k] : {std::pair<int64_t, int64_t>{4096, 4096}, {32, 576}, {1, 32}}) {
          LinearProblem p = problem(n, k, scheme);
          p.activation = activation;
          out << device << ' ' << dtype_name(activation) << ' ' << describe(p.weight) << ' ' << n
              << 'x' << k << ": ";
          print_plan(out, select_mxfp8_linear_backend(caps, p, kAnyBuild));
        }
      }
    }
  }
  for (const std::string& device : forcible_caps()) {
    const DeviceCaps caps = forced_caps(device).value();
    for (auto [mode, mode_name] : {std::pair{ActivationMode::kAuto, "auto"},
                                   {ActivationMode::kBf16, "bf16"},
                                   {ActivationMode::kFp8, "fp8"}}) {
      for (DType activation : {DType::kBF16, DType::kF16}) {
        std::string_view last;
        for (const KernelInfo* kernel : kernel_registry()) {
          if (backend_name(kernel->backend) == last) continue;
          last = backend_name(kernel->backend);
          LinearProblem p = problem(4096, 4096);
          p.activation = activation;
          const Preference want{std::string(last), mode, true};
          const auto plan = select_mxfp8_linear_backend(caps, p, want);
          out << device << " --activations " << mode_name << ' '
              << dtype_name(activation) << ' ' << last << ": ";
          if (plan.ok()) {
            out << plan->buckets.front().kernel->name << '\n';
          } else {
            print_plan(out, plan);
          }
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
    const auto plan =
        select_mxfp8_linear_backend(forced_caps(device).value(), problem(256, 256), kAnyBuild);
    if (!plan.ok()) continue;
    const bool cpu = forced_caps(device)->kind == DeviceKind::kCpu;
    for (const Refusal& r : plan->refused) {
      EXPECT_FALSE(r.reason.empty()) << r.kernel;
      EXPECT_NE(r.reason, cpu ? "runs on a CPU" : "needs a GPU") << device << " " << r.kernel;
    }
    EXPECT_EQ(plan->bucket(8192).max_m, 8192);
    EXPECT_EQ(plan->bucket(1).kernel->layout, plan->layout);
  }
}

TEST(Select, NeverPicksCodeThatTheDeviceLacks) {
  for (const std::string& device : forcible_caps()) {
    const DeviceCaps caps = forced_caps(device).value();
    const auto plan = select_mxfp8_linear_backend(
        caps, problem(4096, 4096, ActivationScheme::kDynamicMxfp8), kAnyBuild);
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

LinearPlan plan_for(const char* device, const LinearProblem& p, ActivationMode mode) {
  const auto plan =
      select_mxfp8_linear_backend(forced_caps(device).value(), p, {"", mode, true});
  EXPECT_TRUE(plan.ok()) << device << ": " << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? *plan : LinearPlan{};
}

std::string refusal_of(const LinearPlan& plan, const std::string& kernel) {
  for (const Refusal& r : plan.refused) {
    if (r.kernel == kernel) return r.reason;
  }
  return "not refused";
}

TEST(Select, Fp8ModeTakesTheTensorCoresOfTheDevice) {
  const LinearProblem p = problem(4096, 4096);
  for (auto [device, kernel] : {std::pair{"sm89", "sm89_fp8_gemm"},
                                {"sm90", "sm90_fp8_gemm"},
                                {"sm100", "sm100_mxfp8_gemm"},
                                {"sm103", "sm100_mxfp8_gemm"},
                                {"sm120", "sm120_mxfp8_gemm"},
                                {"sm121", "sm120_mxfp8_gemm"},
                                {"sm80", "sm80_mxfp8_gemm_bf16"},
                                {"sm86", "sm80_mxfp8_gemm_bf16"}}) {
    const LinearPlan plan = plan_for(device, p, ActivationMode::kFp8);
    ASSERT_FALSE(plan.buckets.empty());
    EXPECT_STREQ(plan.buckets.front().kernel->name, kernel) << device;
  }
  // A W8A8 checkpoint asks for the same; --activations bf16 forbids it.
  const LinearProblem w8a8 = problem(4096, 4096, ActivationScheme::kDynamicMxfp8);
  EXPECT_EQ(plan_for("sm90", w8a8, ActivationMode::kAuto).backend, Backend::kFp8Folded);
  EXPECT_EQ(plan_for("sm100", w8a8, ActivationMode::kAuto).backend, Backend::kBlockScaled);
  const LinearPlan forbidden = plan_for("sm90", w8a8, ActivationMode::kBf16);
  EXPECT_EQ(forbidden.backend, Backend::kW8A16);
  EXPECT_EQ(refusal_of(forbidden, "sm90_fp8_gemm"),
            "quantises activations, and --activations bf16 forbids it");
  EXPECT_EQ(refusal_of(plan_for("sm90", p, ActivationMode::kAuto), "sm90_fp8_gemm"),
            "quantises activations, and the checkpoint does not ask for it (--activations fp8 does)");
}

TEST(Select, BucketsOfGpuKernelsAreThoseOfTheMeasuredPlan) {
  for (const char* device : {"sm80", "sm89", "sm90", "sm120"}) {
    for (DType type : {DType::kBF16, DType::kF16}) {
      for (ActivationMode mode : {ActivationMode::kBf16, ActivationMode::kFp8}) {
        for (RowOrder order : {RowOrder::kPlain, RowOrder::kGateUpInterleaved}) {
          const DeviceCaps caps = forced_caps(device).value();
          LinearProblem p = problem(2052, 2048);
          p.activation = type;
          p.order = order;
          p.max_m = 3000;
          const LinearPlan plan = plan_for(device, p, mode);
          if (plan.backend == Backend::kBlockScaled) continue;
          const auto want = cuda::plan_gemm(
              {plan.backend == Backend::kFp8Folded ? cuda::Act::kFp8
               : type == DType::kF16               ? cuda::Act::kFp16
                                                   : cuda::Act::kBf16,
               order == RowOrder::kPlain ? 2052 : 2064, 2048, 3000, caps.sm, caps.multiprocessors});
          ASSERT_EQ(plan.buckets.size(), want.size()) << device;
          for (size_t i = 0; i < want.size(); ++i) {
            EXPECT_EQ(plan.buckets[i].max_m, want[i].max_m);
            EXPECT_EQ(plan.buckets[i].instance, want[i].choice.name());
            EXPECT_EQ(plan.buckets[i].kernel->layout, plan.layout);
          }
          EXPECT_EQ(plan.bucket(3000).max_m, 3000);
        }
      }
    }
  }
}

TEST(Select, MatricesOutsideAGpuKernelsExactRangeAreEmulated) {
  LinearProblem p = problem(4096, 4096);
  p.audit.elements = 4096 * 4096;
  p.audit.min_scale = 3;
  p.audit.max_scale = 134;
  EXPECT_EQ(plan_for("sm90", p, ActivationMode::kBf16).backend, Backend::kW8A16);
  p.audit.max_scale = 135;
  LinearPlan plan = plan_for("sm90", p, ActivationMode::kBf16);
  EXPECT_EQ(plan.backend, Backend::kEmulation);
  EXPECT_EQ(plan.layout, LayoutId::kMmaFragment);
  EXPECT_EQ(plan.bucket(1).instance, "emulation");
  EXPECT_EQ(refusal_of(plan, "sm90_mxfp8_gemm_bf16"),
            "exact for scale bytes 3..134, this matrix has 3..135");
  p.audit.min_scale = 2;
  p.audit.max_scale = 120;
  EXPECT_EQ(plan_for("sm80", p, ActivationMode::kBf16).backend, Backend::kEmulation);
  p.audit.max_scale = 247;
  EXPECT_FALSE(select_mxfp8_linear_backend(forced_caps("sm90").value(), p, kAnyBuild).ok())
      << "448 * 2^120 is above the largest BF16";
}

TEST(Select, AMatrixThatDoesNotFoldKeepsItsScales) {
  LinearProblem p = problem(4096, 4096);
  p.audit.row_fold_error = 2e-5;
  p.audit.row_spread = 12;
  const LinearPlan plan = plan_for("sm90", p, ActivationMode::kFp8);
  EXPECT_EQ(plan.backend, Backend::kW8A16);
  EXPECT_EQ(refusal_of(plan, "sm90_fp8_gemm"),
            "row folding would change this matrix by 2e-05, the gate is 1e-05");
  // FP16 holds codes relative to the row's largest block, down to 2^-15.
  p.activation = DType::kF16;
  EXPECT_EQ(plan_for("sm90", p, ActivationMode::kBf16).backend, Backend::kW8A16);
  p.audit.row_spread = 15;
  EXPECT_EQ(plan_for("sm80", p, ActivationMode::kBf16).backend, Backend::kW8A16);
  p.audit.row_spread = 16;
  const auto none = select_mxfp8_linear_backend(forced_caps("sm90").value(), p, kAnyBuild);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("this matrix goes down to 2^-16"), std::string::npos)
      << none.error().message;
}

TEST(Select, GpusWithoutAKernelSayWhy) {
  struct Row {
    const char* device;
    DType activation;
    const char* reason;
  };
  for (const Row& row :
       {Row{"sm75", DType::kBF16, "SM75 has no BF16 tensor cores; FP16 activations would run"},
        {"sm87", DType::kBF16, "this is SM87"},
        {"sm110", DType::kBF16, "this is SM110"},
        {"sm90", DType::kF32, "takes BF16 activations, this layer has F32"}}) {
    LinearProblem p = problem(4096, 4096);
    p.activation = row.activation;
    const auto plan = select_mxfp8_linear_backend(forced_caps(row.device).value(), p, kAnyBuild);
    ASSERT_FALSE(plan.ok()) << row.device;
    EXPECT_NE(plan.error().message.find(row.reason), std::string::npos) << plan.error().message;
  }
  LinearProblem p = problem(4096, 4096);
  p.activation = DType::kF16;
  EXPECT_EQ(plan_for("sm75", p, ActivationMode::kAuto).backend, Backend::kEmulation);
  p = problem(128, 32800);
  EXPECT_EQ(refusal_of(plan_for("sm90", p, ActivationMode::kFp8), "sm90_fp8_gemm"),
            "quantises tokens of at most 32768 features, this layer has K 32800");
}

TEST(Select, WithoutCublasLtNothingNeedsIt) {
  DeviceCaps caps = forced_caps("sm90").value();
  caps.cublaslt_missing = "libcublasLt.so.13 cannot be opened (gone)";
  const auto plan = select_mxfp8_linear_backend(caps, problem(5120, 2048), kAnyBuild);
  ASSERT_TRUE(plan.ok());
  for (const PlanBucket& b : plan->buckets) EXPECT_NE(b.instance, "emulation") << b.max_m;
  Preference want = kAnyBuild;
  want.backend = "emulation";
  const auto emulation = select_mxfp8_linear_backend(caps, problem(5120, 2048), want);
  ASSERT_FALSE(emulation.ok());
  EXPECT_NE(emulation.error().message.find("cannot be opened (gone)"), std::string::npos);
}

// What a plan needs and this program lacks is a note where any build is asked about, and a refusal
// where the layer is to run.
TEST(Select, KernelsOfOtherBuildsAreNamedAndNotRun) {
  for (const char* device : {"sm80", "sm89", "sm90", "sm100", "sm120"}) {
    const DeviceCaps caps = forced_caps(device).value();
    const auto any = select_mxfp8_linear_backend(caps, problem(4096, 4096), kAnyBuild);
    ASSERT_TRUE(any.ok()) << device;
    const cuda::Unit unit = any->buckets.front().kernel->unit;
    EXPECT_EQ(any->missing, cuda::missing_unit(unit, caps.sm));
    Preference here;
    here.backend = backend_name(any->backend);
    const auto run = select_mxfp8_linear_backend(caps, problem(4096, 4096), here);
    EXPECT_EQ(run.ok(), any->missing.empty()) << device;
    if (!run.ok()) {
      EXPECT_NE(run.error().message.find(any->missing), std::string::npos) << run.error().message;
    }
  }
}

TEST(Select, PlansSayWhereTheirKernelsWereNeverRun) {
  const auto note = [](const char* device, DType type, ActivationMode mode) {
    LinearProblem p = problem(4096, 4096);
    p.activation = type;
    return unverified(forced_caps(device).value(), plan_for(device, p, mode));
  };
  EXPECT_EQ(note("sm90", DType::kBF16, ActivationMode::kFp8), "");
  EXPECT_EQ(unverified(forced_caps("cpu-avx2").value(),
                       plan_for("cpu-avx2", problem(64, 64), ActivationMode::kAuto)),
            "");
  for (const char* device : {"sm80", "sm86", "sm89"}) {
    EXPECT_EQ(note(device, DType::kBF16, ActivationMode::kFp8),
              "compile-verified only on this kind of GPU: the kernel was run on an SM90 only");
  }
  EXPECT_EQ(note("sm75", DType::kF16, ActivationMode::kAuto),
            "compile-verified only on this kind of GPU: the kernel was run on an SM90 only");
  for (const char* device : {"sm100", "sm103", "sm120", "sm121"}) {
    EXPECT_EQ(note(device, DType::kBF16, ActivationMode::kFp8),
              "compile-verified only: never run on this kind of GPU");
  }
}

}  // namespace
}  // namespace mx8
