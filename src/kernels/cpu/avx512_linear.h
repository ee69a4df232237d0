// The AVX-512 row of linear kernels: CpuPanel16 for MXFP8. Plain weights take the AVX2 kernels.
// Gives the bits of the scalar twin (kernels/reference/linear.h) for every input.
#pragma once

#include "kernels/cpu/linear_kernels.h"

namespace mx8::cpu::avx512 {

// The kernels for m rows.
const LinearKernels& mxfp8_linear(int64_t m);

}  // namespace mx8::cpu::avx512
