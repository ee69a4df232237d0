// The selector: which kernels run a layer, and why not the others. A pure function of its inputs.
#pragma once

#include <span>

#include "base/result.h"
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

}  // namespace mx8
