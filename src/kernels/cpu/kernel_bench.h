// Measures the CPU's matrix kernels against the machine's own limits, in one process: the speed at
// which it reads memory and the rate of its FMA units.
//
// Weights are quantised Gaussian numbers, and each call takes the next of several copies that
// together exceed the caches. All measurements are taken in turns, so that a busy machine hurts
// each alike; medians count, and their ratios more than their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cpu_info.h"
#include "tensor/dtype.h"

namespace mx8::cpu {

struct KernelBenchCase {
  DType code_type = DType::kF8E4M3;  // kF8E4M3 is MXFP8; kBF16, kF16 and kF32 plain
  int64_t n = 0;
  int64_t k = 0;
  int64_t m = 1;
};

struct KernelBenchOptions {
  int threads = 0;  // 0: all
  CpuIsa isa = CpuIsa::kAvx2;
  int reps = 15;
  int64_t resident_bytes = 400 << 20;  // of all copies of one matrix together
  std::vector<KernelBenchCase> cases;  // empty: default_kernel_bench_cases()
};

struct KernelBenchRow {
  KernelBenchCase what;
  std::string kernel;
  double median_s = 0;
  double best_s = 0;
  double worst_s = 0;
  double gbytes_per_s = 0;   // of packed weights, at the median
  double gflops = 0;         // at the median
  double share_of_read = 0;  // of the measured memory speed
  double share_of_fma = 0;   // of the measured FMA peak
};

struct KernelBenchReport {
  std::string machine;
  std::string isa;
  int threads = 0;
  double read_gbytes_per_s = 0;
  double fma_gflops = 0;
  std::vector<KernelBenchRow> rows;
};

// A matrix-vector product of a large layer, batches of one shape, and the layers of a small model.
std::vector<KernelBenchCase> default_kernel_bench_cases();

KernelBenchReport bench_kernels(const KernelBenchOptions& options);

std::string to_table(const KernelBenchReport& report);
std::string to_json(const KernelBenchReport& report);

}  // namespace mx8::cpu
