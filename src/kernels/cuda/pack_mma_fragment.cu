// Packing and decoding of MmaFragment records. Formula and layout: pack/mma_fragment_map.h.
//
// Bytes: pack reads and writes N K 33/32; decode reads N K 33/32 and writes 2 N K. Bound: memory.
// Pack runs once a load, one thread a word, gathers through L2; decode feeds the emulation backend:
// one warp takes a 16-row fragment of a record, 16-byte loads in, 4-byte pairs out (a warp store
// covers 8 rows x 16 bytes; L2 merges them).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/pack_mma_fragment.h"
#include "mx/e4m3.h"

namespace mx8::cuda {
namespace {

// Largest block exponent of a row among blocks that are not all zero; 0 for a row of zeros. One
// warp a packed row; `fold` and `row_scales` are in packed order.
__global__ void fold_exponents(FragmentShape shape, const uint8_t* codes, const uint8_t* scales,
                               float* row_scales) {
  const int64_t p = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) >> 5;
  const int lane = threadIdx.x & 31;
  if (p >= shape.row_scales()) return;
  const int64_t row = fragment_source_row(p, shape.n, shape.order);
  int largest = -1;
  if (row >= 0)
    for (int64_t b = lane; b < shape.k / 32; b += 32) {
      const uint4* v = reinterpret_cast<const uint4*>(codes + row * shape.k + b * 32);
      const uint4 x = v[0], y = v[1];
      const uint32_t any = (x.x | x.y | x.z | x.w | y.x | y.y | y.z | y.w) & 0x7F7F7F7Fu;
      if (any != 0) largest = max(largest, static_cast<int>(scales[row * (shape.k / 32) + b]));
    }
  for (int o = 16; o > 0; o >>= 1) largest = max(largest, __shfl_xor_sync(~0u, largest, o));
  if (lane == 0) row_scales[p] = largest < 0 ? 1.f : ldexpf(1.f, largest - 127);
}

// The exponent byte of a row scale (a power of two between 2^-127 and 2^127).
__device__ int exponent_byte(float row_scale) { return ilogbf(row_scale) + 127; }

__device__ uint32_t fold_code(uint8_t code, int shift) {
  return shift == 0 ? code : e4m3_encode(ldexpf(e4m3_decode(code), shift));
}

__global__ void pack_words(FragmentShape shape, const uint8_t* codes, const uint8_t* scales,
                           const float* row_scales, uint8_t* records) {
  const int words = static_cast<int>(shape.record_bytes()) / 4;
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  const int64_t record = i / words;
  const int word = static_cast<int>(i - record * words);
  if (record >= shape.row_blocks() * shape.k_records()) return;
  const int64_t rb = record / shape.k_records(), kr = record - rb * shape.k_records();
  uint32_t value = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const bool is_code = word < kFragmentCodeBytes / 4;
    const FragmentCoord at = is_code
                                 ? fragment_code_coord(word, byte)
                                 : fragment_scale_coord((word - kFragmentCodeBytes / 4) * 4 + byte);
    const int64_t p = rb * kFragmentRows + at.row, k = kr * kFragmentCols + at.k;
    const int64_t row = fragment_source_row(p, shape.n, shape.order);
    const bool real = row >= 0 && k < shape.k;
    uint32_t b = is_code ? 0 : 1;
    if (real && is_code) {
      b = codes[row * shape.k + k];
      if (shape.kind == FragmentKind::kFolded)
        b = fold_code(static_cast<uint8_t>(b),
                      scales[row * (shape.k / 32) + k / 32] - exponent_byte(row_scales[p]));
    } else if (real) {
      const uint8_t e = scales[row * (shape.k / 32) + k / 32];
      if (shape.kind == FragmentKind::kBf16) {
        b = bf16_scale_byte(e);
      } else {
        const uint4* v = reinterpret_cast<const uint4*>(codes + row * shape.k + k);
        const uint4 x = v[0], y = v[1];
        const uint32_t any = (x.x | x.y | x.z | x.w | y.x | y.y | y.z | y.w) & 0x7F7F7F7Fu;
        b = any == 0 ? 0 : static_cast<uint8_t>(e - exponent_byte(row_scales[p]) + kFp16ScaleBias);
      }
    }
    value |= b << (8 * byte);
  }
  if (word < kFragmentCodeBytes / 4 && shape.kind != FragmentKind::kFolded)
    value = interleave_word(value);
  *reinterpret_cast<uint32_t*>(records + record * shape.record_bytes() + word * 4) = value;
}

