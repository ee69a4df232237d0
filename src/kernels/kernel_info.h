// KernelInfo: what a family of matrix kernels declares about itself. LinearPlan: what the selector
// decided for one layer before any of its bytes were repacked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/cuda_units.h"
#include "pack/audit.h"
#include "pack/layout.h"
#include "runtime/device_caps.h"
#include "tensor/quant.h"

namespace mx8 {

// The ways to run an MXFP8 linear layer, in the order in which they are tried.
enum class Backend : uint8_t {
  kBlockScaled,  // native block-scaled tensor cores, activations quantised to MXFP8 (SM100+, SM12x)
  kFp8Folded,    // FP8 tensor cores over row-folded weights, one activation scale a token (SM89, SM90)
  kW8A16,        // weights decoded to 16 bits in registers, 16-bit activations (SM80 and later)
  kCpuAmx,
  kCpuAvx512,
  kCpuAvx2,
  kCpuScalar,
  kEmulation,    // weights decoded to 16 bits in memory, then a library GEMM
};

std::string_view backend_name(Backend backend);  // "block-scaled", "fp8-folded", "w8a16", "cpu-avx2"...

// The form in which a kernel wants its inputs.
enum class ActLayout : uint8_t {
  kF32,          // CPU
  kBf16,
  kFp16,
  kFp8TokenRow,  // E4M3 [M, K], one FP32 scale a token
  kFp8TokenFragment,
  kMxSf128x4,    // E4M3 [M, K] and E8M0 scales in the 128x4 order
};

std::string_view act_layout_name(ActLayout layout);

// What may be done to activations, fixed at load (--activations).
enum class ActivationMode : uint8_t {
  kAuto,  // FP8 only for checkpoints that ask for quantised activations, on FP8 tensor cores
  kBf16,  // 16 bits (FP32 on a CPU)
  kFp8,   // FP8 wherever a backend offers it
};

// One linear layer as the selector sees it. For the experts of an MoE layer n and k are those of one
// expert.
struct LinearProblem {
  int64_t n = 0;              // output features
  int64_t k = 0;              // input features
  QuantScheme weight;
  DType activation = DType::kBF16;  // model dtype: BF16 or FP16 on a GPU, F32 on a CPU
  int64_t max_m = 8192;       // the most tokens of one step
  WeightAudit audit;          // of the weight; elements == 0 when it isn't known yet
  int experts = 0;            // 0: not an MoE layer
  RowOrder order = RowOrder::kPlain;  // in which the rows are packed
};

struct Preference {
  std::string backend;        // a backend_name that is demanded, or "" (--linear-backend, MX8_LINEAR_BACKEND)
  ActivationMode activations = ActivationMode::kAuto;
  // Plan as a program built for every GPU would, and say in the plan what this one lacks: for
  // doctor and tests. A layer that is to run leaves it off.
  bool any_build = false;
};

// A family of kernels of one backend: it covers all M with the same resident bytes.
struct KernelInfo {
  const char* name;           // "avx2_mxfp8_linear": architecture, format, operation
  Backend backend;
  LayoutId layout;
  ActLayout activations;
  // The inclusive range of scale bytes of non-zero blocks for which the kernel is exact.
  int min_scale;
  int max_scale;
  bool grouped;               // also runs the experts of an MoE layer
  std::span<const int> sms;   // GPU: the compute capabilities it is for; empty on CPUs
  cuda::Unit unit;            // of GPU code that it lies in; kNone on CPUs
  bool ran;                   // GPU: it was run and tested on an SM90; false: compiled only
  // "" if the kernel runs this problem on this device (of `sms`), else the reason why not.
  std::string (*refuse)(const DeviceCaps&, const LinearProblem&, const Preference&);
};

struct Refusal {
  std::string kernel;
  Backend backend;
  std::string reason;
  bool elsewhere = false;     // it is for another kind of device
};

// One kernel per range of M; all read the same resident bytes.
struct PlanBucket {
  int64_t max_m = 0;          // inclusive; the last bucket reaches the problem's max_m
  const KernelInfo* kernel = nullptr;
  std::string instance;       // of the kernel, as gemm_plan.h names it; "" when it has only one
};

struct LinearPlan {
  Backend backend = Backend::kCpuScalar;
  LayoutId layout = LayoutId::kRowMajor;
  ActLayout activations = ActLayout::kF32;
  std::vector<PlanBucket> buckets;
  std::vector<Refusal> refused;  // every kernel tried before the chosen one, with the reason
  std::string missing;           // what this program lacks to run it ("" unless Preference::any_build)

  const PlanBucket& bucket(int64_t m) const;
};

}  // namespace mx8
