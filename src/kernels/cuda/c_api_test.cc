// What the C ABI does without a GPU: sizes, the CPU packer, versioned structs, messages.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mx8/kernels.h"
#include "pack/mma_fragment.h"

namespace mx8 {
namespace {

mx8_weight_desc weight(int64_t n, int64_t k, mx8_activations a = MX8_BF16) {
  mx8_weight_desc d = {};
  d.struct_size = sizeof(d);
  d.n = n, d.k = k, d.activations = a;
  return d;
}
bool said(const char* part) {
  return std::string(mx8_last_error()).find(part) != std::string::npos;
}

TEST(CApi, PackedSizes) {
  size_t bytes = 0, scales = 0;
  auto d = weight(65, 130 - 2);
  ASSERT_EQ(mx8_packed_size(&d, &bytes, &scales), MX8_OK);
  EXPECT_EQ(bytes, 2u * 2 * kFragmentRecordBytes);
  EXPECT_EQ(scales, 0u);
  d = weight(65, 160, MX8_FP8);
  ASSERT_EQ(mx8_packed_size(&d, &bytes, &scales), MX8_OK);
  EXPECT_EQ(bytes, 2u * 4 * kFragmentCodeBytes);
  EXPECT_EQ(scales, 128u);
}

TEST(CApi, RefusesBadShapesWithTheirValues) {
  size_t bytes = 0;
  auto d = weight(64, 33);
  EXPECT_EQ(mx8_packed_size(&d, &bytes, nullptr), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("33")) << mx8_last_error();
  d = weight(7, 64);
  d.gate_up = 1;
  EXPECT_EQ(mx8_packed_size(&d, &bytes, nullptr), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("7")) << mx8_last_error();
  d = weight(8, 64, static_cast<mx8_activations>(9));
  EXPECT_EQ(mx8_packed_size(&d, &bytes, nullptr), MX8_INVALID_ARGUMENT);
  EXPECT_EQ(mx8_packed_size(nullptr, &bytes, nullptr), MX8_INVALID_ARGUMENT);
}

// An older caller's struct is shorter; a newer one's is longer and may hold what this library
// cannot honour.
TEST(CApi, StructsAreVersioned) {
  size_t bytes = 0;
  auto d = weight(64, 64);
  d.gate_up = 77;  // lies behind the size given next, so it must not be read
  d.struct_size = offsetof(mx8_weight_desc, gate_up);
  EXPECT_EQ(mx8_packed_size(&d, &bytes, nullptr), MX8_OK) << mx8_last_error();
  d.struct_size = sizeof(d) + 8;
  EXPECT_EQ(mx8_packed_size(&d, &bytes, nullptr), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("struct_size")) << mx8_last_error();
  d.struct_size = 0;
  EXPECT_EQ(mx8_packed_size(&d, &bytes, nullptr), MX8_INVALID_ARGUMENT);
}

TEST(CApi, PacksOnTheCpuAndSaysWhyNot) {
  std::vector<uint8_t> codes(64 * 64, 0x38), scales(64 * 2, 127), packed(kFragmentRecordBytes * 2);
  auto d = weight(64, 64);
  ASSERT_EQ(mx8_pack_cpu(&d, codes.data(), scales.data(), packed.data(), nullptr), MX8_OK)
      << mx8_last_error();
  const auto want = pack_mma_fragment({codes.data(), scales.data(), 64, 64}, FragmentKind::kBf16,
                                      RowOrder::kPlain);
  EXPECT_TRUE(packed == want->records);
  codes[3 * 64] = 0x7F;
  std::vector<float> row_scales(64);
  d = weight(64, 64, MX8_FP8);
  EXPECT_EQ(mx8_pack_cpu(&d, codes.data(), scales.data(), packed.data(), row_scales.data()),
            MX8_UNSUPPORTED);
  EXPECT_TRUE(said("row 3")) << mx8_last_error();
  EXPECT_EQ(mx8_pack_cpu(&d, codes.data(), scales.data(), packed.data(), nullptr),
            MX8_INVALID_ARGUMENT);
}

TEST(CApi, EveryThreadHasItsOwnMessage) {
  size_t bytes = 0;
  auto bad = weight(64, 33);
  ASSERT_NE(mx8_packed_size(&bad, &bytes, nullptr), MX8_OK);
  std::string other;
  std::thread([&] { other = mx8_last_error(); }).join();
  EXPECT_TRUE(said("33"));
  EXPECT_EQ(other.find("33"), std::string::npos) << other;
}

TEST(CApi, TheQuantiserNamesWhatItCannotTake) {
  const auto with = [](uintptr_t x, uintptr_t codes, int64_t ldx, int64_t ld_codes, int k) {
    mx8_quantize_args a = {};
    a.struct_size = sizeof a;
    a.x = reinterpret_cast<void*>(x), a.codes = reinterpret_cast<void*>(codes);
    a.scales = reinterpret_cast<float*>(4096);
    a.ldx = ldx, a.ld_codes = ld_codes, a.m = 1, a.k = k;
    return mx8_quantize_tokens(&a, nullptr);
  };
  EXPECT_EQ(with(4096, 4096, 64, 64, 48), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("k 48")) << mx8_last_error();
  EXPECT_EQ(with(4096, 4096, 32, 64, 64), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("ldx 32")) << mx8_last_error();
  EXPECT_EQ(with(0, 4096, 64, 64, 64), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("NULL")) << mx8_last_error();
  EXPECT_EQ(with(4098, 4096, 64, 64, 64), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("rows of X must be 16-byte aligned, found an address of 2")) << mx8_last_error();
  EXPECT_EQ(with(4096, 4096, 64, 68, 64), MX8_INVALID_ARGUMENT);
  EXPECT_TRUE(said("rows of codes must be 16-byte aligned")) << mx8_last_error();
}

TEST(CApi, NullPlansAreHarmless) {
  mx8_gemm_destroy(nullptr);
  EXPECT_EQ(mx8_gemm_workspace_size(nullptr), 0u);
  EXPECT_EQ(mx8_gemm_kernel(nullptr, 1), nullptr);
  mx8_gemm_args args = {};
  args.struct_size = sizeof(args);
  EXPECT_EQ(mx8_gemm_launch(nullptr, &args, nullptr), MX8_INVALID_ARGUMENT);
}

// The other tests here never start the CUDA runtime, so it sees the variable wherever this one
// runs.
TEST(CApi, APlanWithoutAGpuSaysSo) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
  mx8_gemm_desc d = {};
  d.struct_size = sizeof(d);
  d.weight = weight(64, 64);
  d.max_m = 16;
  mx8_gemm* plan = nullptr;
  EXPECT_EQ(mx8_gemm_create(&d, &plan), MX8_NO_DEVICE) << mx8_last_error();
  EXPECT_EQ(plan, nullptr);
  EXPECT_TRUE(said("GPU")) << mx8_last_error();
}

}  // namespace
}  // namespace mx8
