#include "kernels/cpu/op_kernels.h"

#include "kernels/reference/attention.h"
#include "kernels/reference/elementwise.h"

namespace mx8::cpu {

namespace {

constexpr OpKernels kScalarOps = {
    reference::attention_tile, reference::attention_merge, reference::write_kv, reference::rms_norm,
    reference::rope,           reference::weighted_sum,    reference::scale,    reference::softmax,
    /*head_dim_multiple=*/1};

}  // namespace

const OpKernels& op_kernels(CpuIsa isa) {
  if (isa != CpuIsa::kScalar && avx2::kOps.attention_tile != nullptr) return avx2::kOps;
  return kScalarOps;
}

}  // namespace mx8::cpu
