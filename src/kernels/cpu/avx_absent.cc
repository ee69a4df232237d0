// Stands in for the AVX2 and AVX-512 rows on processors of another architecture, where they are
// never selected.
#include "base/check.h"
#include "kernels/cpu/avx2_linear.h"
#include "kernels/cpu/avx512_linear.h"
#include "kernels/cpu/cpu_probe.h"
#include "kernels/cpu/op_kernels.h"

namespace mx8::cpu::avx2 {

const OpKernels kOps = {};

const LinearKernels& mxfp8_linear(int64_t) {
  static constexpr LinearKernels kNone = {};
  MX8_CHECK(false, "this build has no AVX2 kernels");
  return kNone;
}

const LinearKernels& plain_linear(int64_t m) { return mxfp8_linear(m); }

float probe_fma(int64_t) {
  MX8_CHECK(false, "this build has no AVX2 kernels");
  return 0;
}

}  // namespace mx8::cpu::avx2

namespace mx8::cpu::avx512 {

const LinearKernels& mxfp8_linear(int64_t m) { return avx2::mxfp8_linear(m); }

}  // namespace mx8::cpu::avx512
