// Mat: a row-major matrix that somebody else owns, on the CPU or a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tensor/dtype.h"

namespace mx8 {

struct Mat {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 0;  // elements from one row to the next

  static Mat f32(float* data, int64_t rows, int64_t cols) {
    return {data, DType::kF32, rows, cols, cols};
  }
  float* f32_data() const {
    MX8_DCHECK(dtype == DType::kF32, dtype_name(dtype));
    return static_cast<float*>(data);
  }
  float* f32_row(int64_t r) const { return f32_data() + r * ld; }
  // `count` rows from `first`.
  Mat rows_slice(int64_t first, int64_t count) const {
    MX8_DCHECK(first >= 0 && count >= 0 && first + count <= rows, first, count, rows);
    return {static_cast<std::byte*>(data) + first * ld * dtype_size(dtype), dtype, count, cols, ld};
  }
  // `count` columns from `first`.
  Mat cols_slice(int64_t first, int64_t count) const {
    MX8_DCHECK(first >= 0 && count >= 0 && first + count <= cols, first, count, cols);
    return {static_cast<std::byte*>(data) + first * dtype_size(dtype), dtype, rows, count, ld};
  }
};

}  // namespace mx8
