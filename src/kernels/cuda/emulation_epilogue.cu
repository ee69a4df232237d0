// FP32 sums -> Y. Bytes: 4 M N in, 2 M N out. Bound: memory. One thread a pair of rows (r, r + 8).
#include "kernels/cuda/device/output.cuh"
#include "kernels/cuda/emulation_epilogue.h"

namespace mx8::cuda {
namespace {

template <Act kAct>
__global__ void sums_epilogue(GemmParams p, const float* sums, int row0, int rows) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, token = blockIdx.y;
  const int row = (j >> 3) * 16 + (j & 7);
  if (row >= rows) return;
  const float* s = sums + static_cast<int64_t>(token) * rows;
  const int packed = row0 + row;
  write_row_pair<kAct>(p, packed / 64, token, packed % 64, s[row],
                       row + 8 < rows ? s[row + 8] : 0.f);
}

}  // namespace

cudaError_t launch_sums_epilogue(Act act, const GemmParams& p, const float* sums, int row0,
                                 int rows, cudaStream_t stream) {
  const int pairs = (rows + 15) / 16 * 8;
  const dim3 grid((pairs + 127) / 128, p.m);
  if (act == Act::kFp16)
    sums_epilogue<Act::kFp16><<<grid, 128, 0, stream>>>(p, sums, row0, rows);
  else
    sums_epilogue<Act::kBf16><<<grid, 128, 0, stream>>>(p, sums, row0, rows);
  return cudaGetLastError();
}

}  // namespace mx8::cuda
