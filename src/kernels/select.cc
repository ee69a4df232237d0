#include "kernels/select.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "pack/mma_fragment_map.h"

namespace mx8 {

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::kBlockScaled:
      return "block-scaled";
    case Backend::kFp8Folded:
      return "fp8-folded";
    case Backend::kW8A16:
      return "w8a16";
    case Backend::kCpuAmx:
      return "cpu-amx";
    case Backend::kCpuAvx512:
      return "cpu-avx512";
    case Backend::kCpuAvx2:
      return "cpu-avx2";
    case Backend::kCpuScalar:
      return "cpu-scalar";
    case Backend::kEmulation:
      return "emulation";
  }
  return "?";
}

std::string_view act_layout_name(ActLayout layout) {
  switch (layout) {
    case ActLayout::kF32:
      return "f32";
    case ActLayout::kBf16:
      return "bf16";
    case ActLayout::kFp16:
      return "fp16";
    case ActLayout::kFp8TokenRow:
      return "fp8-token-row";
    case ActLayout::kFp8TokenFragment:
      return "fp8-token-fragment";
    case ActLayout::kMxSf128x4:
      return "mx-sf128x4";
  }
  return "?";
}

const PlanBucket& LinearPlan::bucket(int64_t m) const {
  for (const PlanBucket& b : buckets) {
    if (m <= b.max_m) return b;
  }
  MX8_CHECK(false, "M above the plan's largest bucket", m, buckets.size());
  return buckets.back();
}

namespace {

bool is_cpu_backend(Backend backend) {
  return backend >= Backend::kCpuAmx && backend <= Backend::kCpuScalar;
}

// "" where the kernel is for this kind of device.
std::string refuse_device(const KernelInfo& kernel, const DeviceCaps& caps) {
  if (is_cpu_backend(kernel.backend) != (caps.kind == DeviceKind::kCpu)) {
    return caps.kind == DeviceKind::kCpu ? "needs a GPU" : "runs on a CPU";
  }
  if (caps.kind == DeviceKind::kCpu ||
      std::find(kernel.sms.begin(), kernel.sms.end(), caps.sm) != kernel.sms.end()) {
    return "";
  }
  std::vector<std::string> names;
  for (int sm : kernel.sms) names.push_back(str_cat("SM", sm));
  return str_cat("is for ", join(names, ", "), "; this is SM", caps.sm);
}

std::string refuse_problem(const KernelInfo& kernel, const DeviceCaps& caps,
                           const LinearProblem& problem, const Preference& preference) {
  std::string reason = kernel.refuse(caps, problem, preference);
  if (!reason.empty()) return reason;
  if (problem.experts > 0 && !kernel.grouped) return "has no grouped form for MoE layers";
  if (!problem.audit.scales_within(kernel.min_scale, kernel.max_scale)) {
    return str_cat("exact for scale bytes ", kernel.min_scale, "..", kernel.max_scale,
                   ", this matrix has ", problem.audit.min_scale, "..", problem.audit.max_scale);
  }
  return preference.any_build ? "" : cuda::missing_unit(kernel.unit, caps.sm);
}

std::vector<PlanBucket> buckets_of(const KernelInfo& kernel, const DeviceCaps& caps,
                                   const LinearProblem& problem) {
  std::vector<PlanBucket> buckets;
  if (kernel.backend == Backend::kW8A16 || kernel.backend == Backend::kFp8Folded) {
    for (cuda::GemmBucket& b : cuda::plan_gemm(gemm_problem(caps, problem, kernel.activations))) {
      buckets.push_back({b.max_m, &kernel, b.choice.name()});
    }
  } else {
    buckets.push_back(
        {problem.max_m, &kernel, kernel.backend == Backend::kEmulation ? "emulation" : ""});
  }
  return buckets;
}

Result<LinearPlan> select(const DeviceCaps& caps, const LinearProblem& problem,
                          const Preference& preference) {
  if (problem.n < 1 || problem.k < 1 || problem.k % kMxBlock != 0) {
    return invalid_argument(str_cat("an MXFP8 linear layer of ", problem.n, " x ", problem.k,
                                    " cannot be run: N must be at least 1 and K a positive multiple"
                                    " of 32"));
  }
  MX8_CHECK(problem.max_m >= 1 && problem.max_m <= INT32_MAX, problem.max_m);
  if (!problem.weight.is_mxfp8()) {
    return invalid_argument(str_cat("not an MXFP8 weight: ", describe(problem.weight)));
  }
  const auto wanted = [&](Backend backend) {
    return preference.backend.empty() || preference.backend == backend_name(backend);
  };
  LinearPlan plan;
  bool known = preference.backend.empty();
  for (const KernelInfo* kernel : kernel_registry()) {
    Refusal refused{kernel->name, kernel->backend, "", false};
    known |= wanted(kernel->backend);
    if (!wanted(kernel->backend)) {
      refused.reason = str_cat("not the demanded backend (", preference.backend, ")");
    } else {
      refused.reason = refuse_device(*kernel, caps);
      refused.elsewhere = !refused.reason.empty();
    }
    if (refused.reason.empty()) refused.reason = refuse_problem(*kernel, caps, problem, preference);
    if (refused.reason.empty()) {
      plan.backend = kernel->backend;
      plan.layout = kernel->layout;
      plan.activations = kernel->activations;
      plan.buckets = buckets_of(*kernel, caps, problem);
      plan.missing = cuda::missing_unit(kernel->unit, caps.sm);
      return plan;
    }
    plan.refused.push_back(std::move(refused));
  }
  // What is for other devices goes without saying, unless nothing else can be said.
  const bool here = std::any_of(plan.refused.begin(), plan.refused.end(), [&](const Refusal& r) {
    return wanted(r.backend) && !r.elsewhere;
  });
  std::string reasons;
  std::vector<std::string> names;
  for (const Refusal& r : plan.refused) {
    names.emplace_back(backend_name(r.backend));
    if (!wanted(r.backend) || (here && r.elsewhere)) continue;
    reasons += str_cat(reasons.empty() ? "" : "; ", r.kernel, ": ", r.reason);
  }
  if (!known) {
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return invalid_argument(str_cat("unknown linear backend '", preference.backend, "'; known are ",
                                    join(names, ", ")));
  }
  return unsupported(str_cat("no kernel runs an MXFP8 layer of ", problem.n, " x ", problem.k,
                             " on ", caps.name, ": ", reasons));
}

}  // namespace

