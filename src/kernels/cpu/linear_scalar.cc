#include "kernels/cpu/linear_scalar.h"

#include "base/check.h"
#include "kernels/reference/linear.h"

namespace mx8::cpu {

namespace {

DType dtype_of(WeightCode code) {
  switch (code) {
    case WeightCode::kMxE4m3:
      return DType::kF8E4M3;
    case WeightCode::kBf16:
      return DType::kBF16;
    case WeightCode::kF16:
      return DType::kF16;
    case WeightCode::kF32:
      return DType::kF32;
  }
  return DType::kF32;
}

LinearInput slice(const LinearInput& in, int64_t m0, int64_t m1) {
  LinearInput out = in;
  out.m = m1 - m0;
  if (in.rows == nullptr) {
    out.x += m0 * in.ld;
  } else {
    out.rows += m0;
  }
  return out;
}

int64_t same_row(int64_t, int64_t strip) { return strip; }
int64_t no_floats(int64_t, int64_t) { return 0; }
void nothing_to_prepare(const LinearInput&, int64_t, int64_t, float*) {}

void sums(const WeightRef& w, const LinearInput& in, const float*, const LinearTile& tile, float*) {
  const Packed<RowMajor> packed{static_cast<const std::byte*>(w.data), w.n, w.k, RowOrder::kPlain,
                                dtype_of(w.code)};
  const LinearInput rows = slice(in, tile.m0, tile.m1);
  const auto kernel =
      w.code == WeightCode::kMxE4m3 ? reference::linear_mxfp8 : reference::linear_plain;
  kernel(packed, rows, tile.n0, tile.n1, tile.sums, tile.ld);
}

void epilogue(const LinearTile& tile, const LinearOutput& out) {
  LinearOutput rows = out;
  rows.y += tile.m0 * out.ldy;
  if (out.residual != nullptr) rows.residual += tile.m0 * out.ldr;
  reference::linear_epilogue(tile.sums, tile.ld, tile.m1 - tile.m0, tile.n0, tile.n1, rows);
}

}  // namespace

const LinearKernels& scalar_linear_kernels() {
  static constexpr LinearKernels kKernels = {
      "scalar_linear",    1,    16,       same_row, no_floats, no_floats,
      nothing_to_prepare, sums, epilogue, 0.4,      0.4};
  return kKernels;
}

}  // namespace mx8::cpu
