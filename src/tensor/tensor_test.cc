#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mx/bf16.h"
#include "tensor/dtype.h"
#include "tensor/matrix.h"
#include "tensor/plain_values.h"
#include "tensor/quant.h"

namespace mx8 {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype) << dtype_name(dtype);
    EXPECT_GE(dtype_size(dtype), 1);
  }
  EXPECT_EQ(dtype_name(DType::kF8E8M0), "F8_E8M0");
  EXPECT_EQ(dtype_size(DType::kBF16), 2);
  EXPECT_EQ(parse_dtype("F4"), std::nullopt);
}

TEST(PlainValues, EveryElementOfEveryType) {
  std::vector<uint16_t> halves(65536);
  std::vector<float> bf16(65536), f16(65536), want_bf16(65536), want_f16(65536);
  for (size_t i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<uint16_t>(i);
    want_bf16[i] = bf16_to_f32(halves[i]);
    want_f16[i] = f16_to_f32(halves[i]);
  }
  plain_to_f32(DType::kBF16, halves.data(), 0, 65536, bf16.data());
  plain_to_f32(DType::kF16, halves.data(), 0, 65536, f16.data());
  EXPECT_EQ(std::memcmp(bf16.data(), want_bf16.data(), 4 * 65536), 0);
  EXPECT_EQ(std::memcmp(f16.data(), want_f16.data(), 4 * 65536), 0);
  const float floats[4] = {1, -2, 3e38f, 1e-45f};
  float out[3] = {0, 0, 7};
  plain_to_f32(DType::kF32, floats, 1, 2, out);
  EXPECT_EQ(out[0], -2);
  EXPECT_EQ(out[1], 3e38f);
  EXPECT_EQ(out[2], 7);
  plain_to_f32(DType::kBF16, halves.data(), 0x3F80, 1, out);
  EXPECT_EQ(out[0], 1);
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const DType dtype = static_cast<DType>(i);
    if (is_plain_dtype(dtype)) continue;
    EXPECT_DEATH(plain_to_f32(dtype, floats, 0, 1, out), std::string(dtype_name(dtype)));
  }
}

TEST(Mat, Slices) {
  float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Mat m = Mat::f32(data, 3, 4);
  EXPECT_EQ(*m.rows_slice(1, 2).f32_data(), 4);
  const Mat c = m.cols_slice(2, 2);
  EXPECT_EQ(c.f32_row(2)[1], 11);
  EXPECT_EQ(c.ld, 4);
}

TEST(QuantScheme, TellsFormatsApart) {
  EXPECT_TRUE(QuantScheme::mxfp8().is_mxfp8());
  EXPECT_FALSE(QuantScheme::mxfp8().is_plain());
  EXPECT_TRUE(QuantScheme::plain(DType::kF16).is_plain());
  QuantScheme block = QuantScheme::mxfp8();
  block.block_rows = block.block_cols = 128;
  EXPECT_FALSE(block.is_mxfp8());
  EXPECT_EQ(describe(QuantScheme::mxfp8(ActivationScheme::kDynamicMxfp8)), "mxfp8 (w8a8)");
  uint8_t bytes[64] = {};
  const QuantView wrong{bytes, bytes, 1, 48, QuantScheme::mxfp8()};
  EXPECT_DEATH(static_cast<void>(wrong.mx()), "48");
}

}  // namespace
}  // namespace mx8
