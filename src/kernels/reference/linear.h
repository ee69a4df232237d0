// The scalar twin of every linear kernel.
//
//   sums[m, n] = sum over k of w[n, k] * x[m, k]
//
// It fixes the order of operations that the CPU kernels reproduce bit for bit, so that a row of
// results depends on nothing but its own inputs:
//   MXFP8: for each block of 32 k in order: s = 0; s = fma(code_k, x_k, s) for k in order; then
//          sum = fma(s, scale, sum).
//   plain: eight partial sums, number k % 8 takes element k, p = fma(w_k, x_k, p) for k in order;
//   the
//          result is ((p0 + p4) + (p2 + p6)) + ((p1 + p5) + (p3 + p7)).
#pragma once

#include <cstdint>

#include "kernels/linear_args.h"
#include "pack/layout.h"

namespace mx8::reference {

// Sums of packed rows [n0, n1) for all rows of `in`: row m at sums + m * ld, column n at n - n0.
void linear_mxfp8(const Packed<RowMajor>& w, const LinearInput& in, int64_t n0, int64_t n1,
                  float* sums, int64_t ld);
void linear_plain(const Packed<RowMajor>& w, const LinearInput& in, int64_t n0, int64_t n1,
                  float* sums, int64_t ld);

// Adds the bias, applies the epilogue and stores: sums as above, for the `m` rows of the output.
// With kSiluMul n0 is a multiple of 16, and n1 too unless it is the end.
void linear_epilogue(const float* sums, int64_t ld, int64_t m, int64_t n0, int64_t n1,
                     const LinearOutput& out);

// Row n of the weight in FP32.
void decode_row_mxfp8(const Packed<RowMajor>& w, int64_t n, float* out);
void decode_row_plain(const Packed<RowMajor>& w, int64_t n, float* out);

}  // namespace mx8::reference
