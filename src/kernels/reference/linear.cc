#include "kernels/reference/linear.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/exp.h"
#include "mx/bf16.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"

namespace mx8::reference {

namespace {

const float* input_row(const LinearInput& in, int64_t m) {
  return in.x + (in.rows == nullptr ? m : in.rows[m]) * in.ld;
}

MxView mx_view(const Packed<RowMajor>& w) {
  const auto* codes = reinterpret_cast<const uint8_t*>(w.data);
  return {codes, codes + w.n * w.k, w.n, w.k};
}

float plain_value(const Packed<RowMajor>& w, int64_t i) {
  switch (w.code_type) {
    case DType::kBF16:
      return bf16_to_f32(reinterpret_cast<const uint16_t*>(w.data)[i]);
    case DType::kF16:
      return f16_to_f32(reinterpret_cast<const uint16_t*>(w.data)[i]);
    case DType::kF32:
      return reinterpret_cast<const float*>(w.data)[i];
    default:
      break;
  }
  MX8_CHECK(false, "not a plain weight type", dtype_name(w.code_type));
  return 0;
}

float silu(float v) { return v / (1.0f + reference::exp(-v)); }

}  // namespace

void linear_mxfp8(const Packed<RowMajor>& w, const LinearInput& in, int64_t n0, int64_t n1,
                  float* sums, int64_t ld) {
  const MxView view = mx_view(w);
  for (int64_t m = 0; m < in.m; ++m) {
    const float* x = input_row(in, m);
    for (int64_t n = n0; n < n1; ++n) {
      float sum = 0;
      for (int64_t block = 0; block < w.k; block += kMxBlock) {
        float s = 0;
        for (int64_t k = block; k < block + kMxBlock; ++k) {
          s = std::fma(e4m3_decode(view.code(n, k)), x[k], s);
        }
        sum = std::fma(s, e8m0_decode(view.scale(n, block)), sum);
      }
      sums[m * ld + n - n0] = sum;
    }
  }
}

void linear_plain(const Packed<RowMajor>& w, const LinearInput& in, int64_t n0, int64_t n1,
                  float* sums, int64_t ld) {
  for (int64_t m = 0; m < in.m; ++m) {
    const float* x = input_row(in, m);
    for (int64_t n = n0; n < n1; ++n) {
      float p[8] = {};
      for (int64_t k = 0; k < w.k; ++k) {
        p[k % 8] = std::fma(plain_value(w, n * w.k + k), x[k], p[k % 8]);
      }
      sums[m * ld + n - n0] = ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
    }
  }
}

void linear_epilogue(const float* sums, int64_t ld, int64_t m, int64_t n0, int64_t n1,
                     const LinearOutput& out) {
  const auto value = [&](int64_t row, int64_t n) {
    const float sum = sums[row * ld + n - n0];
    return out.bias == nullptr ? sum : sum + out.bias[n];
  };
  for (int64_t row = 0; row < m; ++row) {
    float* y = out.y + row * out.ldy;
    for (int64_t n = n0; n < n1; ++n) {
      if (out.op == LinearEpilogue::kSiluMul) {
        // Groups of 8 gates and 8 ups; fewer of each in the last one.
        const int64_t group = n / 16;
        const int64_t width = std::min<int64_t>(8, out.n / 2 - group * 8);
        const int64_t i = n - group * 16;
        if (i < width) y[group * 8 + i] = silu(value(row, n)) * value(row, n + width);
      } else if (out.op == LinearEpilogue::kResidual) {
        y[n] = out.residual[row * out.ldr + n] + value(row, n);
      } else {
        y[n] = value(row, n);
      }
    }
  }
}

void decode_row_mxfp8(const Packed<RowMajor>& w, int64_t n, float* out) {
  const MxView view = mx_view(w);
  for (int64_t k = 0; k < w.k; ++k) {
    out[k] = static_cast<float>(mx_value(view.code(n, k), view.scale(n, k)));
  }
}

void decode_row_plain(const Packed<RowMajor>& w, int64_t n, float* out) {
  for (int64_t k = 0; k < w.k; ++k) out[k] = plain_value(w, n * w.k + k);
}

}  // namespace mx8::reference