__device__ uint32_t to_pair(float a, float b, Act act) {
  if (act == Act::kFp16) {
    const __half2 v = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&v);
  }
  const __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&v);
}

// Value of a code under a scale factor; NaN codes give NaN.
__device__ float decoded(uint32_t code, float factor) {
  return e4m3_decode(static_cast<uint8_t>(code)) * factor;
}

// One warp: 16 rows x 64 K. Grid: x records of K, y fragments of 16 rows.
__global__ void decode_records(FragmentShape shape, const uint8_t* records, Act act, int64_t row0,
                               int64_t rows, uint16_t* out) {
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, c = lane & 3;
  const int64_t kr = blockIdx.x * static_cast<int64_t>(blockDim.x >> 5) + warp;
  const int64_t local = static_cast<int64_t>(blockIdx.y) * 16, p = row0 + local;
  if (kr >= shape.k_records()) return;
  const int frag = static_cast<int>(p & 63) >> 4;
  const uint8_t* record = records + ((p >> 6) * shape.k_records() + kr) * shape.record_bytes();
  for (int kb = 0; kb < 2; ++kb) {
    const int64_t k0 = kr * kFragmentCols + kb * 32;
    if (k0 >= shape.k) return;
    const uint4 v = *reinterpret_cast<const uint4*>(record + kb * 2048 + frag * 512 + lane * 16);
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    for (int q = 0; q < 4; ++q) {
      const int64_t row = local + g + 8 * (q & 1);
      if (row >= rows) continue;
      float factor = 1.f;
      uint32_t plain = words[q];
      if (shape.kind != FragmentKind::kFolded) {
        plain = deinterleave_word(plain);
        const int byte = record[kFragmentCodeBytes + (frag * 8 + g) * 4 + 2 * (q & 1) + kb];
        if (shape.kind == FragmentKind::kBf16) {
          const int e = bf16_scale_byte_inverse(static_cast<uint8_t>(byte));
          factor = e == 255 ? __int_as_float(0x7FFFFFFF) : ldexpf(1.f, e - 127);
        } else {
          factor = ldexpf(1.f, byte - kFp16ScaleBias);
        }
      }
      uint32_t* to = reinterpret_cast<uint32_t*>(out + row * shape.k + k0 + (q >> 1) * 16 + 2 * c);
      to[0] = to_pair(decoded(plain & 255, factor), decoded((plain >> 16) & 255, factor), act);
      to[4] = to_pair(decoded((plain >> 8) & 255, factor), decoded(plain >> 24, factor), act);
    }
  }
}

unsigned blocks_for(int64_t work, int per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

}  // namespace

cudaError_t pack_mma_fragment_device(const FragmentShape& shape, const uint8_t* codes,
                                     const uint8_t* scales, uint8_t* records, float* row_scales,
                                     cudaStream_t stream) {
  if (shape.n == 0 || shape.k == 0) return cudaSuccess;
  if (shape.kind != FragmentKind::kBf16)
    fold_exponents<<<blocks_for(shape.row_scales() * 32, 256), 256, 0, stream>>>(
        shape, codes, scales, row_scales);
  const int64_t words = shape.bytes() / 4;
  pack_words<<<blocks_for(words, 256), 256, 0, stream>>>(shape, codes, scales, row_scales, records);
  return cudaGetLastError();
}

cudaError_t decode_mma_fragment_device(const FragmentShape& shape, const uint8_t* records, Act act,
                                       int64_t row0, int64_t rows, void* out, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const dim3 grid(blocks_for(shape.k_records(), 4), blocks_for(rows, 16));
  decode_records<<<grid, 128, 0, stream>>>(shape, records, act, row0, rows,
                                           static_cast<uint16_t*>(out));
  return cudaGetLastError();
}

}  // namespace mx8::cuda
