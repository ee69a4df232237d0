// Packed MXFP8 words to tensor-core operands (layout and bit placement: pack/mma_fragment_map.h).
//
// BF16: E4M3 magnitude bits at 10..4 of a BF16 are the value * 2^-120, subnormals included, and one
// multiply by 2^(120 + e - 127) applies the block scale too: bit-exact for scale bytes 3..134
// (mma_fragment_test.cc). FP16: magnitude bits at 13..7, value * 2^-8.
// Per 4 weights: 3 LOP3, 1 SHF, 1 shift-left on the IMAD pipe, 2 HMUL2 for BF16. The plain-byte
// form needs 7 integer operations: 5-7 % slower at M = 64, 1-2 % at M = 1024.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

// mul.bf16x2 exists from SM90; fma with -0 is the same product before it.
__device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
  uint32_t r;
#if __CUDA_ARCH__ >= 900
  asm("mul.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#else
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0x80008000u));
#endif
  return r;
}
__device__ __forceinline__ uint32_t mul_fp16x2(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// Scale byte `i` of a record's scale word as a pair of multipliers.
template <Act kAct>
__device__ __forceinline__ uint32_t scale_pair(uint32_t word, int i) {
  const uint32_t byte = __byte_perm(word, 0, 0x4440 + i);
  return kAct == Act::kBf16 ? byte * 0x00800080u : byte * 0x04000400u;
}

// One interleaved word -> the pair k, k+1 (`low`) and the pair k+8, k+9 (`high`).
template <Act kAct>
__device__ __forceinline__ void decode_word(uint32_t word, uint32_t scale, uint32_t& low,
                                            uint32_t& high) {
  if constexpr (kAct == Act::kBf16) {
    low = mul_bf16x2(word & 0x87F087F0u, scale);
    high = mul_bf16x2(((word << 4) & 0x80F080F0u) | ((word >> 4) & 0x07000700u), scale);
  } else {
    low = mul_fp16x2((word & 0x80008000u) | ((word << 3) & 0x3F803F80u), scale);
    high = mul_fp16x2(
        ((word << 4) & 0x80008000u) | ((word >> 1) & 0x38003800u) | ((word << 7) & 0x07800780u),
        scale);
  }
}

// The four words that a lane has of 16 rows x 32 K -> its A operands of the first (`low`) and the
// second (`high`) 16 K. `scales`: the record's scale word of its rows; `half`: which 32 K.
template <Act kAct>
__device__ __forceinline__ void decode_operands(const uint32_t (&words)[4], uint32_t scales,
                                                int half, uint32_t (&low)[4], uint32_t (&high)[4]) {
  const uint32_t s0 = scale_pair<kAct>(scales, half), s1 = scale_pair<kAct>(scales, 2 + half);
  decode_word<kAct>(words[0], s0, low[0], low[2]);
  decode_word<kAct>(words[1], s1, low[1], low[3]);
  decode_word<kAct>(words[2], s0, high[0], high[2]);
  decode_word<kAct>(words[3], s1, high[1], high[3]);
}

}  // namespace mx8::cuda
