// The table of kernel families. A family not in this program has built = false and says so.
#include "base/strings.h"
#include "kernels/select.h"
#include "mx/row_fold.h"

namespace mx8 {

namespace {

bool wants_quantised_activations(const LinearProblem& p, const Preference& pref) {
  if (pref.activations == ActivationMode::kFp8) return true;
  return pref.activations == ActivationMode::kAuto &&
         p.weight.activations == ActivationScheme::kDynamicMxfp8;
}

std::string activations_reason(const LinearProblem& p, const Preference& pref) {
  if (wants_quantised_activations(p, pref)) return "";
  return pref.activations == ActivationMode::kBf16
             ? "quantises activations, and --activations bf16 forbids it"
             : "quantises activations, and the checkpoint does not ask for it (--activations fp8 does)";
}

std::string refuse_block_scaled(const DeviceCaps& caps, const LinearProblem& p,
                                const Preference& pref) {
  // SM11x has the instructions too, but no kernel of ours targets it.
  if (caps.sm != 100 && caps.sm != 103 && caps.sm != 120 && caps.sm != 121) {
    return str_cat("needs block-scaled tensor cores (SM100, SM103, SM120, SM121), this is SM", caps.sm);
  }
  if (p.n < 128 || p.k < 128) {
    return str_cat("needs N and K of at least 128, this layer has ", p.n, " x ", p.k);
  }
  return activations_reason(p, pref);
}

std::string refuse_fp8_folded(const DeviceCaps& caps, const LinearProblem& p,
                              const Preference& pref) {
  if (caps.sm != 89 && caps.sm != 90) {
    return str_cat("needs FP8 tensor cores without block scaling (SM89, SM90), this is SM", caps.sm);
  }
  std::string reason = activations_reason(p, pref);
  if (!reason.empty()) return reason;
  if (p.audit.row_fold_error > kMaxRowFoldError) {
    return str_cat("row folding would change this matrix by ", p.audit.row_fold_error,
                   ", the gate is ", kMaxRowFoldError);
  }
  return "";
}

std::string refuse_w8a16(const DeviceCaps& caps, const LinearProblem& p, const Preference&) {
  if (caps.sm < 80) return str_cat("needs BF16 tensor cores (SM80 and later), this is SM", caps.sm);
  if (p.activation == DType::kF16 && p.audit.row_fold_error > kMaxRowFoldError) {
    return str_cat("FP16 activations need a foldable matrix; folding changes this one by ",
                   p.audit.row_fold_error);
  }
  return "";
}

template <CpuIsa kIsa>
std::string refuse_cpu(const DeviceCaps& caps, const LinearProblem& p, const Preference&) {
  if (caps.isa < kIsa) {
    return str_cat("needs ", cpu_isa_name(kIsa), ", this CPU offers ", cpu_isa_name(caps.isa));
  }
  return "";
}

std::string refuse_emulation(const DeviceCaps& caps, const LinearProblem& p, const Preference&) {
  if (caps.sm < 80 && p.audit.row_fold_error > kMaxRowFoldError) {
    return str_cat("decodes to FP16 on SM", caps.sm, " and needs a foldable matrix; folding changes"
                   " this one by ", p.audit.row_fold_error);
  }
  return "";
}

constexpr KernelInfo kBlockScaledSm100 = {
    "sm100_mxfp8_gemm", Backend::kBlockScaled, LayoutId::kSm100Mx, ActLayout::kMxSf128x4,
    0, 254, false, false, refuse_block_scaled};
constexpr KernelInfo kFp8FoldedSm90 = {
    "sm90_fp8_gemm", Backend::kFp8Folded, LayoutId::kMmaFragment, ActLayout::kFp8TokenFragment,
    0, 254, false, false, refuse_fp8_folded};
constexpr KernelInfo kW8A16Sm80 = {
    "sm80_mxfp8_gemm", Backend::kW8A16, LayoutId::kMmaFragment, ActLayout::kBf16,
    7, 254, false, false, refuse_w8a16};
constexpr KernelInfo kAmx = {
    "amx_mxfp8_linear", Backend::kCpuAmx, LayoutId::kCpuPanel16, ActLayout::kF32,
    10, 246, true, false, refuse_cpu<CpuIsa::kAmx>};
constexpr KernelInfo kAvx512 = {
    "avx512_mxfp8_linear", Backend::kCpuAvx512, LayoutId::kCpuPanel16, ActLayout::kF32,
    0, 246, true, true, refuse_cpu<CpuIsa::kAvx512>};
constexpr KernelInfo kAvx2 = {
    "avx2_mxfp8_linear", Backend::kCpuAvx2, LayoutId::kCpuPanel8, ActLayout::kF32,
    0, 246, true, true, refuse_cpu<CpuIsa::kAvx2>};
constexpr KernelInfo kScalar = {
    "scalar_mxfp8_linear", Backend::kCpuScalar, LayoutId::kRowMajor, ActLayout::kF32,
    0, 254, true, true, refuse_cpu<CpuIsa::kScalar>};
constexpr KernelInfo kEmulation = {
    "emulated_mxfp8_gemm", Backend::kEmulation, LayoutId::kRowMajor, ActLayout::kBf16,
    0, 254, false, false, refuse_emulation};

constexpr const KernelInfo* kRegistry[] = {
    &kBlockScaledSm100, &kFp8FoldedSm90, &kW8A16Sm80, &kAmx, &kAvx512, &kAvx2, &kScalar, &kEmulation,
};

}  // namespace

std::span<const KernelInfo* const> kernel_registry() { return kRegistry; }

}  // namespace mx8
