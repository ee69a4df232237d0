// The scalar row: the reference kernels behind the table of linear kernels, for RowMajor weights.
#pragma once

#include "kernels/cpu/linear_kernels.h"

namespace mx8::cpu {

const LinearKernels& scalar_linear_kernels();

}  // namespace mx8::cpu
