// The kernels of the ops other than linear layers, one row per instruction set. All rows give the
// same bits (kernels/attention_tile.h and kernels/reference/elementwise.h state the order of
// operations).
#pragma once

#include <cstdint>

#include "kernels/attention_tile.h"
#include "runtime/cpu_info.h"

namespace mx8::cpu {

struct OpKernels {
  void (*attention_tile)(const AttentionTile&);  // head_dim a multiple of `head_dim_multiple`
  void (*attention_merge)(const AttentionMerge&);
  void (*write_kv)(const KvWrite&);
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* out);
  void (*rope)(const float* cos, const float* sin, int half, int heads, int head_dim, float* x);
  void (*weighted_sum)(const float* const* rows, const float* weights, int count, int64_t n,
                       bool accumulate, float* out);
  void (*scale)(float factor, int64_t n, float* x);
  void (*softmax)(const float* x, int64_t n, float* p);
  int head_dim_multiple;
};

namespace avx2 {
extern const OpKernels kOps;  // null pointers where the build has no AVX2
}  // namespace avx2

// The best row that the build has and that `isa` allows. The caller has checked that the processor
// runs `isa`.
const OpKernels& op_kernels(CpuIsa isa);

}  // namespace mx8::cpu
