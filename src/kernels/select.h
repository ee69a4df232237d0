// The selector: which kernels run a layer, and why not the others. A pure function of its inputs.
#pragma once

#include <span>

#include "base/result.h"
#include "kernels/cuda/gemm_plan.h"
#include "kernels/kernel_info.h"

namespace mx8 {

// All kernel families that this program knows, in order of preference: by backend, then by place.
std::span<const KernelInfo* const> kernel_registry();

// The plan for an MXFP8 linear layer on a device. An error when no backend can run it, or the
// demanded one (preference.backend) cannot: it lists every reason.
Result<LinearPlan> select_mxfp8_linear_backend(const DeviceCaps& caps, const LinearProblem& problem,
                                               const Preference& preference = {});

// The same for the experts of an MoE layer (problem.experts > 0).
Result<LinearPlan> select_mxfp8_moe_backend(const DeviceCaps& caps, const LinearProblem& problem,
                                            const Preference& preference = {});

// The problem whose plan_gemm() gave a GPU plan its buckets: for the launcher, and for what was
// measured of it. `layout` is the plan's activation layout: kBf16, kFp16 or kFp8TokenFragment.
cuda::GemmProblem gemm_problem(const DeviceCaps& caps, const LinearProblem& problem,
                               ActLayout layout);

// What the plan's kernels were never run on, for people: "" where they were run on this kind of
// device.
std::string unverified(const DeviceCaps& caps, const LinearPlan& plan);

}  // namespace mx8
