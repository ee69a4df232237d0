// Plain weights (BF16, F16, F32) as FP32.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace mx8 {

// The element types of weights that are not quantised.
const std::vector<DType>& plain_dtypes();
bool is_plain_dtype(DType dtype);

// out[i] = element first + i of the array `data` of plain elements, for i < count. Exact.
void plain_to_f32(DType dtype, const void* data, int64_t first, int64_t count, float* out);

}  // namespace mx8
