// The list of compiled instances and the launch by index (the kernels: sm90_mxfp8_gemm.cuh).
#include <vector>

#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

std::vector<GemmEntry> join(std::initializer_list<GemmEntries> parts) {
  std::vector<GemmEntry> all;
  for (const GemmEntries& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const std::vector<GemmEntry>& entries(Act act) {
  static const std::vector<GemmEntry> bf16 = join(
      {sm90_gemm_entries_bf16_few(), sm90_gemm_entries_bf16_many(), sm90_gemm_entries_bf16_odd(),
       sm90_gemm_entries_bf16_light(), sm90_gemm_entries_bf16_cluster()});
  static const std::vector<GemmEntry> fp16 = join({sm90_gemm_entries_fp16()});
  static const std::vector<GemmEntry> fp8 =
      join({sm90_gemm_entries_fp8_few(), sm90_gemm_entries_fp8_many(), sm90_gemm_entries_fp8_odd(),
            sm90_gemm_entries_fp8_light(), sm90_gemm_entries_fp8_cluster()});
  return act == Act::kBf16 ? bf16 : act == Act::kFp16 ? fp16 : fp8;
}

}  // namespace

int gemm_variant_count(Act act) { return static_cast<int>(entries(act).size()); }
const GemmVariant& gemm_variant(Act act, int index) { return entries(act)[index].info; }

size_t gemm_flag_bytes() {
  return size_t{1} << 16;
}  // as sm80_ticket_bytes(): one workspace serves both
size_t gemm_workspace_bytes(int sms) {
  return gemm_flag_bytes() + static_cast<size_t>(sms) * kPartialFloats * sizeof(float);
}

cudaError_t launch_sm90_mxfp8_gemm(Act act, const GemmParams& p, const GemmConfig& config, int sms,
                                   void* workspace, cudaStream_t stream, bool pdl) {
  if (config.variant < 0 || config.variant >= gemm_variant_count(act)) return cudaErrorInvalidValue;
  if (p.m == 0 || p.n == 0) return cudaSuccess;
  const GemmEntry& e = entries(act)[config.variant];
  if (!e.info.takes(config.split) ||
      (config.split == GemmSplit::kCluster &&
       (config.cluster < 1 || config.cluster > 8 ||
        config.cluster * e.info.tile_k > p.k_records * 64)) ||
      sms * sizeof(int) > gemm_flag_bytes())
    return cudaErrorInvalidValue;
  return e.launch(p, config, sms, workspace, stream, pdl);
}

}  // namespace mx8::cuda
