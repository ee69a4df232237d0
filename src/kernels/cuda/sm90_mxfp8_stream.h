// Few tokens (M <= 16) on SM90: streams the weights once at memory bandwidth. See the .cu for the
// design and what it measured.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

struct StreamConfig {
  int variant = 0;  // index into stream_variants()
  int split = 1;    // CTAs of one cluster that share the K of a 64-row block, 1..8
};

// One compiled instance.
struct StreamVariant {
  const char* name;
  int max_tokens;  // tokens one launch can take
  int warps;
  int stages;  // records in flight per warp
  int smem_bytes;
};

int stream_variant_count(Act act);
const StreamVariant& stream_variant(Act act, int index);

// Asynchronous; needs p.m <= max_tokens. `pdl`: may start before the previous kernel of the stream
// ends (it waits by itself before it touches X, Y or the residual).
cudaError_t launch_sm90_mxfp8_stream(Act act, const GemmParams& p, const StreamConfig& config,
                                     cudaStream_t stream, bool pdl);

}  // namespace mx8::cuda
