// The AVX2 row of op kernels. Compiled without AVX2: it only names the functions.
#include "kernels/cpu/avx2_attention.h"
#include "kernels/cpu/avx2_elementwise.h"
#include "kernels/cpu/op_kernels.h"

namespace mx8::cpu::avx2 {

const OpKernels kOps = {
    avx2::attention_tile, avx2::attention_merge, avx2::write_kv, avx2::rms_norm,         avx2::rope,
    avx2::weighted_sum,   avx2::scale,           avx2::softmax,  avx2::kAttentionHeadDim};

}  // namespace mx8::cpu::avx2
