#include "tensor/plain_values.h"

#include <algorithm>

#include "base/check.h"
#include "mx/bf16.h"

namespace mx8 {

const std::vector<DType>& plain_dtypes() {
  static const std::vector<DType> dtypes = {DType::kBF16, DType::kF16, DType::kF32};
  return dtypes;
}

bool is_plain_dtype(DType dtype) {
  return std::find(plain_dtypes().begin(), plain_dtypes().end(), dtype) != plain_dtypes().end();
}

void plain_to_f32(DType dtype, const void* data, int64_t first, int64_t count, float* out) {
  switch (dtype) {
    case DType::kBF16: {
      const uint16_t* in = static_cast<const uint16_t*>(data) + first;
      for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_f32(in[i]);
      return;
    }
    case DType::kF16: {
      const uint16_t* in = static_cast<const uint16_t*>(data) + first;
      for (int64_t i = 0; i < count; ++i) out[i] = f16_to_f32(in[i]);
      return;
    }
    case DType::kF32:
      std::copy_n(static_cast<const float*>(data) + first, count, out);
      return;
    default:
      MX8_CHECK(false, "no plain element type", dtype_name(dtype));
  }
}

}  // namespace mx8
