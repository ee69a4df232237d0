// The list of compiled instances and the launch by index (the kernels: sm90_mxfp8_stream.cuh).
#include "kernels/cuda/sm90_mxfp8_stream.cuh"

namespace mx8::cuda {
namespace {

const StreamEntry& entry_of(Act act, int index) {
  const StreamEntry* entries = act == Act::kBf16   ? sm90_stream_entries_bf16()
                               : act == Act::kFp16 ? sm90_stream_entries_fp16()
                                                   : sm90_stream_entries_fp8();
  return entries[index];
}

}  // namespace

int stream_variant_count(Act) { return kStreamVariants; }
const StreamVariant& stream_variant(Act act, int index) { return entry_of(act, index).info; }

cudaError_t launch_sm90_mxfp8_stream(Act act, const GemmParams& p, const StreamConfig& config,
                                     cudaStream_t stream, bool pdl) {
  if (config.variant < 0 || config.variant >= kStreamVariants || config.split < 1 ||
      config.split > 8 || p.m > stream_variant(act, config.variant).max_tokens)
    return cudaErrorInvalidValue;
  if (p.m == 0 || p.n == 0) return cudaSuccess;
  return entry_of(act, config.variant).launch(p, config.split, stream, pdl);
}

}  // namespace mx8::cuda
