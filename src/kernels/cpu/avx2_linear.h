// The AVX2 row of linear kernels: CpuPanel8 for MXFP8, RowMajor for plain weights. Both give the
// bits of the scalar twin (kernels/reference/linear.h) for every input.
#pragma once

#include "kernels/cpu/linear_kernels.h"

namespace mx8::cpu::avx2 {

// The kernels for m rows.
const LinearKernels& mxfp8_linear(int64_t m);
const LinearKernels& plain_linear(int64_t m);

void linear_epilogue(const LinearTile& tile, const LinearOutput& out);

}  // namespace mx8::cpu::avx2
