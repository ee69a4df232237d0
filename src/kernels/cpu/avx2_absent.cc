// Stands in for the AVX2 row on processors of another architecture, where it is never selected.
#include "base/check.h"
#include "kernels/cpu/avx2_linear.h"
#include "kernels/cpu/op_kernels.h"

namespace mx8::cpu::avx2 {

const LinearKernels kMxfp8Linear = {};
const LinearKernels kPlainLinear = {};
const OpKernels kOps = {};

void linear_epilogue(const LinearTile&, const LinearOutput&) {
  MX8_CHECK(false, "this build has no AVX2 kernels");
}

}  // namespace mx8::cpu::avx2
