// Linear: the one control point of a linear layer. It audits the weight, selects the kernels, packs
// once and applies. y[M, N] = x[M, K] * W[N, K]^T (+ bias), then the epilogue.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "kernels/cuda/device_linear.h"
#include "kernels/select.h"
#include "runtime/exec.h"
#include "tensor/matrix.h"
#include "tensor/quant.h"

namespace mx8 {

enum class EpilogueKind : uint8_t {
  kNone,
  kResidual,  // y = residual + x W^T; residual may be y itself
  kSiluMul,   // W is gate and up interleaved: y[m, i] = silu(gate_i) * up_i, y has N/2 columns
};

struct Epilogue {
  EpilogueKind kind = EpilogueKind::kNone;
  Mat residual;  // kResidual: [M, N] of y's type
};

// What a layer is to be, before its weights are read.
struct LinearSpec {
  std::string name;                   // for messages: "model.layers.0.self_attn.qkv_proj"
  RowOrder order = RowOrder::kPlain;  // kGateUpInterleaved: two parts, gate then up
  int64_t max_m = 8192;
  DType activation = DType::kF32;
  Preference preference;
};

class Linear {
 public:
  // Builds the layer from `parts` stacked along N in the given order (q, k, v; gate, up; or one). The
  // parts have the same K and the same scheme, which may be MXFP8 or, on a CPU, plain (BF16, F16, F32).
  // The parts' memory may go once this returns. `bias` is FP32 [N] or empty; it is copied. On a GPU
  // (caps of detect_cuda_caps, spec.activation BF16 or F16) the packed weight lies there, once.
  static Result<Linear> load(const DeviceCaps& caps, const LinearSpec& spec,
                             std::span<const QuantView> parts, std::span<const float> bias = {});

  // x [M, K], y [M, N] ([M, N/2] for kSiluMul), any row strides. M = 0 does nothing.
  // On a CPU x and y are F32, and the result of a row depends only on that row: not on M, nor on the
  // number of threads. On a GPU x is of spec.activation with 16-byte aligned rows, y is BF16, F16 or
  // F32 (F32: no residual), M is at most spec.max_m; the kernel follows M and with it the order of
  // sums. The call is asynchronous on exec.stream, allocates nothing and can be captured in a graph.
  void apply(const Exec& exec, const Mat& x, const Mat& y, const Epilogue& epilogue = {}) const;

  // One row of the weight in FP32: embedding look-up where the embedding is a tied or quantised head.
  void decode_row(int64_t n, float* out) const;

  int64_t n() const { return weight_.n(); }
  int64_t k() const { return weight_.k(); }
  const std::string& name() const { return name_; }
  const QuantScheme& scheme() const { return weight_.scheme(); }
  size_t resident_bytes() const {
    return weight_.size() + bias_.size() * sizeof(float) + device_.resident_bytes();
  }
  // Bytes of Exec::device_workspace that apply() needs; 0 on a CPU.
  size_t workspace_bytes() const { return device_.workspace_bytes(); }
  // The plan of an MXFP8 layer; plain layers have an empty one.
  const LinearPlan& plan() const { return plan_; }

 private:
  std::string name_;
  DType activation_ = DType::kF32;
  PackedWeight weight_;  // on a GPU its shape alone
  std::vector<float> bias_;
  cuda::DeviceLinear device_;
  LinearPlan plan_;
};

// The experts of an MoE layer: E matrices of the same shape, run together over rows sorted by expert.
class GroupedLinear {
 public:
  // `parts` holds parts_per_expert views for expert 0, then for expert 1, ... (2 for gate and up). An
  // expert is packed as soon as its parts arrive, so that a loader may let them go: call begin once,
  // then add for each expert in order, then end.
  static Result<GroupedLinear> begin(const DeviceCaps& caps, const LinearSpec& spec, int experts);
  Result<void> add(std::span<const QuantView> parts);
  Result<void> end();

  // Rows offsets[e] .. offsets[e + 1] - 1 belong to expert e (offsets has E + 1 entries). Row r of
  // the input is x[rows[r]], or x[r] where rows is empty; row r of the output is y[r].
  void apply(const Exec& exec, const Mat& x, std::span<const int32_t> offsets,
             std::span<const int32_t> rows, const Mat& y, const Epilogue& epilogue = {}) const;

  int experts() const { return static_cast<int>(weights_.size()); }
  int64_t n() const { return weights_.front().n(); }
  int64_t k() const { return weights_.front().k(); }
  const std::string& name() const { return spec_.name; }
  const QuantScheme& scheme() const { return weights_.front().scheme(); }
  size_t resident_bytes() const;
  const LinearPlan& plan() const { return plan_; }

 private:
  DeviceCaps caps_;
  LinearSpec spec_;
  int expected_ = 0;
  std::vector<PackedWeight> weights_;
  LinearPlan plan_;
};

}  // namespace mx8
