// The AVX2 row of linear kernels: CpuPanel8 for MXFP8, RowMajor for plain weights. Both give the
// bits of the scalar twin (kernels/reference/linear.h) for every input.
#pragma once

#include "kernels/cpu/linear_kernels.h"

namespace mx8::cpu::avx2 {

extern const LinearKernels kMxfp8Linear;
extern const LinearKernels kPlainLinear;

// Shared by both.
void linear_epilogue(const LinearTile& tile, const LinearOutput& out);

}  // namespace mx8::cpu::avx2
