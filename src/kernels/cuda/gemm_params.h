// What every MXFP8 GEMM kernel of this folder is told: Y[M, N] = X[M, K] * W[N, K]^T, then the
// epilogue, in FP32 and in this order:
//
//   v = sum * row_scale[n] * token_scale[m] + bias[n]     (scales where the format has them)
//   v = silu(v_gate) * v_up                               (silu_mul: W is packed as
//   RowOrder::kGateUpInterleaved) v = v + residual[m, n] Y[m, n] = round(v)
#pragma once

#include <cstdint>

namespace mx8::cuda {

// Element type of X, and what the weights become in registers.
enum class Act : uint8_t { kBf16, kFp16, kFp8 };
enum class Out : uint8_t { kBf16, kFp16, kFp32 };

struct GemmParams {
  const uint8_t* w = nullptr;          // MmaFragment records (pack/mma_fragment_map.h)
  const float* row_scale = nullptr;    // kFp16, kFp8: packed row order, padded to 64
  const void* x = nullptr;             // [m, k], 16-byte aligned rows
  int64_t ldx = 0;                     // elements
  const float* token_scale = nullptr;  // kFp8: [m]
  void* y = nullptr;                   // [m, n]
  int64_t ldy = 0;                     // elements
  const float* bias = nullptr;         // packed row order, padded to 64
  const void* residual = nullptr;      // [m, n], element type of y (not kFp32); may be y itself
  int64_t ld_residual = 0;
  const int* m_device = nullptr;  // when set, the number of tokens is min(*m_device, m)
  int m = 0;
  int n = 0;  // features written: rows of W, or half of them with silu_mul
  int k = 0;
  int row_blocks = 0;  // 64-row blocks of W
  int k_records = 0;   // 64-K records per row block
  Out out = Out::kBf16;
  bool silu_mul = false;
};

}  // namespace mx8::cuda
