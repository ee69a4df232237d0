// The table of kernel families. Each row says what it needs; whether this program holds its machine
// code is asked of the build (cuda_units.h) by the selector.
#include "base/strings.h"
#include "kernels/select.h"
#include "mx/row_fold.h"
#include "pack/mma_fragment_map.h"

namespace mx8 {

namespace {

using cuda::Unit;

constexpr int64_t kMaxQuantizedK = 32768;   // quantize_tokens.h
constexpr int64_t kLeastBlockScaled = 128;  // one tile of rows, one scale atom of K

std::string refuse_type(const LinearProblem& p, DType wanted) {
  if (p.activation == wanted) return "";
  return str_cat("takes ", dtype_name(wanted), " activations, this layer has ",
                 dtype_name(p.activation));
}

bool wants_quantised_activations(const LinearProblem& p, const Preference& pref) {
  if (pref.activations == ActivationMode::kFp8) return true;
  return pref.activations == ActivationMode::kAuto &&
         p.weight.activations == ActivationScheme::kDynamicMxfp8;
}

// For kernels that quantise activations of 16 bits.
std::string refuse_quantising(const LinearProblem& p, const Preference& pref) {
  if (p.activation != DType::kBF16 && p.activation != DType::kF16) {
    return str_cat("quantises BF16 or F16 activations, this layer has ", dtype_name(p.activation));
  }
  if (wants_quantised_activations(p, pref)) return "";
  return pref.activations == ActivationMode::kBf16
             ? "quantises activations, and --activations bf16 forbids it"
             : "quantises activations, and the checkpoint does not ask for it "
               "(--activations fp8 does)";
}

std::string refuse_block_scaled(const DeviceCaps&, const LinearProblem& p, const Preference& pref) {
  if (p.n < kLeastBlockScaled || p.k < kLeastBlockScaled) {
    return str_cat("needs N and K of at least ", kLeastBlockScaled, ", this layer has ", p.n, " x ",
                   p.k);
  }
  return refuse_quantising(p, pref);
}

std::string refuse_block_scaled_cublas(const DeviceCaps& caps, const LinearProblem& p,
                                       const Preference& pref) {
  std::string reason = refuse_block_scaled(caps, p, pref);
  return reason.empty() ? caps.cublaslt_missing : reason;
}

std::string refuse_fp8_folded(const DeviceCaps&, const LinearProblem& p, const Preference& pref) {
  std::string reason = refuse_quantising(p, pref);
  if (!reason.empty()) return reason;
  if (p.k > kMaxQuantizedK) {
    return str_cat("quantises tokens of at most ", kMaxQuantizedK, " features, this layer has K ",
                   p.k);
  }
  if (p.audit.row_fold_error > kMaxRowFoldError) {
    return str_cat("row folding would change this matrix by ", p.audit.row_fold_error,
                   ", the gate is ", kMaxRowFoldError);
  }
  return "";
}

// FP16 codes are relative to the largest block of the row.
std::string refuse_spread(const LinearProblem& p) {
  if (p.audit.row_spread <= -kFp16MinRelativeExponent) return "";
  return str_cat("FP16 holds a row's blocks down to 2^", kFp16MinRelativeExponent,
                 " of its largest, this matrix goes down to 2^-", p.audit.row_spread);
}

template <DType kType>
std::string refuse_w8a16(const DeviceCaps&, const LinearProblem& p, const Preference&) {
  std::string reason = refuse_type(p, kType);
  return reason.empty() && kType == DType::kF16 ? refuse_spread(p) : reason;
}

template <CpuIsa kIsa>
std::string refuse_cpu(const DeviceCaps& caps, const LinearProblem& p, const Preference&) {
  if (caps.isa < kIsa) {
    return str_cat("needs ", cpu_isa_name(kIsa), ", this CPU offers ", cpu_isa_name(caps.isa));
  }
  return kIsa == CpuIsa::kAmx ? "no kernel uses AMX yet" : "";
}

template <DType kType>
std::string refuse_emulation(const DeviceCaps& caps, const LinearProblem& p,
                             const Preference& pref) {
  if (kType == DType::kBF16 && caps.sm < 80) {
    return str_cat("SM", caps.sm, " has no BF16 tensor cores; FP16 activations would run");
  }
  std::string reason = refuse_w8a16<kType>(caps, p, pref);
  return reason.empty() ? caps.cublaslt_missing : reason;
}

constexpr int kSm89[] = {89};
constexpr int kSm90[] = {90};
constexpr int kCublasBlockScaled[] = {100, 103};
constexpr int kMmaBlockScaled[] = {120, 121};
constexpr int kMmaSync[] = {80, 86, 89, 100, 103, 120, 121};
constexpr int kEvery[] = {75, 80, 86, 89, 90, 100, 103, 120, 121};

constexpr bool kRan = true;     // on an SM90, the one GPU that mx8 was run on
constexpr bool kNeverRan = false;

constexpr KernelInfo kSm100BlockScaled = {
    "sm100_mxfp8_gemm", Backend::kBlockScaled, LayoutId::kSm100Mx, ActLayout::kMxSf128x4,
    0, 254, false, kCublasBlockScaled, Unit::kQuantizeMx, kNeverRan, refuse_block_scaled_cublas};
constexpr KernelInfo kSm120BlockScaled = {
    "sm120_mxfp8_gemm", Backend::kBlockScaled, LayoutId::kSm100Mx, ActLayout::kMxSf128x4,
    0, 254, false, kMmaBlockScaled, Unit::kSm120, kNeverRan, refuse_block_scaled};
constexpr KernelInfo kSm90Fp8 = {
    "sm90_fp8_gemm", Backend::kFp8Folded, LayoutId::kMmaFragment, ActLayout::kFp8TokenFragment,
    0, 254, false, kSm90, Unit::kSm90, kRan, refuse_fp8_folded};
constexpr KernelInfo kSm89Fp8 = {
    "sm89_fp8_gemm", Backend::kFp8Folded, LayoutId::kMmaFragment, ActLayout::kFp8TokenFragment,
    0, 254, false, kSm89, Unit::kSm89, kRan, refuse_fp8_folded};
// BF16: the scale byte is the exponent of a multiplier (mma_fragment_map.h). FP16: see
// refuse_spread.
constexpr KernelInfo kSm90Bf16 = {
    "sm90_mxfp8_gemm_bf16", Backend::kW8A16, LayoutId::kMmaFragment, ActLayout::kBf16,
    3, 134, false, kSm90, Unit::kSm90, kRan, refuse_w8a16<DType::kBF16>};
constexpr KernelInfo kSm90Fp16 = {
    "sm90_mxfp8_gemm_fp16", Backend::kW8A16, LayoutId::kMmaFragment, ActLayout::kFp16,
    0, 254, false, kSm90, Unit::kSm90, kRan, refuse_w8a16<DType::kF16>};
constexpr KernelInfo kSm80Bf16 = {
    "sm80_mxfp8_gemm_bf16", Backend::kW8A16, LayoutId::kMmaFragment, ActLayout::kBf16,
    3, 134, false, kMmaSync, Unit::kSm80, kRan, refuse_w8a16<DType::kBF16>};
constexpr KernelInfo kSm80Fp16 = {
    "sm80_mxfp8_gemm_fp16", Backend::kW8A16, LayoutId::kMmaFragment, ActLayout::kFp16,
    0, 254, false, kMmaSync, Unit::kSm80, kRan, refuse_w8a16<DType::kF16>};
constexpr KernelInfo kAmx = {
    "amx_mxfp8_linear", Backend::kCpuAmx, LayoutId::kCpuPanel16, ActLayout::kF32,
    10, 246, true, {}, Unit::kNone, kRan, refuse_cpu<CpuIsa::kAmx>};
constexpr KernelInfo kAvx512 = {
    "avx512_mxfp8_linear", Backend::kCpuAvx512, LayoutId::kCpuPanel16, ActLayout::kF32,
    0, 246, true, {}, Unit::kNone, kRan, refuse_cpu<CpuIsa::kAvx512>};
constexpr KernelInfo kAvx2 = {
    "avx2_mxfp8_linear", Backend::kCpuAvx2, LayoutId::kCpuPanel8, ActLayout::kF32,
    0, 246, true, {}, Unit::kNone, kRan, refuse_cpu<CpuIsa::kAvx2>};
constexpr KernelInfo kScalar = {
    "scalar_mxfp8_linear", Backend::kCpuScalar, LayoutId::kRowMajor, ActLayout::kF32,
    0, 254, true, {}, Unit::kNone, kRan, refuse_cpu<CpuIsa::kScalar>};
// BF16: 247 and above overflow; below 3 a weight is rounded to a multiple of the smallest BF16.
constexpr KernelInfo kEmulationBf16 = {
    "emulated_mxfp8_gemm_bf16", Backend::kEmulation, LayoutId::kMmaFragment, ActLayout::kBf16,
    0, 246, false, kEvery, Unit::kEmulation, kRan, refuse_emulation<DType::kBF16>};
constexpr KernelInfo kEmulationFp16 = {
    "emulated_mxfp8_gemm_fp16", Backend::kEmulation, LayoutId::kMmaFragment, ActLayout::kFp16,
    0, 254, false, kEvery, Unit::kEmulation, kRan, refuse_emulation<DType::kF16>};

constexpr const KernelInfo* kRegistry[] = {
    &kSm100BlockScaled, &kSm120BlockScaled, &kSm90Fp8,  &kSm89Fp8, &kSm90Bf16,
    &kSm90Fp16,         &kSm80Bf16,         &kSm80Fp16, &kAmx,     &kAvx512,
    &kAvx2,             &kScalar,           &kEmulationBf16,       &kEmulationFp16,
};

}  // namespace

std::span<const KernelInfo* const> kernel_registry() { return kRegistry; }

}  // namespace mx8
