#include "pack/mma_fragment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "mx/bf16.h"
#include "mx/e4m3.h"
#include "mx/e8m0.h"
#include "mx/row_fold.h"

namespace mx8 {
namespace {

MxMatrix random_matrix(int64_t n, int64_t k, int low, int high, uint32_t seed, bool nans = false) {
  std::mt19937 rng(seed);
  MxMatrix m(n, k);
  for (auto& c : m.codes) {
    do c = static_cast<uint8_t>(rng());
    while (!nans && e4m3_is_nan(c));
  }
  for (auto& s : m.scales) s = static_cast<uint8_t>(low + rng() % (high - low + 1));
  return m;
}

TEST(MmaFragment, EveryCodeOfARecordHasItsOwnPlace) {
  std::set<std::pair<int, int>> seen;
  for (int word = 0; word < 1024; ++word)
    for (int byte = 0; byte < 4; ++byte) {
      const FragmentCoord at = fragment_code_coord(word, byte);
      ASSERT_TRUE(at.row >= 0 && at.row < 64 && at.k >= 0 && at.k < 64);
      seen.insert({at.row, at.k});
    }
  EXPECT_EQ(seen.size(), 4096u);
}

TEST(MmaFragment, EveryScaleOfARecordHasItsOwnPlace) {
  std::set<std::pair<int, int>> seen;
  for (int byte = 0; byte < 128; ++byte) {
    const FragmentCoord at = fragment_scale_coord(byte);
    EXPECT_EQ(at.k % 32, 0);
    seen.insert({at.row, at.k});
  }
  EXPECT_EQ(seen.size(), 128u);
}

// The definition of the A operand of mma.m16n8k16 (PTX ISA, matrix fragments): register r of lane
// l holds row g + 8 * (r & 1), columns 2c + 8 * (r >> 1) and the one after.
TEST(MmaFragment, WordsAreTheRegistersOfTheTensorCore) {
  for (int lane = 0; lane < 32; ++lane)
    for (int step = 0; step < 2; ++step)
      for (int half = 0; half < 2; ++half) {
        const int word = lane * 4 + step * 2 + half, g = lane / 4, c = lane % 4;
        for (int high = 0; high < 2; ++high)  // a0/a1 against a2/a3
          for (int element = 0; element < 2; ++element) {
            const FragmentCoord at = fragment_code_coord(word, high + 2 * element);
            EXPECT_EQ(at.row, g + 8 * half);
            EXPECT_EQ(at.k, step * 16 + 8 * high + 2 * c + element);
          }
      }
}

TEST(MmaFragment, SlotOrderInsideSixteen) {
  std::set<int> seen;
  for (int s = 0; s < 16; ++s) {
    EXPECT_EQ(fragment_k_of_slot(s), kFragmentK[s]);
    seen.insert(kFragmentK[s]);
    // Slot s of 16 is byte s % 4 of the word of lane column s / 4.
    EXPECT_EQ(fragment_code_coord((s / 4) * 4, s % 4).k, kFragmentK[s]);
  }
  EXPECT_EQ(seen.size(), 16u);
}

TEST(MmaFragment, InterleavingIsExactForEveryPair) {
  for (uint32_t a = 0; a < 256; ++a)
    for (uint32_t b = 0; b < 256; ++b)
      ASSERT_EQ(deinterleave_pair(interleave_pair(a, b)), a | b << 8);
}

// What the kernels compute from an interleaved half word, for every code and every scale byte that
// KernelInfo calls exact: mask, then one BF16 multiply.
TEST(MmaFragment, MaskAndMultiplyIsExactForScales3To134) {
  for (int e = 3; e <= 134; ++e)
    for (uint32_t code = 0; code < 256; ++code) {
      if (e4m3_is_nan(static_cast<uint8_t>(code))) continue;
      const uint32_t as_a = interleave_pair(code, 0x55), as_b = interleave_pair(0xAA, code);
      const uint32_t a = as_a & 0x87F0u;
      const uint32_t b = ((as_b << 4) & 0x80F0u) | ((as_b >> 4) & 0x0700u);
      ASSERT_EQ(a, b) << code;
      const float factor =
          bf16_to_f32(static_cast<uint16_t>(bf16_scale_byte(static_cast<uint8_t>(e)) << 7));
      const float product = bf16_to_f32(static_cast<uint16_t>(a)) * factor;
      const float want =
          static_cast<float>(mx_value(static_cast<uint8_t>(code), static_cast<uint8_t>(e)));
      ASSERT_EQ(product, want) << code << " " << e;
      ASSERT_EQ(bf16_to_f32(f32_to_bf16(product)), want) << "not a BF16 value";
    }
}

TEST(MmaFragment, Fp16MaskAndMultiplyIsExactDownTo2Minus15) {
  for (int relative = kFp16MinRelativeExponent; relative <= 0; ++relative)
    for (uint32_t code = 0; code < 256; ++code) {
      if (e4m3_is_nan(static_cast<uint8_t>(code))) continue;
      const uint32_t half = interleave_pair(code, 0);
      const auto placed = static_cast<uint16_t>((half & 0x8000u) | ((half & 0x07F0u) << 3));
      const auto factor = static_cast<uint16_t>((kFp16ScaleBias + relative) << 10);
      const float product = f16_to_f32(placed) * f16_to_f32(factor);
      ASSERT_EQ(product, std::ldexp(e4m3_decode(static_cast<uint8_t>(code)), relative));
      ASSERT_EQ(f16_to_f32(f32_to_f16(product)), product) << "not an FP16 value";
    }
}

TEST(MmaFragment, RoundTripGivesBackEveryByte) {
  for (int64_t n : {1, 2, 7, 63, 64, 65, 130})
    for (int64_t k : {32, 64, 96, 128, 160, 320}) {
      const MxMatrix w = random_matrix(n, k, 0, 255, static_cast<uint32_t>(n * 1000 + k), true);
      for (RowOrder order : {RowOrder::kPlain, RowOrder::kGateUpInterleaved}) {
        if (order == RowOrder::kGateUpInterleaved && n % 2) continue;
        auto packed = pack_mma_fragment(w.view(), FragmentKind::kBf16, order);
        ASSERT_TRUE(packed.ok()) << packed.error().message;
        const MxMatrix back = unpack_mma_fragment(*packed);
        ASSERT_EQ(back.codes, w.codes) << n << "x" << k;
        ASSERT_EQ(back.scales, w.scales) << n << "x" << k;
      }
    }
}

TEST(MmaFragment, RoundTripOfTheFp16Kind) {
  const MxMatrix w = random_matrix(70, 160, 110, 125, 5);
  auto packed = pack_mma_fragment(w.view(), FragmentKind::kFp16, RowOrder::kPlain);
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  const MxMatrix back = unpack_mma_fragment(*packed);
  EXPECT_EQ(back.codes, w.codes);
  EXPECT_EQ(back.scales, w.scales);
}

TEST(MmaFragment, FoldedKindHoldsTheFoldedRows) {
  const MxMatrix w = random_matrix(66, 192, 115, 125, 6);
  auto packed = pack_mma_fragment(w.view(), FragmentKind::kFolded, RowOrder::kGateUpInterleaved);
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  const MxMatrix back = unpack_mma_fragment(*packed);
  const RowFold fold = mx_fold_rows(w.view());
  EXPECT_EQ(back.codes, fold.codes);
  for (int64_t n = 0; n < w.rows; ++n)
    for (int64_t b = 0; b < w.view().blocks_per_row(); ++b)
      EXPECT_EQ(back.scales[n * w.view().blocks_per_row() + b] - kE8m0Bias, fold.exponents[n]);
}

// Padding multiplies zero codes by something finite, whatever the memory held before.
TEST(MmaFragment, PaddingIsZeroCodesAndFiniteScales) {
  for (FragmentKind kind : {FragmentKind::kBf16, FragmentKind::kFp16, FragmentKind::kFolded})
    for (RowOrder order : {RowOrder::kPlain, RowOrder::kGateUpInterleaved})
      for (int64_t n : {2, 44, 64, 130, 200})
        for (int64_t k : {32, 96, 128, 160, 288}) {
          const MxMatrix w = random_matrix(n, k, 118, 124, static_cast<uint32_t>(n + k));
          auto packed = pack_mma_fragment(w.view(), kind, order);
          ASSERT_TRUE(packed.ok()) << packed.error().message;
          const FragmentShape& s = packed->shape;
          ASSERT_EQ(static_cast<int64_t>(packed->records.size()), s.bytes());
          const auto padding = [&](int64_t record, const FragmentCoord& at) {
            const int64_t row = record / s.k_records() * kFragmentRows + at.row;
            const int64_t column = record % s.k_records() * kFragmentCols + at.k;
            return fragment_source_row(row, n, order) < 0 || column >= k;
          };
          for (int64_t r = 0; r < s.row_blocks() * s.k_records(); ++r) {
            const uint8_t* record = packed->records.data() + r * s.record_bytes();
            for (int word = 0; word < kFragmentCodeBytes / 4; ++word) {
              uint32_t plain;
              std::memcpy(&plain, record + 4 * word, 4);
              if (kind != FragmentKind::kFolded) plain = deinterleave_word(plain);
              for (int byte = 0; byte < 4; ++byte)
                if (padding(r, fragment_code_coord(word, byte))) {
                  ASSERT_EQ(plain >> (8 * byte) & 255, 0u) << n << "x" << k;
                }
            }
            for (int byte = kFragmentCodeBytes; byte < s.record_bytes(); ++byte)
              if (padding(r, fragment_scale_coord(byte - kFragmentCodeBytes))) {
                ASSERT_EQ(record[byte], 1) << n << "x" << k;
              }
          }
          for (int64_t p = 0; p < s.row_scales(); ++p)
            if (fragment_source_row(p, n, order) < 0) {
              ASSERT_EQ(packed->row_scales[p], 1.0f);
            }
        }
}

TEST(MmaFragment, SizesAreWide) {
  const FragmentShape shape{70000, 32768, FragmentKind::kBf16, RowOrder::kPlain};
  EXPECT_EQ(shape.bytes(), int64_t{1094} * 512 * kFragmentRecordBytes);
  EXPECT_GT(shape.bytes(), int64_t{1} << 31);
}

TEST(MmaFragment, GateAndUpOfAFeatureShareALane) {
  const int64_t n = 44;  // 22 features: not a multiple of 8
  for (int64_t p = 0; p < fragment_packed_rows(n, RowOrder::kGateUpInterleaved); ++p) {
    const int64_t row = fragment_source_row(p, n, RowOrder::kGateUpInterleaved);
    const int64_t mate = fragment_source_row(p ^ 8, n, RowOrder::kGateUpInterleaved);
    if (row < 0) {
      EXPECT_LT(mate, 0);
      continue;
    }
    EXPECT_EQ(std::abs(row - mate), n / 2);
    EXPECT_EQ(row < n / 2, (p & 8) == 0);
  }
}

TEST(MmaFragment, RefusesWhatItCannotHold) {
  MxMatrix w = random_matrix(4, 64, 120, 120, 7);
  EXPECT_FALSE(pack_mma_fragment({w.codes.data(), w.scales.data(), 4, 48}, FragmentKind::kBf16,
                                 RowOrder::kPlain)
                   .ok());
  EXPECT_FALSE(pack_mma_fragment(w.view().rows_slice(0, 3), FragmentKind::kBf16,
                                 RowOrder::kGateUpInterleaved)
                   .ok());
  w.scales[3] = 104;  // 2^-16 below the others of its row
  auto packed = pack_mma_fragment(w.view(), FragmentKind::kFp16, RowOrder::kPlain);
  ASSERT_FALSE(packed.ok());
  EXPECT_NE(packed.error().message.find("row 1"), std::string::npos) << packed.error().message;
  w.codes[0] = kE4m3Nan;
  EXPECT_FALSE(pack_mma_fragment(w.view(), FragmentKind::kFolded, RowOrder::kPlain).ok());
  EXPECT_TRUE(pack_mma_fragment(w.view(), FragmentKind::kBf16, RowOrder::kPlain).ok());
}

}  // namespace
}  // namespace mx8
