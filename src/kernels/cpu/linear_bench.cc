// mx8_cpu_bench [--threads T] [--isa NAME] [--reps R] [--json] [NxKxM[:bf16|f16|f32] ...]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/strings.h"
#include "kernels/cpu/kernel_bench.h"

namespace {

int usage() {
  std::fprintf(stderr,
               "usage: mx8_cpu_bench [--threads T] [--isa scalar|avx2|avx512] [--reps R] [--json]"
               " [NxKxM[:bf16|f16|f32] ...]\n");
  return 2;
}

bool parse_case(const std::string& text, mx8::cpu::KernelBenchCase& out) {
  char type[8] = "";
  long long n = 0, k = 0, m = 0;
  if (std::sscanf(text.c_str(), "%lldx%lldx%lld:%7s", &n, &k, &m, type) < 3) return false;
  const std::string name = type;
  out.n = n;
  out.k = k;
  out.m = m;
  out.code_type = name == "bf16"  ? mx8::DType::kBF16
                  : name == "f16" ? mx8::DType::kF16
                  : name == "f32" ? mx8::DType::kF32
                                  : mx8::DType::kF8E4M3;
  return n > 0 && k > 0 && m > 0 && (name != "" || k % 32 == 0);
}

}  // namespace

int main(int argc, char** argv) {
  mx8::cpu::KernelBenchOptions options;
  bool json = false;
  const mx8::CpuFeatures features = mx8::detect_cpu_features();
  options.isa = features.has(mx8::CpuIsa::kAvx2) ? mx8::CpuIsa::kAvx2 : mx8::CpuIsa::kScalar;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--json") {
      json = true;
    } else if (arg == "--threads" && has_value) {
      options.threads = std::atoi(argv[++i]);
    } else if (arg == "--reps" && has_value) {
      options.reps = std::atoi(argv[++i]);
    } else if (arg == "--isa" && has_value) {
      const auto isa = mx8::parse_cpu_isa(argv[++i]);
      if (!isa || !features.has(*isa)) return usage();
      options.isa = *isa;
    } else {
      mx8::cpu::KernelBenchCase c;
      if (!parse_case(arg, c)) return usage();
      options.cases.push_back(c);
    }
  }
  if (options.reps < 1) return usage();
  const mx8::cpu::KernelBenchReport report = mx8::cpu::bench_kernels(options);
  std::fputs((json ? to_json(report) + "\n" : to_table(report)).c_str(), stdout);
  return 0;
}
