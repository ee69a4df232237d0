// What the tests of ops share: random data, the rows of kernels that run here, bit comparison.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/cpu_info.h"
#include "runtime/exec.h"
#include "tensor/matrix.h"

namespace mx8::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline std::vector<CpuIsa> isas_here() {
  std::vector<CpuIsa> isas = {CpuIsa::kScalar};
  if (detect_cpu_features().has(CpuIsa::kAvx2)) {
    isas.push_back(CpuIsa::kAvx2);
  } else {
    std::printf("the avx2 row is skipped: this processor lacks AVX2, FMA or F16C\n");
  }
  return isas;
}

inline std::vector<float> normal_floats(int64_t n, uint32_t seed, float sigma = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, sigma);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = normal(rng);
  return v;
}

// A pool, a workspace and an Exec over them.
struct ExecOwner {
  explicit ExecOwner(CpuIsa isa = CpuIsa::kScalar, int threads = 1) : pool(threads) {
    exec.isa = isa;
    exec.pool = &pool;
    exec.workspace = &arena;
  }
  ThreadPool pool;
  Arena arena;
  Exec exec;
};

// The index of the first element whose bits differ, or -1.
inline int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

}  // namespace mx8::test
