// MXFP8 GEMM on mma.sync for SM80, SM86 and SM89 (any later GPU runs it too). See the .cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

struct Sm80Config {
  int tile_tokens = 64;  // 16, 64 or 128
  int split = 1;         // CTAs that share the K of a tile, 1..16
};

// Scratch for split > 1: tickets (the first sm80_ticket_bytes(), zero before the first launch and
// after every one) and partial tiles.
size_t sm80_workspace_bytes(const GemmParams& p, const Sm80Config& config);
size_t sm80_ticket_bytes();

// Asynchronous. kFp8 needs SM89. X needs 16-byte aligned rows. cudaErrorInvalidValue for a
// configuration that does not exist, cudaErrorInvalidConfiguration for more tiles than tickets.
cudaError_t launch_sm80_mxfp8_gemm(Act act, const GemmParams& p, const Sm80Config& config,
                                   void* workspace, cudaStream_t stream);

}  // namespace mx8::cuda