Result<LinearPlan> select_mxfp8_linear_backend(const DeviceCaps& caps, const LinearProblem& problem,
                                               const Preference& preference) {
  MX8_CHECK(problem.experts == 0, problem.experts);
  return select(caps, problem, preference);
}

Result<LinearPlan> select_mxfp8_moe_backend(const DeviceCaps& caps, const LinearProblem& problem,
                                            const Preference& preference) {
  MX8_CHECK(problem.experts > 0, problem.experts);
  return select(caps, problem, preference);
}

cuda::GemmProblem gemm_problem(const DeviceCaps& caps, const LinearProblem& problem,
                               ActLayout layout) {
  cuda::GemmProblem out;
  out.act = layout == ActLayout::kFp8TokenFragment ? cuda::Act::kFp8
            : layout == ActLayout::kFp16           ? cuda::Act::kFp16
                                                   : cuda::Act::kBf16;
  out.rows = fragment_packed_rows(problem.n, problem.order);
  out.k = problem.k;
  out.max_m = static_cast<int>(problem.max_m);
  out.sm = caps.sm;
  out.sms = caps.multiprocessors;
  return out;
}

std::string unverified(const DeviceCaps& caps, const LinearPlan& plan) {
  if (caps.kind == DeviceKind::kCpu || caps.sm == 90) return "";
  return plan.buckets.front().kernel->ran
             ? "compile-verified only on this kind of GPU: the kernel was run on an SM90 only"
             : "compile-verified only: never run on this kind of GPU";
}

}  // namespace mx8
