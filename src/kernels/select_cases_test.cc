// Kernel choice for the layers and devices of other engines' public bug reports, as a program built
// for every GPU decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/strings.h"
#include "kernels/select.h"
#include "shapes.h"

namespace mx8 {
namespace {

constexpr ActivationScheme kSchemes[] = {ActivationScheme::kNone, ActivationScheme::kDynamicMxfp8};
constexpr ActivationMode kModes[] = {ActivationMode::kAuto, ActivationMode::kBf16,
                                     ActivationMode::kFp8};

LinearProblem problem(int64_t n, int64_t k, ActivationScheme scheme = ActivationScheme::kNone,
                      DType activation = DType::kBF16, int experts = 0) {
  LinearProblem p;
  p.n = n;
  p.k = k;
  p.weight = QuantScheme::mxfp8(scheme);
  p.activation = activation;
  p.experts = experts;
  return p;
}

const Preference kAnyBuild{"", ActivationMode::kAuto, true};

Preference demanding(Backend backend) {
  return {std::string(backend_name(backend)), ActivationMode::kAuto, true};
}

Result<LinearPlan> choose(const DeviceCaps& caps, const LinearProblem& p,
                          const Preference& preference = kAnyBuild) {
  return p.experts > 0 ? select_mxfp8_moe_backend(caps, p, preference)
                       : select_mxfp8_linear_backend(caps, p, preference);
}

// Why no kernel of a backend runs the problem, "" where one does.
std::string reason_for(const DeviceCaps& caps, const LinearProblem& p, Backend backend) {
  const auto plan = choose(caps, p, demanding(backend));
  return plan.ok() ? "" : plan.error().message;
}

bool is_cpu(Backend backend) {
  return backend >= Backend::kCpuAmx && backend <= Backend::kCpuScalar;
}

// Every combination of what decides.
void for_each_problem(
    const std::function<void(const DeviceCaps&, const LinearProblem&, const Preference&)>& check) {
  for (const std::string& device : forcible_caps()) {
    const DeviceCaps caps = forced_caps(device).value();
    for (const auto [n, k] : shapes::awkward_shapes()) {
      for (const DType dtype : {DType::kBF16, DType::kF16}) {
        for (const ActivationScheme scheme : kSchemes) {
          for (const int experts : {0, 8, 60}) {
            for (const ActivationMode mode : kModes) {
              check(caps, problem(n, k, scheme, dtype, experts), {"", mode, true});
            }
          }
        }
      }
    }
  }
}

TEST(SelectCases, EveryLayerGetsAPlanOrAReasonForEachKernel) {
  for_each_problem(
      [](const DeviceCaps& caps, const LinearProblem& p, const Preference& preference) {
        const std::string what = str_cat(caps.name, " ", p.n, "x", p.k, " experts ", p.experts);
        const auto plan = choose(caps, p, preference);
        if (!plan.ok()) {
          const std::string& said = plan.error().message;
          EXPECT_NE(said.find(str_cat(p.n, " x ", p.k)), std::string::npos) << what << said;
          EXPECT_NE(said.find(caps.name), std::string::npos) << what << said;
          bool some = false;
          for (const KernelInfo* kernel : kernel_registry()) {
            if (std::find(kernel->sms.begin(), kernel->sms.end(), caps.sm) == kernel->sms.end())
              continue;
            some = true;
            EXPECT_NE(said.find(str_cat(kernel->name, ": ")), std::string::npos) << what << said;
          }
          if (!some) {
            EXPECT_NE(said.find(str_cat("SM", caps.sm)), std::string::npos) << what << said;
          }
          EXPECT_EQ(said.find('\n'), std::string::npos) << what << said;
          EXPECT_EQ(caps.kind, DeviceKind::kCuda) << what << ": a CPU runs every layer";
          return;
        }
        // Everything tried before the chosen kernel was refused, each with its reason.
        const KernelInfo* chosen = plan->bucket(1).kernel;
        const auto registry = kernel_registry();
        const auto place = std::find(registry.begin(), registry.end(), chosen) - registry.begin();
        ASSERT_EQ(std::ssize(plan->refused), place) << what;
        for (size_t i = 0; i < plan->refused.size(); ++i) {
          EXPECT_EQ(plan->refused[i].kernel, registry[i]->name) << what;
          EXPECT_FALSE(plan->refused[i].reason.empty()) << what << " " << registry[i]->name;
        }
        // What is packed and how the input is written follow the kernel that will run.
        EXPECT_EQ(plan->backend, chosen->backend) << what;
        int64_t last = 0;
        for (const PlanBucket& b : plan->buckets) {
          EXPECT_GT(b.max_m, last) << what;
          last = b.max_m;
          EXPECT_EQ(b.kernel->layout, plan->layout) << what;
          EXPECT_EQ(b.kernel->activations, plan->activations) << what;
          EXPECT_EQ(b.kernel->refuse(caps, p, preference), "") << what;
          EXPECT_TRUE(p.experts == 0 || b.kernel->grouped) << what;
        }
        EXPECT_EQ(last, p.max_m) << what;
      });
}

// Code for one generation of block-scaled or FP8 tensor cores does not run on another.
TEST(SelectCases, BackendsKeepToTheirGenerations) {
  for_each_problem(
      [](const DeviceCaps& caps, const LinearProblem& p, const Preference& preference) {
        const auto plan = choose(caps, p, preference);
        if (!plan.ok()) return;
        const int sm = caps.sm;
        switch (plan->backend) {
          case Backend::kBlockScaled:
            EXPECT_TRUE(sm == 100 || sm == 103 || sm == 120 || sm == 121) << sm;
            break;
          case Backend::kFp8Folded:
            EXPECT_TRUE(sm == 89 || sm == 90) << sm;
            break;
          case Backend::kW8A16:
            EXPECT_GE(sm, 80);
            break;
          case Backend::kEmulation:
            EXPECT_GE(sm, 75);
            break;
          default:
            EXPECT_EQ(caps.kind, DeviceKind::kCpu);
        }
        if (preference.activations == ActivationMode::kBf16) {
          EXPECT_NE(plan->backend, Backend::kBlockScaled) << sm;
          EXPECT_NE(plan->backend, Backend::kFp8Folded) << sm;
        }
        // The name says the lowest capability of the code.
        const std::string name = plan->bucket(1).kernel->name;
        if (name.starts_with("sm1")) {
          EXPECT_GE(sm, 100) << name;
        }
      });
}

// Ampere and later run every layer weight-only; experts wait for a grouped form.
TEST(SelectCases, WeightOnlyRunsFromAmpereOn) {
  for (const char* device : {"sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm120", "sm121"}) {
    const DeviceCaps caps = forced_caps(device).value();
    for (const auto [n, k] : shapes::awkward_shapes()) {
      for (const DType dtype : {DType::kBF16, DType::kF16}) {
        const auto plan = choose(caps, problem(n, k, ActivationScheme::kNone, dtype));
        ASSERT_TRUE(plan.ok()) << device << ": " << plan.error().message;
        EXPECT_EQ(plan->backend, Backend::kW8A16) << device << " " << n << "x" << k;
        EXPECT_EQ(plan->activations, dtype == DType::kF16 ? ActLayout::kFp16 : ActLayout::kBf16);
        const LinearProblem experts = problem(n, k, ActivationScheme::kNone, dtype, 8);
        const std::string reason = reason_for(caps, experts, Backend::kW8A16);
        EXPECT_TRUE(reason.empty() || reason.find("grouped") != std::string::npos) << reason;
      }
    }
  }
}

// No machine code is made for these: that is said at once, not found at the first launch.
TEST(SelectCases, DevicesWithoutCodeAreToldSo) {
  for (const char* device : {"sm87", "sm110"}) {
    const DeviceCaps caps = forced_caps(device).value();
    const auto plan = choose(caps, problem(4096, 4096));
    ASSERT_FALSE(plan.ok()) << device;
    EXPECT_NE(plan.error().message.find(str_cat("this is SM", caps.sm)), std::string::npos);
  }
}

TEST(SelectCases, TuringIsToldAtOnceWhatItLacks) {
  const DeviceCaps turing = forced_caps("sm75").value();
  for (const ActivationScheme scheme : kSchemes) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      const LinearProblem p = problem(4096, 4096, scheme, dtype);
      for (const Backend backend : {Backend::kBlockScaled, Backend::kFp8Folded, Backend::kW8A16})
        EXPECT_NE(reason_for(turing, p, backend).find("SM75"), std::string::npos);
      const std::string emulation = reason_for(turing, p, Backend::kEmulation);
      EXPECT_EQ(emulation.find("FP16 activations would run") != std::string::npos,
                dtype == DType::kBF16)
          << emulation;
      EXPECT_EQ(choose(turing, p).ok(), dtype == DType::kF16);
    }
  }
}

