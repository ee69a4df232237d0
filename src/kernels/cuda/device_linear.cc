#include "kernels/cuda/device_linear.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "kernels/cuda/block_scaled_gemm.h"
#include "kernels/cuda/gemm_launch.h"
#include "kernels/cuda/pack_mma_fragment.h"
#include "kernels/cuda/quantize_mx_tokens.h"
#include "kernels/cuda/quantize_tokens.h"
#include "kernels/select.h"
#include "pack/sm100_weight.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_scope.h"

namespace mx8::cuda {
namespace {

constexpr size_t kAlign = 256;
size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

Result<void> checked(const char* what, cudaError_t e) {
  if (e == cudaSuccess) return {};
  return internal_error(str_cat(what, ": ", cudaGetErrorString(e)));
}

FragmentKind kind_of(ActLayout layout) {
  return layout == ActLayout::kBf16   ? FragmentKind::kBf16
         : layout == ActLayout::kFp16 ? FragmentKind::kFp16
                                      : FragmentKind::kFolded;
}

Act type_of(DType dtype) { return dtype == DType::kF16 ? Act::kFp16 : Act::kBf16; }

Out out_of(DType dtype) {
  MX8_CHECK(dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32,
            dtype_name(dtype));
  return dtype == DType::kBF16 ? Out::kBf16 : dtype == DType::kF16 ? Out::kFp16 : Out::kFp32;
}

// The bias in packed row order, 0 in padding rows.
std::vector<float> packed_bias(std::span<const float> bias, const FragmentShape& shape,
                               int64_t rows) {
  std::vector<float> out(static_cast<size_t>(rows), 0.f);
  for (int64_t p = 0; p < rows; ++p) {
    const int64_t row = p < shape.packed_rows() ? fragment_source_row(p, shape.n, shape.order) : -1;
    if (row >= 0) out[p] = bias[row];
  }
  return out;
}

}  // namespace

struct DeviceLinear::Impl {
  DeviceCaps caps;
  Backend backend = Backend::kEmulation;
  DType activation = DType::kBF16;
  int64_t max_m = 0;
  FragmentShape shape;   // of the block-scaled layout too: the rows and their order are the same
  DeviceBuffer memory;   // the weight, then what goes with it
  size_t scales_at = 0;  // row scales (FP32), or block scales in the 128x4 order
  size_t bias_at = 0;
  bool has_bias = false;
  PlannedGemm planned;                                      // but for block-scaled
  CublasLt lt;                                              // block-scaled on SM100
  size_t codes_at = 0, token_scales_at = 0, cublas_at = 0;  // places in the workspace
  size_t workspace_bytes = 0;

  // Rows of the weight in memory: the block-scaled layout pads them to whole scale atoms.
  int64_t rows_in_memory() const {
    return backend == Backend::kBlockScaled ? sm100_rows(shape.n, shape.order)
                                            : shape.row_blocks() * kFragmentRows;
  }
  bool quantises() const {
    return backend == Backend::kFp8Folded || backend == Backend::kBlockScaled;
  }
  // Kernels before SM90 do not know how to wait for the one before them.
  bool dependent_launch() const { return caps.sm >= 90; }

