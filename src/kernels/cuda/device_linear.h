// One MXFP8 linear layer on a GPU: its packed weight, resident once, and its launch by number of
// tokens. No CUDA header is needed to include this one. A program built without CUDA has it too:
// load() then gives that as its reason.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"
#include "kernels/kernel_info.h"
#include "tensor/matrix.h"

namespace mx8::cuda {

struct DeviceLinearCall {
  Mat x;         // [M, K] of the problem's activation type; rows 16-byte aligned
  Mat y;         // [M, N], or [M, N/2] where gate and up are interleaved: BF16, F16 or F32
  Mat residual;  // added when data is set: [M, N] of y's type (not F32); may be y
};

class DeviceLinear {
 public:
  DeviceLinear();
  DeviceLinear(DeviceLinear&&) noexcept;
  DeviceLinear& operator=(DeviceLinear&&) noexcept;
  ~DeviceLinear();

  // Packs `parts`, stacked along N, on GPU caps.ordinal as the plan says; done when it returns. The
  // matrix passed the audit that the plan was made from. While it loads, the GPU also holds the
  // bytes of the file. `bias` is FP32 [N] in the order of the parts, or empty.
  static Result<DeviceLinear> load(const DeviceCaps& caps, const LinearProblem& problem,
                                   const LinearPlan& plan, std::span<const QuantView> parts,
                                   std::span<const float> bias);

  bool loaded() const { return impl_ != nullptr; }
  size_t resident_bytes() const;
  // Device memory that a launch of any M needs. It may be shared by layers that run one after the
  // other on one stream; its bytes are 0 before the first of them.
  size_t workspace_bytes() const;

  // Asynchronous on `stream` (a cudaStream_t of the GPU, which is current). Allocates nothing,
  // synchronises nothing, can be captured. Several threads may launch, each with a workspace.
  Result<void> launch(const DeviceLinearCall& call, void* workspace, void* stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mx8::cuda