// The choice looks at the activation type before a byte is repacked: rows too wide for FP16 are
// refused by every kernel that would hold them in FP16, and run with BF16 activations.
TEST(SelectCases, Fp16NeedsRowsThatItCanHold) {
  LinearProblem p = problem(4096, 4096, ActivationScheme::kNone, DType::kF16);
  p.audit.elements = p.n * p.k;
  p.audit.min_scale = 100;
  p.audit.max_scale = 130;
  p.audit.row_spread = 20;
  for (const char* device : {"sm80", "sm86", "sm89", "sm90", "sm100", "sm120"}) {
    const DeviceCaps caps = forced_caps(device).value();
    for (const Backend backend : {Backend::kW8A16, Backend::kEmulation})
      EXPECT_NE(reason_for(caps, p, backend).find("2^-20"), std::string::npos) << device;
    LinearProblem bf16 = p;
    bf16.activation = DType::kBF16;
    EXPECT_EQ(choose(caps, bf16)->backend, Backend::kW8A16) << device;
  }
}

TEST(SelectCases, ACpuTouchesNoGpuKernel) {
  for (const char* device : {"cpu-scalar", "cpu-avx2", "cpu-avx512", "cpu-amx"}) {
    const DeviceCaps caps = forced_caps(device).value();
    for (const ActivationScheme scheme : kSchemes) {
      for (const int experts : {0, 8}) {
        const LinearProblem p = problem(2880, 2880, scheme, DType::kBF16, experts);
        const auto plan = choose(caps, p);
        ASSERT_TRUE(plan.ok());
        EXPECT_TRUE(is_cpu(plan->backend)) << device;
        for (const Backend backend : {Backend::kBlockScaled, Backend::kFp8Folded, Backend::kW8A16})
          EXPECT_NE(reason_for(caps, p, backend).find("needs a GPU"), std::string::npos) << device;
      }
    }
  }
}

// Shards and narrow experts that cut a block of 32 are refused with their numbers, on any device.
TEST(SelectCases, HalfBlocksAreRefusedWithTheirNumbers) {
  for (const std::string& device : forcible_caps()) {
    const DeviceCaps caps = forced_caps(device).value();
    for (const int64_t k : {0, -32, 1, 16, 48, 176, 232, 336, 464}) {
      for (const int experts : {0, 8}) {
        const auto plan =
            choose(caps, problem(256, k, ActivationScheme::kNone, DType::kBF16, experts));
        ASSERT_FALSE(plan.ok()) << device << " " << k;
        EXPECT_NE(plan.error().message.find(str_cat("256 x ", k)), std::string::npos);
        EXPECT_NE(plan.error().message.find("multiple of 32"), std::string::npos);
      }
    }
    EXPECT_FALSE(choose(caps, problem(0, 64)).ok());
    EXPECT_FALSE(choose(caps, problem(-8, 64)).ok());
  }
}

}  // namespace
}  // namespace mx8
