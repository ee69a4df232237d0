// wgmma with the weights in registers (A) and the tokens in shared memory (B, K-major, 128-byte
// swizzle): acc[64 x kTokens] (+)= A[64 x 16 or 32] * B. `accumulate` 0 overwrites the
// accumulators.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

// Shared-memory matrix descriptor: start address, stride between 8-row groups 1024 B, 128-B
// swizzle.
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) |
         (1ull << 62);
}
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

// Operand lists in steps of 8 accumulators: MX8_Rn names registers 0..n-1 in the text, MX8_Dn binds
// them to d[0..n-1].
#define MX8_R8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define MX8_D8 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define MX8_R16 MX8_R8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define MX8_D16                                                                                    \
  MX8_D8, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), \
      "+f"(d[15])
#define MX8_R24 MX8_R16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define MX8_D24                                                                          \
  MX8_D16, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), \
      "+f"(d[22]), "+f"(d[23])
#define MX8_R32 MX8_R24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define MX8_D32                                                                          \
  MX8_D24, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), \
      "+f"(d[30]), "+f"(d[31])
#define MX8_R40 MX8_R32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define MX8_D40                                                                          \
  MX8_D32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), \
      "+f"(d[38]), "+f"(d[39])
#define MX8_R48 MX8_R40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define MX8_D48                                                                          \
  MX8_D40, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), \
      "+f"(d[46]), "+f"(d[47])
#define MX8_R56 MX8_R48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define MX8_D56                                                                          \
  MX8_D48, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), \
      "+f"(d[54]), "+f"(d[55])
#define MX8_R64 MX8_R56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define MX8_D64                                                                          \
  MX8_D56, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), \
      "+f"(d[62]), "+f"(d[63])
#define MX8_R72 MX8_R64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define MX8_D72                                                                          \
  MX8_D64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), \
      "+f"(d[70]), "+f"(d[71])
#define MX8_R80 MX8_R72 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define MX8_D80                                                                          \
  MX8_D72, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), \
      "+f"(d[78]), "+f"(d[79])
#define MX8_R88 MX8_R80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define MX8_D88                                                                          \
  MX8_D80, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), \
      "+f"(d[86]), "+f"(d[87])
#define MX8_R96 MX8_R88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define MX8_D96                                                                          \
  MX8_D88, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), \
      "+f"(d[94]), "+f"(d[95])
#define MX8_R104 MX8_R96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define MX8_D104                                                                           \
  MX8_D96, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), \
      "+f"(d[102]), "+f"(d[103])
#define MX8_R112 MX8_R104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define MX8_D112                                                                                \
  MX8_D104, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), \
      "+f"(d[110]), "+f"(d[111])
#define MX8_R120 MX8_R112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define MX8_D120                                                                                \
  MX8_D112, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), \
      "+f"(d[118]), "+f"(d[119])
#define MX8_R128 MX8_R120 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define MX8_D128                                                                                \
  MX8_D120, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), \
      "+f"(d[126]), "+f"(d[127])

template <Act kAct, int kTokens>
struct Wgmma;

// A: a0..a3; then the descriptor and the accumulate flag follow the accumulators in the operand
// list.
#define MX8_WGMMA(act, tokens, shape, types, tail, regs, binds, a0, a1, a2, a3, de, sd)           \
  template <>                                                                                     \
  struct Wgmma<act, tokens> {                                                                     \
    static __device__ __forceinline__ void run(float (&d)[tokens / 2], const uint32_t (&a)[4],    \
                                               uint64_t desc, int accumulate) {                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #sd                                       \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned." shape "." types " {" regs "}, {%" #a0 ",%" #a1 \
                   ",%" #a2 ",%" #a3 "}, %" #de ", p, " tail ";\n}\n"                             \
                   : binds                                                                        \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc), "r"(accumulate));     \
    }                                                                                             \
  };
#define MX8_WGMMA_TOKENS(tokens, acc, a0, a1, a2, a3, de, sd)                                 \
  MX8_WGMMA(Act::kBf16, tokens, "m64n" #tokens "k16", "f32.bf16.bf16", "1, 1, 0", MX8_R##acc, \
            MX8_D##acc, a0, a1, a2, a3, de, sd)                                               \
  MX8_WGMMA(Act::kFp16, tokens, "m64n" #tokens "k16", "f32.f16.f16", "1, 1, 0", MX8_R##acc,   \
            MX8_D##acc, a0, a1, a2, a3, de, sd)                                               \
  MX8_WGMMA(Act::kFp8, tokens, "m64n" #tokens "k32", "f32.e4m3.e4m3", "1, 1", MX8_R##acc,     \
            MX8_D##acc, a0, a1, a2, a3, de, sd)

MX8_WGMMA_TOKENS(16, 8, 8, 9, 10, 11, 12, 13)
MX8_WGMMA_TOKENS(32, 16, 16, 17, 18, 19, 20, 21)
MX8_WGMMA_TOKENS(64, 32, 32, 33, 34, 35, 36, 37)
MX8_WGMMA_TOKENS(96, 48, 48, 49, 50, 51, 52, 53)
MX8_WGMMA_TOKENS(128, 64, 64, 65, 66, 67, 68, 69)
MX8_WGMMA_TOKENS(160, 80, 80, 81, 82, 83, 84, 85)
MX8_WGMMA_TOKENS(176, 88, 88, 89, 90, 91, 92, 93)
MX8_WGMMA_TOKENS(208, 104, 104, 105, 106, 107, 108, 109)
MX8_WGMMA_TOKENS(256, 128, 128, 129, 130, 131, 132, 133)

#undef MX8_WGMMA_TOKENS
#undef MX8_WGMMA

}  // namespace mx8::cuda
