// What the machine can do at best: the yardsticks of the kernel benchmark.
#pragma once

#include <cstdint>

namespace mx8::cpu::avx2 {

inline constexpr int64_t kProbeFlops = 12 * 8 * 2;  // of one round

// Runs multiply-adds without touching memory; returns a value made of them.
float probe_fma(int64_t rounds);

}  // namespace mx8::cpu::avx2
