#include "ops/elementwise.h"

#include <cmath>
#include <cstring>

#include "kernels/cpu/op_kernels.h"
#include "ops/parallel.h"
#include "tensor/plain_values.h"

namespace mx8 {

void embedding(const Exec& exec, const Mat& table, std::span<const int32_t> ids, const Mat& out) {
  const auto rows = static_cast<int64_t>(ids.size());
  MX8_CHECK(out.rows == rows && out.cols == table.cols, out.rows, rows, out.cols, table.cols);
  for_each_row(exec, rows, table.cols, [&](int64_t m) {
    const int32_t id = ids[static_cast<size_t>(m)];
    MX8_CHECK(id >= 0 && id < table.rows, id, table.rows);
    plain_to_f32(table.dtype, table.data, id * table.ld, table.cols, out.f32_row(m));
  });
}

void rms_norm(const Exec& exec, const Mat& x, std::span<const float> weight, float eps,
              const Mat& out) {
  MX8_CHECK(out.rows == x.rows && out.cols == x.cols, out.rows, x.rows, out.cols, x.cols);
  MX8_CHECK(static_cast<int64_t>(weight.size()) == x.cols, weight.size(), x.cols);
  const cpu::OpKernels& kernels = cpu::op_kernels(exec.isa);
  for_each_row(exec, x.rows, x.cols, [&](int64_t m) {
    kernels.rms_norm(x.f32_row(m), weight.data(), eps, x.cols, out.f32_row(m));
  });
}

void head_rms_norm(const Exec& exec, const Mat& x, int head_dim, std::span<const float> weight,
                   float eps) {
  MX8_CHECK(head_dim > 0 && x.cols % head_dim == 0, head_dim, x.cols);
  MX8_CHECK(static_cast<int>(weight.size()) == head_dim, weight.size(), head_dim);
  const cpu::OpKernels& kernels = cpu::op_kernels(exec.isa);
  for_each_row(exec, x.rows, x.cols, [&](int64_t m) {
    float* row = x.f32_row(m);
    for (int64_t c = 0; c < x.cols; c += head_dim) {
      kernels.rms_norm(row + c, weight.data(), eps, head_dim, row + c);
    }
  });
}

RopeTable make_rope_table(std::span<const float> inv_freq, int64_t positions, float magnitude) {
  RopeTable table;
  const size_t half = inv_freq.size();
  table.rotary_dim = static_cast<int>(2 * half);
  table.cos.resize(static_cast<size_t>(positions) * half);
  table.sin.resize(table.cos.size());
  for (int64_t p = 0; p < positions; ++p) {
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * inv_freq[i];
      const size_t at = static_cast<size_t>(p) * half + i;
      table.cos[at] = static_cast<float>(std::cos(static_cast<double>(angle))) * magnitude;
      table.sin[at] = static_cast<float>(std::sin(static_cast<double>(angle))) * magnitude;
    }
  }
  return table;
}

void rope(const Exec& exec, const RopeTable& table, std::span<const int32_t> positions,
          int head_dim, const Mat& x) {
  MX8_CHECK(head_dim > 0 && x.cols % head_dim == 0, head_dim, x.cols);
  MX8_CHECK(table.rotary_dim <= head_dim, table.rotary_dim, head_dim);
  MX8_CHECK(static_cast<int64_t>(positions.size()) == x.rows, positions.size(), x.rows);
  if (table.rotary_dim == 0) return;
  const cpu::OpKernels& kernels = cpu::op_kernels(exec.isa);
  const int half = table.rotary_dim / 2;
  const int heads = static_cast<int>(x.cols / head_dim);
  for_each_row(exec, x.rows, x.cols, [&](int64_t m) {
    const int64_t position = positions[static_cast<size_t>(m)];
    MX8_CHECK(position >= 0 && position < table.positions(), position, table.positions());
    kernels.rope(table.cos.data() + position * half, table.sin.data() + position * half, half,
                 heads, head_dim, x.f32_row(m));
  });
}

void gather_rows(const Exec& exec, const Mat& x, std::span<const int32_t> rows, const Mat& out) {
  const auto count = static_cast<int64_t>(rows.size());
  MX8_CHECK(out.rows == count && out.cols == x.cols, out.rows, count, out.cols, x.cols);
  for_each_row(exec, count, x.cols, [&](int64_t m) {
    const int32_t from = rows[static_cast<size_t>(m)];
    MX8_CHECK(from >= 0 && from < x.rows, from, x.rows);
    std::memcpy(out.f32_row(m), x.f32_row(from), static_cast<size_t>(x.cols) * sizeof(float));
  });
}

}  // namespace mx8
