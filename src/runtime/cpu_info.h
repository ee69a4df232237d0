// What the processor can run. The only place that asks it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mx8 {

// Rows of CPU kernels, in the order of preference (later is better where the processor has it).
enum class CpuIsa { kScalar, kAvx2, kAvx512, kAmx };

std::string_view cpu_isa_name(CpuIsa isa);  // "scalar", "avx2", "avx512", "amx"
std::optional<CpuIsa> parse_cpu_isa(std::string_view name);

struct CpuFeatures {
  bool avx2_fma_f16c = false;
  bool avx512_fbwdqvl = false;
  bool avx512_vbmi = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_bf16 = false;

  // True if the kernels of `isa` run here.
  bool has(CpuIsa isa) const;
};

// Asks the processor and the operating system (which must save the wide registers).
CpuFeatures detect_cpu_features();
// "AMD EPYC 7763 64-Core Processor", from /proc/cpuinfo; "unknown" where that is absent.
std::string cpu_model_name();

}  // namespace mx8
