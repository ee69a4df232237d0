#include "pack/quantize_matrix.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/plain_values.h"

namespace mx8 {
namespace {

void add_error(std::span<const float> values, std::span<const uint8_t> codes, uint8_t scale,
               QuantError& sum) {
  float back[kMxBlock];
  mx_dequantize_block(codes, scale, {back, codes.size()});
  for (size_t i = 0; i < values.size(); ++i) {
    const double d = static_cast<double>(back[i]) - values[i];
    sum.error += d * d;
    sum.norm += static_cast<double>(values[i]) * values[i];
  }
}

}  // namespace

MxMatrix quantize_matrix(const QuantView& plain, ScaleRule rule, ThreadPool& pool,
                         QuantError* error) {
  MX8_CHECK(plain.scheme.is_plain(), describe(plain.scheme));
  MxMatrix out(plain.rows, plain.cols);
  const int64_t blocks = plain.cols / kMxBlock;
  std::vector<QuantError> row_errors(error == nullptr ? 0 : static_cast<size_t>(plain.rows));
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, plain.cols));
  pool.for_range(plain.rows, grain, [&](int64_t begin, int64_t end, int) {
    float values[kMxBlock];
    for (int64_t block = begin * blocks; block < end * blocks; ++block) {
      plain_to_f32(plain.scheme.code_type, plain.codes, block * kMxBlock, kMxBlock, values);
      const std::span<uint8_t> codes(out.codes.data() + block * kMxBlock, kMxBlock);
      const uint8_t scale = mx_quantize_block(values, rule, codes);
      out.scales[static_cast<size_t>(block)] = scale;
      if (error != nullptr) {
        add_error(values, codes, scale, row_errors[static_cast<size_t>(block / blocks)]);
      }
    }
  });
  for (const QuantError& row : row_errors) {
    error->error += row.error;
    error->norm += row.norm;
  }
  return out;
}

}  // namespace mx8
