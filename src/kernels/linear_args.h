// Plain records that every CPU kernel of a linear layer takes, whatever its instruction set.
#pragma once

#include <cstdint>

namespace mx8 {

// Rows of activations, FP32. Row m is x + rows[m] * ld, or x + m * ld where rows is null.
struct LinearInput {
  const float* x;
  int64_t ld;
  const int32_t* rows;
  int64_t m;
  int64_t k;
};

enum class LinearEpilogue : uint8_t {
  kNone,      // y[m, n] = sum + bias
  kResidual,  // y[m, n] = residual[m, n] + (sum + bias); residual may be y
  kSiluMul,   // sums are gate and up interleaved (pack/layout.h): y[m, i] = silu(gate_i) * up_i
};

// Where the sums of a layer of n packed rows go.
struct LinearOutput {
  float* y;
  int64_t ldy;
  int64_t n;
  const float* bias;  // [n] in packed order, or null
  LinearEpilogue op;
  const float* residual;  // [m, n], row stride ldr; kResidual only
  int64_t ldr;
};

}  // namespace mx8
