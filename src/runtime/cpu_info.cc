#include "runtime/cpu_info.h"

#include <fstream>

namespace mx8 {

namespace {
constexpr std::string_view kIsaNames[] = {"scalar", "avx2", "avx512", "amx"};
}  // namespace

std::string_view cpu_isa_name(CpuIsa isa) { return kIsaNames[static_cast<int>(isa)]; }

std::optional<CpuIsa> parse_cpu_isa(std::string_view name) {
  for (int i = 0; i < 4; ++i) {
    if (kIsaNames[i] == name) return static_cast<CpuIsa>(i);
  }
  return std::nullopt;
}

bool CpuFeatures::has(CpuIsa isa) const {
  switch (isa) {
    case CpuIsa::kScalar: return true;
    case CpuIsa::kAvx2: return avx2_fma_f16c;
    case CpuIsa::kAvx512: return avx512_fbwdqvl;
    case CpuIsa::kAmx: return amx_bf16 && avx512_fbwdqvl;
  }
  return false;
}

CpuFeatures detect_cpu_features() {
  CpuFeatures f;
#if defined(__x86_64__)
  __builtin_cpu_init();
  f.avx2_fma_f16c = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  f.avx512_fbwdqvl = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  f.avx512_vbmi = __builtin_cpu_supports("avx512vbmi");
  f.avx512_bf16 = __builtin_cpu_supports("avx512bf16");
  // gcc 12 and clang 14 don't know these names in __builtin_cpu_supports: CPUID leaf 7, subleaf 0.
  unsigned eax = 7, ebx = 0, ecx = 0, edx = 0;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  f.avx512_fp16 = f.avx512_fbwdqvl && (edx >> 23 & 1);
  f.amx_bf16 = (edx >> 22 & 1) && (edx >> 24 & 1);
#endif
  return f;
}

std::string cpu_model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

}  // namespace mx8
