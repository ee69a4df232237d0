// Runs linear layers on the CPU: picks the kernels of a weight's layout, cuts the work into chunks
// and spreads them over the thread pool. One parallel region whatever the number of weights, so
// that the experts of an MoE layer balance among each other.
#pragma once

#include <span>

#include "kernels/linear_args.h"
#include "pack/layout.h"
#include "runtime/exec.h"

namespace mx8::cpu {

// Input rows [first, first + rows) of the batch go through `weight`.
struct LinearJob {
  const PackedWeight* weight;
  int64_t first;
  int64_t rows;
};

// All weights have the same n and k. The input's row list, where there is one, and the output cover
// the whole batch. Row r of the output depends only on row r of the input and its weight.
void run_linear(const Exec& exec, std::span<const LinearJob> jobs, const LinearInput& in,
                const LinearOutput& out);

// The kernels that run_linear takes for m rows: "avx2_mxfp8_linear_tile".
const char* linear_kernel_name(const Exec& exec, const PackedWeight& weight, int64_t m);

// Row n of a packed weight in FP32, [k].
void decode_row(const PackedWeight& weight, int64_t n, float* out);

}  // namespace mx8::cpu
