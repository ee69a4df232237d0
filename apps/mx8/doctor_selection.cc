#include "doctor_selection.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace mx8 {

namespace {

constexpr ShownShape kShapes[] = {
    {"linear 4096 x 4096", 4096, 4096, 0},
    {"linear 5120 x 2048", 5120, 2048, 0},
    {"linear 576 x 1536", 576, 1536, 0},
    {"linear 8 x 64", 8, 64, 0},
    {"128 experts of 1536 x 2048", 1536, 2048, 128},
};

constexpr int kShownTokens[] = {1, 16, 64, 256, 1024, 4096};

std::vector<ShownSelection::Slower> slower_than_bf16(const DeviceCaps& caps,
                                                     const LinearProblem& problem,
                                                     const LinearPlan& plan) {
  std::vector<ShownSelection::Slower> out;
  if (plan.backend != Backend::kW8A16 && plan.backend != Backend::kFp8Folded) return out;
  for (int m : kShownTokens) {
    const double measured =
        cuda::measured_ratio_to_bf16(gemm_problem(caps, problem, plan.activations), m);
    const double ratio = std::round(measured * 100) / 100;  // as shown: 0.999 is not slower
    if (measured > 0 && ratio < 1) out.push_back({m, ratio});
  }
  return out;
}

ShownSelection select_for(const DeviceCaps& caps, const ShownShape& shape, ActivationScheme scheme,
                          const Preference& preference) {
  LinearProblem p;
  p.n = shape.n;
  p.k = shape.k;
  p.experts = shape.experts;
  p.weight = QuantScheme::mxfp8(scheme);
  p.activation = caps.kind == DeviceKind::kCpu ? DType::kF32
                 : caps.sm < 80                ? DType::kF16
                                               : DType::kBF16;
  auto plan = shape.experts > 0 ? select_mxfp8_moe_backend(caps, p, preference)
                                : select_mxfp8_linear_backend(caps, p, preference);
  ShownSelection out{&shape, p, std::move(plan), {}};
  if (out.plan.ok()) out.slower = slower_than_bf16(caps, p, *out.plan);
  return out;
}

bool quantised(const ShownSelection& s) {
  return s.problem.weight.activations != ActivationScheme::kNone;
}

void print_gpu_plan(const DeviceCaps& caps, const ShownSelection& s) {
  int64_t from = 1;
  for (const PlanBucket& b : s.plan->buckets) {
    if (b.instance.empty()) continue;
    std::printf("    M %5lld .. %-5lld  %s\n", static_cast<long long>(from),
                static_cast<long long>(b.max_m), b.instance.c_str());
    from = b.max_m + 1;
  }
  std::vector<std::string> slower;
  for (const auto& [m, ratio] : s.slower) {
    char text[32];
    std::snprintf(text, sizeof text, "M=%d (%.2fx)", m, ratio);
    slower.emplace_back(text);
  }
  if (!slower.empty()) {
    std::printf("    slower than BF16 cuBLAS at %s, measured on an H200\n",
                join(slower, ", ").c_str());
  }
  const std::string note = unverified(caps, *s.plan);
  if (!note.empty()) std::printf("    %s\n", note.c_str());
  if (!s.plan->missing.empty()) std::printf("    %s\n", s.plan->missing.c_str());
}

}  // namespace

std::vector<ShownSelection> shown_selections(const DeviceCaps& caps, Preference preference) {
  preference.any_build = caps.forced;
  std::vector<ActivationScheme> schemes = {ActivationScheme::kNone};
  if (caps.kind == DeviceKind::kCuda && preference.activations == ActivationMode::kAuto) {
    schemes.push_back(ActivationScheme::kDynamicMxfp8);
  }
  std::vector<ShownSelection> out;
  for (const ShownShape& shape : kShapes) {
    for (ActivationScheme scheme : schemes) {
      out.push_back(select_for(caps, shape, scheme, preference));
    }
  }
  return out;
}

void print_selections(const DeviceCaps& caps, const std::vector<ShownSelection>& selections) {
  // A preference for activations overrules the weights' scheme, so that is named only where both
  // are shown.
  const bool both = std::any_of(selections.begin(), selections.end(), quantised);
  for (const ShownSelection& s : selections) {
    const std::string what = str_cat(s.shape->what, !both          ? ""
                                                    : quantised(s) ? ", w8a8"
                                                                   : ", w8a16");
    if (!s.plan.ok()) {
      std::printf("%-34s none: %s\n", what.c_str(), s.plan.error().message.c_str());
      continue;
    }
    std::printf("%-34s %s (%s), weights in %s\n", what.c_str(),
                std::string(backend_name(s.plan->backend)).c_str(),
                s.plan->buckets.front().kernel->name,
                std::string(layout_name(s.plan->layout)).c_str());
    if (caps.kind == DeviceKind::kCuda) print_gpu_plan(caps, s);
  }
  const ShownSelection& first = selections.front();
  if (first.plan.ok() && !first.plan->refused.empty()) {
    std::printf("not chosen for the first:\n");
    for (const Refusal& r : first.plan->refused) {
      std::printf("  %-26s %s\n", r.kernel.c_str(), r.reason.c_str());
    }
  }
}

nlohmann::ordered_json selections_json(const DeviceCaps& caps,
                                       const std::vector<ShownSelection>& selections) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const ShownSelection& s : selections) {
    Json j;
    j["problem"] = s.shape->what;
    j["weights"] = describe(s.problem.weight);
    if (!s.plan.ok()) {
      j["error"] = s.plan.error().message;
      out.push_back(j);
      continue;
    }
    j["backend"] = backend_name(s.plan->backend);
    j["kernel"] = s.plan->buckets.front().kernel->name;
    j["layout"] = layout_name(s.plan->layout);
    j["activations"] = act_layout_name(s.plan->activations);
    j["buckets"] = Json::array();
    for (const PlanBucket& b : s.plan->buckets) {
      j["buckets"].push_back({{"max_m", b.max_m}, {"instance", b.instance}});
    }
    j["slower_than_bf16_cublas"] = Json::array();
    for (const auto& [m, ratio] : s.slower) {
      j["slower_than_bf16_cublas"].push_back({{"m", m}, {"ratio", ratio}});
    }
    j["unverified"] = unverified(caps, *s.plan);
    j["missing"] = s.plan->missing;
    j["refused"] = Json::array();
    for (const Refusal& r : s.plan->refused) {
      j["refused"].push_back({{"kernel", r.kernel}, {"reason", r.reason}});
    }
    out.push_back(j);
  }
  return out;
}

}  // namespace mx8