  Result<void> place_weight(std::span<const float> bias);
  Result<void> pack_fragments(std::span<const QuantView> parts);
  Result<void> pack_block_scaled(std::span<const QuantView> parts);
  void place_workspace();
  BlockScaledParams block_scaled(GemmParams p) const;
  Result<void> quantise(const Mat& x, char* workspace, GemmParams& p, cudaStream_t stream) const;
};

Result<void> DeviceLinear::Impl::place_weight(std::span<const float> bias) {
  const bool blocks = backend == Backend::kBlockScaled;
  const auto rows = static_cast<size_t>(rows_in_memory());
  scales_at = aligned(blocks ? rows * shape.k : static_cast<size_t>(shape.bytes()));
  bias_at = aligned(scales_at + (blocks ? static_cast<size_t>(sf128x4_bytes(rows, shape.k))
                                        : shape.row_scales() * sizeof(float)));
  has_bias = !bias.empty();
  MX8_TRY(memory, DeviceBuffer::zeroed(caps.ordinal, bias_at + (has_bias ? rows * 4 : 0)));
  if (!has_bias) return {};
  return memory.upload(bias_at, packed_bias(bias, shape, rows).data(), rows * sizeof(float));
}

// The parts go to the GPU as they are in the file, and are packed there.
Result<void> DeviceLinear::Impl::pack_fragments(std::span<const QuantView> parts) {
  const auto codes = static_cast<size_t>(shape.n * shape.k);
  MX8_TRY(DeviceBuffer file, DeviceBuffer::allocate(caps.ordinal, codes + codes / kMxBlock));
  size_t code = 0, scale = codes;
  for (const QuantView& part : parts) {
    const auto bytes = static_cast<size_t>(part.rows * part.cols);
    MX8_RETURN_IF_ERROR(file.upload(code, part.codes, bytes));
    MX8_RETURN_IF_ERROR(file.upload(scale, part.scales, bytes / kMxBlock));
    code += bytes, scale += bytes / kMxBlock;
  }
  const CudaScope scope(caps.ordinal);
  MX8_RETURN_IF_ERROR(checked("current device", scope.error()));
  const auto* from = reinterpret_cast<const uint8_t*>(file.data());
  MX8_RETURN_IF_ERROR(checked(
      "pack",
      pack_mma_fragment_device(shape, from, from + codes, reinterpret_cast<uint8_t*>(memory.data()),
                               reinterpret_cast<float*>(memory.data() + scales_at), nullptr)));
  return checked("pack", cudaDeviceSynchronize());
}

Result<void> DeviceLinear::Impl::pack_block_scaled(std::span<const QuantView> parts) {
  const Sm100Weight packed = pack_sm100_weight(parts, shape.order);
  MX8_RETURN_IF_ERROR(memory.upload(0, packed.codes.data(), packed.codes.size()));
  return memory.upload(scales_at, packed.scales.data(), packed.scales.size());
}

void DeviceLinear::Impl::place_workspace() {
  size_t at =
      backend == Backend::kBlockScaled ? PlannedGemm::flag_bytes() : planned.workspace_bytes();
  const auto place = [&](size_t bytes) {
    const size_t here = aligned(at);
    at = here + bytes;
    return here;
  };
  if (quantises()) {
    codes_at = place(static_cast<size_t>(max_m * shape.k));
    token_scales_at =
        place(backend == Backend::kBlockScaled ? static_cast<size_t>(sf128x4_bytes(max_m, shape.k))
                                               : max_m * sizeof(float));
  }
  if (backend == Backend::kBlockScaled && caps.sm < 120) {
    GemmParams p;
    p.m = static_cast<int>(max_m);
    cublas_at = place(sm100_workspace_bytes(block_scaled(p)));
  }
  workspace_bytes = aligned(at);
}

BlockScaledParams DeviceLinear::Impl::block_scaled(GemmParams p) const {
  p.silu_mul = shape.order == RowOrder::kGateUpInterleaved;
  p.n = static_cast<int>(p.silu_mul ? shape.n / 2 : shape.n);
  p.k = static_cast<int>(shape.k);
  p.row_blocks = static_cast<int>(shape.row_blocks());
  BlockScaledParams b;
  b.p = p;
  b.rows = static_cast<int>(rows_in_memory());
  b.w_scales = reinterpret_cast<const uint8_t*>(memory.data()) + scales_at;
  return b;
}

// X to FP8 in the workspace; `p` then reads it from there.
Result<void> DeviceLinear::Impl::quantise(const Mat& x, char* workspace, GemmParams& p,
                                          cudaStream_t stream) const {
  auto* codes = reinterpret_cast<uint8_t*>(workspace + codes_at);
  cudaError_t e;
  if (backend == Backend::kBlockScaled) {
    QuantizeMxParams q;
    q.x = x.data, q.ldx = x.ld, q.type = type_of(activation);
    q.codes = codes, q.scales = reinterpret_cast<uint8_t*>(workspace + token_scales_at);
    q.m = p.m, q.k = static_cast<int>(shape.k);
    e = quantize_mx_tokens(q, stream, dependent_launch());
  } else {
    QuantizeParams q;
    q.x = x.data, q.ldx = x.ld, q.type = type_of(activation);
    q.codes = codes, q.ld_codes = shape.k;
    q.scales = reinterpret_cast<float*>(workspace + token_scales_at);
    q.m = p.m, q.k = static_cast<int>(shape.k);
    e = quantize_tokens(q, stream, dependent_launch());
    p.token_scale = q.scales;
  }
  p.x = codes, p.ldx = shape.k;
  return checked("quantisation of the activations", e);
}

DeviceLinear::DeviceLinear() = default;
DeviceLinear::DeviceLinear(DeviceLinear&&) noexcept = default;
DeviceLinear& DeviceLinear::operator=(DeviceLinear&&) noexcept = default;
DeviceLinear::~DeviceLinear() = default;

size_t DeviceLinear::resident_bytes() const { return impl_ ? impl_->memory.size() : 0; }
size_t DeviceLinear::workspace_bytes() const { return impl_ ? impl_->workspace_bytes : 0; }

Result<DeviceLinear> DeviceLinear::load(const DeviceCaps& caps, const LinearProblem& problem,
                                        const LinearPlan& plan, std::span<const QuantView> parts,
                                        std::span<const float> bias) {
  MX8_CHECK(caps.kind == DeviceKind::kCuda && !caps.forced && plan.missing.empty(), caps.name,
            plan.missing);
  DeviceLinear out;
  out.impl_ = std::make_unique<Impl>();
  Impl& l = *out.impl_;
  l.caps = caps;
  l.backend = plan.backend;
  l.activation = problem.activation;
  l.max_m = problem.max_m;
  l.shape = {problem.n, problem.k, kind_of(plan.activations), problem.order};
  const CudaScope scope(caps.ordinal);  // cuBLASLt handles belong to the current device
  MX8_RETURN_IF_ERROR(checked("current device", scope.error()));
  if (l.backend == Backend::kBlockScaled) {
    if (caps.sm < 120) {
      MX8_TRY(l.lt, CublasLt::create());
    }
  } else {
    std::vector<GemmBucket> buckets;
    for (const PlanBucket& b : plan.buckets)
      buckets.push_back({static_cast<int>(b.max_m), GemmChoice::parse(b.instance)});
    MX8_TRY(l.planned,
            PlannedGemm::make(l.shape, gemm_problem(caps, problem, plan.activations), buckets));
  }
  MX8_RETURN_IF_ERROR(l.place_weight(bias));
  MX8_RETURN_IF_ERROR(l.backend == Backend::kBlockScaled ? l.pack_block_scaled(parts)
                                                         : l.pack_fragments(parts));
  l.place_workspace();
  return out;
}

Result<void> DeviceLinear::launch(const DeviceLinearCall& call, void* workspace,
                                  void* stream) const {
  MX8_CHECK(loaded());
  const Impl& l = *impl_;
  if (call.x.rows > l.max_m) {
    return invalid_argument(str_cat(call.x.rows, " tokens, planned for at most ", l.max_m));
  }
  if (call.x.rows == 0) return {};
  int current = 0;
  MX8_RETURN_IF_ERROR(checked("current device", cudaGetDevice(&current)));
  if (current != l.caps.ordinal) {
    return invalid_argument(
        str_cat("the layer lies on GPU ", l.caps.ordinal, ", GPU ", current, " is current"));
  }
  MX8_RETURN_IF_ERROR(check_rows("X", call.x.data, call.x.ld, 2));
  if (call.residual.data != nullptr && call.y.dtype == DType::kF32) {
    return unsupported("an FP32 output takes no residual");
  }
  const auto s = static_cast<cudaStream_t>(stream);
  auto* scratch = static_cast<char*>(workspace);
  const std::byte* weight = l.memory.data();
  GemmParams p;
  p.w = reinterpret_cast<const uint8_t*>(weight);
  p.x = call.x.data, p.ldx = call.x.ld;
  p.y = call.y.data, p.ldy = call.y.ld, p.out = out_of(call.y.dtype);
  p.residual = call.residual.data, p.ld_residual = call.residual.ld;
  p.bias = l.has_bias ? reinterpret_cast<const float*>(weight + l.bias_at) : nullptr;
  p.m = static_cast<int>(call.x.rows);
  if (l.quantises()) MX8_RETURN_IF_ERROR(l.quantise(call.x, scratch, p, s));
  if (l.backend != Backend::kBlockScaled) {
    p.row_scale =
        l.shape.row_scales() > 0 ? reinterpret_cast<const float*>(weight + l.scales_at) : nullptr;
    return l.planned.launch(p, scratch, s, l.dependent_launch());
  }
  BlockScaledParams b = l.block_scaled(p);
  b.x_scales = reinterpret_cast<const uint8_t*>(scratch + l.token_scales_at);
  if (l.caps.sm >= 120) return checked("sm120_mxfp8_gemm", launch_sm120_mxfp8_gemm(b, s));
  return sm100_mxfp8_gemm(l.lt, b, scratch + l.cublas_at, l.workspace_bytes - l.cublas_at, s);
}

}  // namespace mx8::cuda
