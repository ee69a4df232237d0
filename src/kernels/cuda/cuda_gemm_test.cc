// The GPU GEMM kernels against FP64 over shapes, token counts, epilogues, types and strides. Every
// case poisons its output first, checks every element by a bound, and checks that nothing outside
// was written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "base/strings.h"
#include "kernels/cuda/emulated_gemm.h"
#include "kernels/cuda/pack_mma_fragment.h"
#include "kernels/cuda/quantize_tokens.h"
#include "kernels/cuda/sm80_mxfp8_gemm.h"
#include "kernels/cuda/sm90_mxfp8_gemm.h"
#include "kernels/cuda/sm90_mxfp8_stream.h"
#include "kernels/cuda/testing/gemm_problem.h"
#include "mx/bf16.h"

namespace mx8::cuda {
namespace {

using namespace mx8::cuda::testing;  // NOLINT

int device_sms() {
  int sms = 0;
  if (cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) != cudaSuccess) return 0;
  int major = 0;
  MX8_CUDA_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  return major == 9 ? sms : 0;
}
#define REQUIRE_SM90() \
  if (device_sms() == 0) GTEST_SKIP() << "needs an SM90 GPU"

struct Case {
  int n = 0, k = 0, m = 0;  // n: rows of W
  Act act = Act::kBf16;
  Out out = Out::kBf16;
  bool bias = false, residual = false, in_place = false, silu_mul = false;
  int pad_x = 0, pad_y = 0;  // extra elements a row
  int m_device = -1;
  int sms = 0;  // multiprocessors to plan for; 0: those there are
  std::string describe() const {
    return str_cat("n ", n, " k ", k, " m ", m, " act ", static_cast<int>(act), " out ",
                   static_cast<int>(out), bias ? " bias" : "", residual ? " residual" : "",
                   in_place ? " in place" : "", silu_mul ? " silu" : "", " pad ", pad_x, " ", pad_y,
                   " m_device ", m_device, " sms ", sms);
  }
};

constexpr size_t kGuard = 4096;

// Operands of a case on the device, and its expected result.
class Fixture {
 public:
  explicit Fixture(const Case& c) : c_(c) {
    shape_ = {c.n, c.k,
              c.act == Act::kFp8    ? FragmentKind::kFolded
              : c.act == Act::kFp16 ? FragmentKind::kFp16
                                    : FragmentKind::kBf16,
              c.silu_mul ? RowOrder::kGateUpInterleaved : RowOrder::kPlain};
    features_ = c.silu_mul ? c.n / 2 : c.n;
    ldx_ = c.k + c.pad_x;
    ldy_ = features_ + c.pad_y;
    codes_ = DeviceArray<uint8_t>(static_cast<size_t>(c.n) * c.k);
    scales_ = DeviceArray<uint8_t>(static_cast<size_t>(c.n) * c.k / 32);
    generate_weights(codes_.get(), scales_.get(), c.n, c.k, 11, 0.05f);
    records_ = DeviceArray<uint8_t>(shape_.bytes());
    row_scale_ = DeviceArray<float>(std::max<int64_t>(1, shape_.row_scales()));
    MX8_CUDA_OK(pack_mma_fragment_device(shape_, codes_.get(), scales_.get(), records_.get(),
                                         row_scale_.get(), nullptr));
    x_ = DeviceArray<uint16_t>(static_cast<size_t>(std::max(c.m, 1)) * ldx_);
    generate_values(x_.get(), static_cast<int64_t>(c.m) * ldx_, 5,
                    c.act == Act::kFp16 ? Act::kFp16 : Act::kBf16);
    if (c.act == Act::kFp8) {
      x_codes_ = DeviceArray<uint8_t>(static_cast<size_t>(std::max(c.m, 1)) * code_stride());
      token_scale_ = DeviceArray<float>(std::max(c.m, 1));
      QuantizeParams q;
      q.x = x_.get(), q.ldx = ldx_, q.codes = x_codes_.get(), q.ld_codes = code_stride();
      q.scales = token_scale_.get(), q.m = c.m, q.k = c.k;
      MX8_CUDA_OK(quantize_tokens(q, nullptr, false));
    }
    bias_ = DeviceArray<float>(shape_.row_blocks() * 64);
    generate_values(bias_.get(), static_cast<int64_t>(bias_.size()), 21, Act::kFp8, 0.5f);
    residual_ = DeviceArray<uint16_t>(static_cast<size_t>(std::max(c.m, 1)) * ldy_);
    generate_values(residual_.get(), static_cast<int64_t>(residual_.size()), 22,
                    c.out == Out::kFp16 ? Act::kFp16 : Act::kBf16);
    if (c.m_device >= 0) {
      m_device_ = DeviceArray<int>(1);
      m_device_.upload({c.m_device});
    }
    element_ = c.out == Out::kFp32 ? 4 : 2;
    y_ = DeviceArray<uint8_t>(y_bytes() + 2 * kGuard);
    MX8_CUDA_OK(cudaDeviceSynchronize());
  }

  int code_stride() const { return c_.k + (c_.pad_x + 15) / 16 * 16; }
  size_t y_bytes() const { return static_cast<size_t>(std::max(c_.m, 1)) * ldy_ * element_; }
  int tokens() const { return c_.m_device >= 0 ? std::min(c_.m, c_.m_device) : c_.m; }

  GemmParams params() const {
    GemmParams p;
    p.w = records_.get(), p.row_scale = row_scale_.get();
    p.x = c_.act == Act::kFp8 ? static_cast<const void*>(x_codes_.get()) : x_.get();
    p.ldx = c_.act == Act::kFp8 ? code_stride() : ldx_;
    p.token_scale = token_scale_.get();
    p.y = y_.get() + kGuard, p.ldy = ldy_;
    p.bias = c_.bias ? bias_.get() : nullptr;
    if (c_.residual) p.residual = c_.in_place ? p.y : static_cast<const void*>(residual_.get());
    p.ld_residual = ldy_;
    p.m_device = c_.m_device >= 0 ? m_device_.get() : nullptr;
    p.m = c_.m, p.n = features_, p.k = c_.k;
    p.row_blocks = static_cast<int>(shape_.row_blocks()),
    p.k_records = static_cast<int>(shape_.k_records());
    p.out = c_.out, p.silu_mul = c_.silu_mul;
    return p;
  }

  const std::vector<Expected>& expected() {
    if (!expected_.empty() || tokens() == 0) return expected_;
    ReferenceInput in;
    in.codes = codes_.get(), in.scales = scales_.get();
    in.row_scale = c_.act == Act::kFp8 ? row_scale_.get() : nullptr;
    in.x = x_.get(), in.x_codes = x_codes_.get(), in.token_scale = token_scale_.get();
    in.act = c_.act, in.ldx = c_.act == Act::kFp8 ? code_stride() : ldx_;
    in.rows = c_.n, in.k = c_.k, in.order = shape_.order;
    in.bias = c_.bias ? bias_.get() : nullptr;
    in.silu_mul = c_.silu_mul;
    in.residual = c_.residual ? residual_.get() : nullptr;
    in.ld_residual = ldy_, in.out = c_.out;
    positions_ = choose_positions(features_, tokens(), 400000);
    expected_ = reference(in, positions_);
    return expected_;
  }

  using Launch = std::function<cudaError_t(const GemmParams&)>;
  // The bytes of Y and its guards after one launch on poisoned memory.
  std::vector<uint8_t> run(const Launch& launch) {
    y_.fill(0xFF);
    if (c_.in_place && c_.m > 0)
      MX8_CUDA_OK(cudaMemcpy(y_.get() + kGuard, residual_.get(),
                             static_cast<size_t>(c_.m) * ldy_ * 2, cudaMemcpyDeviceToDevice));
    const cudaError_t e = launch(params());
    EXPECT_EQ(e, cudaSuccess) << cudaGetErrorString(e) << ": " << c_.describe();
    MX8_CUDA_OK(cudaDeviceSynchronize());
    return y_.download();
  }

  // Bytes in which `times` more launches, one after the other, differ from the first.
  unsigned long long differences(const Launch& launch, int times) {
    DeviceArray<uint8_t> first(y_.size());
    DeviceArray<unsigned long long> differing(1);
    differing.fill(0);
    for (int i = 0; i <= times; ++i) {
      y_.fill(0xFF);
      const cudaError_t e = launch(params());
      EXPECT_EQ(e, cudaSuccess) << cudaGetErrorString(e) << ": " << c_.describe();
      if (i == 0)
        MX8_CUDA_OK(cudaMemcpy(first.get(), y_.get(), y_.size(), cudaMemcpyDeviceToDevice));
      else
        count_differences(first.get(), y_.get(), y_.size(), differing.get());
    }
    return differing.download()[0];
  }

  float value(const std::vector<uint8_t>& y, int m, int n) const {
    const uint8_t* at = y.data() + kGuard + (static_cast<size_t>(m) * ldy_ + n) * element_;
    if (element_ == 4) {
      float f;
      std::memcpy(&f, at, 4);
      return f;
    }
    uint16_t h;
    std::memcpy(&h, at, 2);
    return c_.out == Out::kFp16 ? f16_to_f32(h) : bf16_to_f32(h);
  }

  // "" or what is wrong: elements outside the bound, outputs not written, writes outside.
  std::string judge(const std::vector<uint8_t>& y) {
    const auto& want = expected();
    // FP32 sums of E4M3 products in the tensor cores keep fewer bits than FP32 does.
    const double sum_error = c_.act == Act::kFp8 ? 0x1p-11 : 0x1p-18;
    const double rounding = c_.out == Out::kBf16   ? 0x1p-8
                            : c_.out == Out::kFp16 ? 0x1p-10
                                                   : 0x1p-18;
    double error = 0, norm = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const auto [n, m] = positions_[i];
      const double got = value(y, m, n), ref = want[i].value;
      if (!(std::abs(got - ref) <= rounding * std::abs(ref) + sum_error * want[i].magnitude + 1e-7))
        return str_cat("y[", m, ",", n, "] = ", got, ", expected ", ref, ": ", c_.describe());
      error += (got - ref) * (got - ref), norm += ref * ref;
    }
    // Rounding to BF16 alone can take 2^-8 of each element; only over many is it 1.7e-3.
    const double limit = c_.act == Act::kFp8 ? 6e-3 : want.size() < 256 ? 0x1p-8 : 2.5e-3;
    if (norm > 0 && !(std::sqrt(error / norm) < limit))
      return str_cat("relative error ", std::sqrt(error / norm), ": ", c_.describe());
    for (size_t i = 0; i < y.size(); ++i) {
      const bool guard = i < kGuard || i >= kGuard + y_bytes();
      const size_t column = guard ? 0 : (i - kGuard) / element_ % ldy_,
                   row = guard ? 0 : (i - kGuard) / element_ / ldy_;
      const bool outside =
          guard || column >= static_cast<size_t>(features_) || row >= static_cast<size_t>(tokens());
      if (outside && y[i] != 0xFF && !(c_.in_place && !guard))
        return str_cat("byte ", i, " outside Y was written: ", c_.describe());
    }
    return "";
  }

  DeviceArray<uint8_t>& records() { return records_; }
  const FragmentShape& shape() const { return shape_; }

 private:
  Case c_;
  FragmentShape shape_;
  int features_ = 0, ldx_ = 0, ldy_ = 0, element_ = 2;
  DeviceArray<uint8_t> codes_, scales_, records_, x_codes_, y_;
  DeviceArray<uint16_t> x_, residual_;
  DeviceArray<float> row_scale_, token_scale_, bias_;
  DeviceArray<int> m_device_;
  std::vector<Position> positions_;
  std::vector<Expected> expected_;
};

// Scratch poisoned but for the flags.
struct Workspace {
  DeviceArray<char> bytes{gemm_workspace_bytes(device_sms())},
      sm80{(size_t{256} << 20) + sm80_ticket_bytes()}, emulation{size_t{128} << 20};
  Result<CublasLt> lt = CublasLt::create();
  Workspace() {
    bytes.fill(0xFF), sm80.fill(0xFF);
    MX8_CUDA_OK(cudaMemset(bytes.get(), 0, gemm_flag_bytes()));
    MX8_CUDA_OK(cudaMemset(sm80.get(), 0, sm80_ticket_bytes()));
  }
};

struct Way {
  std::string name;
  Fixture::Launch launch;
};
// Every way to run a case: instances x splits.
std::vector<Way> ways(const Case& c, Workspace& ws, bool few = false) {
  std::vector<Way> out;
  const int sms = c.sms > 0 ? c.sms : device_sms();
  for (int v = 0; v < stream_variant_count(c.act); ++v) {
    if (c.m > stream_variant(c.act, v).max_tokens) continue;
    for (int split : few ? std::vector<int>{1, 3} : std::vector<int>{1, 2, 3, 5, 8})
      out.push_back({str_cat("stream ", stream_variant(c.act, v).name, " split ", split),
                     [=](const GemmParams& p) {
                       return launch_sm90_mxfp8_stream(c.act, p, {v, split}, nullptr, split & 1);
                     }});
  }
  for (int v = 0; v < gemm_variant_count(c.act); ++v) {
    const GemmVariant& info = gemm_variant(c.act, v);
    std::vector<GemmConfig> configs;
    if (info.takes(GemmSplit::kCluster)) {
      for (int s : few ? std::vector<int>{2} : std::vector<int>{1, 2, 3, 8})
        if ((c.k + 127) / 128 * 128 / info.tile_k >= s)
          configs.push_back({v, GemmSplit::kCluster, s});
    } else {
      configs.push_back({v, GemmSplit::kWholeTiles, 1});
      if (info.takes(GemmSplit::kStreamK)) {
        configs.push_back({v, GemmSplit::kStreamK, 1});
        if (!few) configs.push_back({v, GemmSplit::kStreamKOne, 1});
      }
    }
    for (const GemmConfig& config : configs)
      out.push_back({str_cat("gemm ", info.name, " split ", static_cast<int>(config.split), " ",
                             config.cluster),
                     [=, &ws](const GemmParams& p) {
                       return launch_sm90_mxfp8_gemm(c.act, p, config, sms, ws.bytes.get(), nullptr,
                                                     true);
                     }});
  }
  for (int tile : {16, 64, 128}) {
    if (tile == 16 && c.m > 64) continue;
    for (int split : few ? std::vector<int>{2} : std::vector<int>{1, 3, 16})
      if (split <= (c.k + 127) / 128 * 2)
        out.push_back(
            {str_cat("sm80 128x", tile, " split ", split), [=, &ws](const GemmParams& p) {
               return launch_sm80_mxfp8_gemm(c.act, p, {tile, split}, ws.sm80.get(), nullptr);
             }});
  }
  if (c.act != Act::kFp8 && c.m_device < 0) {
    EXPECT_TRUE(ws.lt.ok()) << ws.lt.error().message;
    const FragmentShape shape{c.n, c.k,
                              c.act == Act::kFp16 ? FragmentKind::kFp16 : FragmentKind::kBf16,
                              c.silu_mul ? RowOrder::kGateUpInterleaved : RowOrder::kPlain};
    out.push_back({"emulation", [=, &ws](const GemmParams& p) {
                     const auto r = emulated_gemm(*ws.lt, c.act, shape, p, ws.emulation.get(),
                                                  ws.emulation.size(), nullptr);
                     EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().message);
                     return cudaSuccess;
                   }});
  }
  return out;
}

void check_everywhere(const Case& c, Workspace& ws, bool few = false) {
  Fixture f(c);
  for (const Way& w : ways(c, ws, few)) {
    const auto first = f.run(w.launch);
    const std::string wrong = f.judge(first);
    ASSERT_EQ(wrong, "") << w.name;
    ASSERT_TRUE(first == f.run(w.launch)) << w.name << " is not repeatable: " << c.describe();
  }
}

class Acts : public ::testing::TestWithParam<Act> {};
INSTANTIATE_TEST_SUITE_P(
    CudaGemm, Acts, ::testing::Values(Act::kBf16, Act::kFp16, Act::kFp8), [](const auto& i) {
      return std::string(i.param == Act::kBf16 ? "bf16" : i.param == Act::kFp16 ? "fp16" : "fp8");
    });

TEST_P(Acts, ShapesAndSplits) {
  REQUIRE_SM90();
  Workspace ws;
  const struct {
    int n, k, m;
  } shapes[] = {{1, 32, 1},       {64, 128, 1},    {8, 96, 3},       {200, 192, 17},
                {100, 320, 33},   {63, 64, 8},     {65, 160, 16},    {456, 1056, 130},
                {2048, 768, 300}, {1000, 2048, 9}, {5120, 2048, 64}, {640, 4096, 5},
                {3, 32, 300},     {2048, 512, 513}};
  for (const auto& s : shapes)
    check_everywhere({.n = s.n, .k = s.k, .m = s.m, .act = GetParam()}, ws);
}

TEST_P(Acts, EveryTokenCount) {
  REQUIRE_SM90();
  Workspace ws;
  for (int m = 1; m <= 300; m += m < 34 ? 1 : m < 140 ? 3 : 7)
    check_everywhere({.n = 200, .k = 288, .m = m, .act = GetParam()}, ws, true);
}

TEST_P(Acts, Epilogues) {
  REQUIRE_SM90();
  Workspace ws;
  for (int m : {1, 7, 16, 50, 129}) {
    for (Out out : {Out::kBf16, Out::kFp16, Out::kFp32}) {
      const bool half = out != Out::kFp32;
      Case c{.n = 176, .k = 256, .m = m, .act = GetParam(), .out = out};
      check_everywhere(c, ws, true);
      c.bias = true;
      check_everywhere(c, ws, true);
      c.residual = half;
      check_everywhere(c, ws, true);
      c.in_place = half;
      check_everywhere(c, ws, true);
      check_everywhere({.n = 176,
                        .k = 256,
                        .m = m,
                        .act = GetParam(),
                        .out = out,
                        .bias = true,
                        .silu_mul = true},
                       ws, true);
      check_everywhere({.n = 44,
                        .k = 64,
                        .m = m,
                        .act = GetParam(),
                        .out = out,
                        .residual = half,
                        .silu_mul = true},
                       ws, true);
    }
  }
}

TEST_P(Acts, RowStrides) {
  REQUIRE_SM90();
  Workspace ws;
  for (int m : {2, 16, 70})
    for (int pad_y : {0, 1, 5, 8, 24})  // 131 + 5: aligned rows that end within 16 bytes
      for (int n : {128, 131})
        check_everywhere({.n = n,
                          .k = 160,
                          .m = m,
                          .act = GetParam(),
                          .bias = true,
                          .residual = true,
                          .pad_x = 32,
                          .pad_y = pad_y},
                         ws, true);
}

TEST_P(Acts, TokenCountFromTheDevice) {
  REQUIRE_SM90();
  Workspace ws;
  for (int bound : {1, 8, 16, 64, 300})
    for (int m : {0, 1, 5, 16, 60, 299, 1000})
      check_everywhere({.n = 320, .k = 512, .m = bound, .act = GetParam(), .m_device = m}, ws,
                       true);
}

// Shapes that broke other engines in public reports: widths below 64, K that is a multiple of 32
// alone, tensor parallel shards such as 232 and 464, square and turned.
TEST_P(Acts, ShapesFromBugReports) {
  REQUIRE_SM90();
  Workspace ws;
  const int odd[] = {232, 464, 928, 1856};
  for (int n : odd)
    for (int k : odd)
      if (k % 32 == 0)
        for (int m : {1, 19, 70})
          check_everywhere({.n = n, .k = k, .m = m, .act = GetParam()}, ws, true);
  const struct {
    int n, k;
  } shapes[] = {{8, 160},    {32, 96},    {32, 576},    {96, 32},     {96, 64},
                {96, 160},   {200, 256},  {256, 224},   {336, 576},   {176, 2304},
                {288, 2880}, {2880, 288}, {1856, 2688}, {2688, 1856}, {704, 2816}};
  for (const auto& s : shapes)
    for (int m : {2, 16, 33})
      check_everywhere({.n = s.n, .k = s.k, .m = m, .act = GetParam()}, ws, true);
  // Gate and up of experts 176 and 352 wide, the rows of both no multiple of 128.
  for (int expert : {176, 352})
    for (int m : {1, 16, 33})
      check_everywhere({.n = 2 * expert, .k = 704, .m = m, .act = GetParam(), .silu_mul = true}, ws,
                       true);
}

// Few rows of W, and K whose scales do not fill their padding, around a tile of tokens.
TEST_P(Acts, NarrowWeightsAndOddBlocks) {
  REQUIRE_SM90();
  Workspace ws;
  for (int n : {1, 2, 3, 4, 5, 6, 7, 8, 16, 31, 33})
    for (int m : {1, 5}) check_everywhere({.n = n, .k = 96, .m = m, .act = GetParam()}, ws, true);
  for (int k : {32, 64, 96, 160, 224, 288, 352, 416, 480, 544})
    for (int m : {33, 65, 129})
      check_everywhere({.n = 72, .k = k, .m = m, .act = GetParam()}, ws, true);
}

// A short K and many tiles: the epilogue of a tile overlaps the loads of the next.
TEST_P(Acts, RepeatedLaunchesGiveTheSameBits) {
  REQUIRE_SM90();
  Workspace ws;
  const Case c{.n = 8192, .k = 128, .m = 4096, .act = GetParam()};
  Fixture f(c);
  for (const Way& w : ways(c, ws, true))
    if (w.name != "emulation") {  // the library's own, and its panel would not fit
      EXPECT_EQ(f.differences(w.launch, 200), 0u) << w.name;
    }
}

TEST(CudaGemm, DifferencesAreCounted) {
  REQUIRE_SM90();
  std::vector<uint8_t> bytes(100003, 7);
  DeviceArray<uint8_t> a(bytes.size()), b(bytes.size());
  a.upload(bytes);
  bytes[0] = 8, bytes[17] = 8, bytes[50000] = 8, bytes[100002] = 8;
  b.upload(bytes);
  DeviceArray<unsigned long long> differing(1);
  differing.fill(0);
  count_differences(a.get(), b.get(), bytes.size(), differing.get());
  EXPECT_EQ(differing.download()[0], 4u);
}

// Small cases of everything, for compute-sanitizer (memcheck, racecheck).
TEST_P(Acts, SanitizerCases) {
  REQUIRE_SM90();
  Workspace ws;
  check_everywhere({.n = 100, .k = 160, .m = 5, .act = GetParam(), .bias = true, .residual = true},
                   ws, true);
  check_everywhere({.n = 140, .k = 256, .m = 33, .act = GetParam(), .silu_mul = true}, ws, true);
  // A tile that reaches beyond the last block of rows, where bias and scales end.
  check_everywhere({.n = 60, .k = 256, .m = 33, .act = GetParam(), .out = Out::kFp32, .bias = true},
                   ws, true);
  // Rings that go round more than once.
  check_everywhere({.n = 70, .k = 2880, .m = 5, .act = GetParam()}, ws, true);
  // CTAs with several tiles, the last of them ragged.
  check_everywhere({.n = 600, .k = 256, .m = 200, .act = GetParam(), .sms = 2}, ws, true);
}

TEST_P(Acts, NoTokensAtAll) {
  REQUIRE_SM90();
  Workspace ws;
  check_everywhere({.n = 128, .k = 128, .m = 0, .act = GetParam()}, ws, true);
}

// The result of a row depends on that row alone, within one kernel.
TEST_P(Acts, RowsDoNotDependOnTheirNeighbours) {
  REQUIRE_SM90();
  Workspace ws;
  for (int m : {3, 15, 40, 130}) {
    Fixture small({.n = 256, .k = 1024, .m = m, .act = GetParam()}),
        large({.n = 256, .k = 1024, .m = m + 1, .act = GetParam()});
    const auto a = ways({.n = 256, .k = 1024, .m = m, .act = GetParam()}, ws, true);
    const auto b = ways({.n = 256, .k = 1024, .m = m + 1, .act = GetParam()}, ws, true);
    for (const Way& w : a) {
      if (w.name == "emulation") continue;  // the library picks by M
      if (w.name.find("split 1 1") != std::string::npos)
        continue;  // stream-K: ranges follow the number of tiles
      for (const Way& v : b)
        if (v.name == w.name) {
          const auto ya = small.run(w.launch), yb = large.run(v.launch);
          for (int i = 0; i < m; ++i)
            for (int n = 0; n < 256; ++n)
              ASSERT_EQ(small.value(ya, i, n), large.value(yb, i, n)) << w.name << " m " << m;
        }
    }
  }
}

// The checks above must be able to fail: damaged weights and a shortened K have to be seen.
TEST_P(Acts, NegativeControls) {
  REQUIRE_SM90();
  Workspace ws;
  const Case c{.n = 128, .k = 512, .m = 20, .act = GetParam()};
  for (const Way& w : ways(c, ws, true)) {
    Fixture f(c);
    ASSERT_EQ(f.judge(f.run(w.launch)), "") << w.name;
    if (w.name == "emulation") continue;  // takes K from the packed matrix
    auto shortened = [&](const GemmParams& p) {
      GemmParams q = p;
      q.k -= 32;  // tokens past the end read as zero: the tail of K is lost
      return w.launch(q);
    };
    EXPECT_NE(f.judge(f.run(shortened)), "") << w.name << ": a lost tail of K was not seen";
    auto shifted = [&](const GemmParams& p) {
      GemmParams q = p;
      q.x = static_cast<const char*>(p.x) + 16;
      return w.launch(q);
    };
    EXPECT_NE(f.judge(f.run(shifted)), "") << w.name << ": a shifted K was not seen";
    auto records = f.records().download();
    if (GetParam() != Act::kFp8) {  // two neighbouring scales change places
      std::swap(records[kFragmentCodeBytes], records[kFragmentCodeBytes + 1]);
      records[kFragmentCodeBytes] = static_cast<uint8_t>(records[kFragmentCodeBytes] - 2);
    } else {
      records[5] ^= 0x40;
    }
    f.records().upload(records);
    EXPECT_NE(f.judge(f.run(w.launch)), "") << w.name << ": a damaged weight was not seen";
  }
}

// Scale bytes at both ends of what the BF16 kernels call exact, and blocks of zeros.
TEST(CudaGemm, ScalesAtBothEnds) {
  REQUIRE_SM90();
  const int n = 64, k = 128, m = 16;
  for (int e : {3, 10, 127, 134}) {
    const FragmentShape shape{n, k, FragmentKind::kBf16, RowOrder::kPlain};
    std::vector<uint8_t> codes(n * k), scales(n * k / 32, static_cast<uint8_t>(e));
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = (i / 32) % 3 == 0 ? 0 : static_cast<uint8_t>((i * 37) % 127 + (i % 2) * 128);
    DeviceArray<uint8_t> dc(codes.size()), ds(scales.size()), records(shape.bytes());
    dc.upload(codes), ds.upload(scales);
    MX8_CUDA_OK(
        pack_mma_fragment_device(shape, dc.get(), ds.get(), records.get(), nullptr, nullptr));
    DeviceArray<uint16_t> x(m * k);
    generate_values(x.get(), m * k, 3, Act::kBf16);
    DeviceArray<float> y(m * n);
    GemmParams p;
    p.w = records.get(), p.x = x.get(), p.ldx = k, p.y = y.get(), p.ldy = n, p.m = m, p.n = n,
    p.k = k;
    p.row_blocks = 1, p.k_records = 2, p.out = Out::kFp32;
    y.fill(0xFF);
    int wide = 0;
    while (stream_variant(Act::kBf16, wide).max_tokens < m) ++wide;
    MX8_CUDA_OK(launch_sm90_mxfp8_stream(Act::kBf16, p, {wide, 1}, nullptr, false));
    const auto got = y.download();
    ReferenceInput in;
    in.codes = dc.get(), in.scales = ds.get(), in.x = x.get(), in.ldx = k, in.rows = n, in.k = k;
    const auto at = choose_positions(n, m, 1 << 20);
    const auto want = reference(in, at);
    for (size_t i = 0; i < at.size(); ++i)
      ASSERT_LE(std::abs(got[at[i].m * n + at[i].n] - want[i].value), 0x1p-18 * want[i].magnitude)
          << "scale byte " << e;
  }
}

// The GPU packer makes the bytes of the CPU packer, for every kind and order.
TEST(CudaPack, SameBytesAsTheCpu) {
  REQUIRE_SM90();
  for (FragmentKind kind : {FragmentKind::kBf16, FragmentKind::kFp16, FragmentKind::kFolded})
    for (RowOrder order : {RowOrder::kPlain, RowOrder::kGateUpInterleaved})
      for (int n : {2, 64, 130, 200})
        for (int k : {32, 96, 128, 320}) {
          DeviceArray<uint8_t> codes(n * k), scales(n * k / 32);
          generate_weights(codes.get(), scales.get(), n, k, n + k, 1.f);
          const auto hc = codes.download();
          auto hs = scales.download();
          for (size_t i = 0; i < hs.size(); ++i)
            hs[i] = static_cast<uint8_t>(hs[i] - i % 9);  // spread
          scales.upload(hs);
          auto want = pack_mma_fragment({hc.data(), hs.data(), n, k}, kind, order);
          ASSERT_TRUE(want.ok()) << want.error().message;
          const FragmentShape& shape = want->shape;
          DeviceArray<uint8_t> records(shape.bytes());
          DeviceArray<float> row_scale(std::max<int64_t>(1, shape.row_scales()));
          MX8_CUDA_OK(pack_mma_fragment_device(shape, codes.get(), scales.get(), records.get(),
                                               row_scale.get(), nullptr));
          ASSERT_TRUE(records.download() == want->records)
              << n << "x" << k << " kind " << static_cast<int>(kind);
          if (kind != FragmentKind::kBf16) {
            ASSERT_TRUE(row_scale.download() == want->row_scales);
          }
        }
}

// A matrix of more than 2^31 elements: its last rows are packed as they are alone.
TEST(CudaPack, LargeMatrices) {
  REQUIRE_SM90();
  const int64_t n = 70000, k = 32768, last = n / kFragmentRows * kFragmentRows;
  DeviceArray<uint8_t> codes(static_cast<size_t>(n * k)), scales(static_cast<size_t>(n * k / 32));
  generate_weights(codes.get(), scales.get(), n, k, 17, 0.05f);
  for (FragmentKind kind : {FragmentKind::kBf16, FragmentKind::kFp16, FragmentKind::kFolded}) {
    const FragmentShape whole{n, k, kind, RowOrder::kPlain};
    const FragmentShape tail{n - last, k, kind, RowOrder::kPlain};
    DeviceArray<uint8_t> records(whole.bytes()), want(tail.bytes());
    DeviceArray<float> row_scale(whole.row_scales() + 1), want_scale(tail.row_scales() + 1);
    DeviceArray<unsigned long long> differing(1);
    differing.fill(0);
    MX8_CUDA_OK(pack_mma_fragment_device(whole, codes.get(), scales.get(), records.get(),
                                         row_scale.get(), nullptr));
    MX8_CUDA_OK(pack_mma_fragment_device(tail, codes.get() + last * k,
                                         scales.get() + last * (k / 32), want.get(),
                                         want_scale.get(), nullptr));
    count_differences(records.get() + whole.bytes() - tail.bytes(), want.get(), tail.bytes(),
                      differing.get());
    count_differences(row_scale.get() + whole.row_scales() - tail.row_scales(), want_scale.get(),
                      tail.row_scales() * sizeof(float), differing.get());
    EXPECT_EQ(differing.download()[0], 0u) << static_cast<int>(kind);
  }
}

// Decoding on the GPU gives the exact value of every code under every scale byte.
TEST(CudaPack, DecodesEveryCodeAndScale) {
  REQUIRE_SM90();
  const int n = 256, k = 256;  // row n: scale byte n; each 32-block a part of the 256 codes
  std::vector<uint8_t> codes(n * k), scales(n * k / 32);
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < k; ++i)
      codes[r * k + i] = static_cast<uint8_t>(i),
                    scales[(r * k + i) / 32] = static_cast<uint8_t>(r);
  const FragmentShape shape{n, k, FragmentKind::kBf16, RowOrder::kPlain};
  DeviceArray<uint8_t> dc(codes.size()), ds(scales.size()), records(shape.bytes());
  dc.upload(codes), ds.upload(scales);
  MX8_CUDA_OK(pack_mma_fragment_device(shape, dc.get(), ds.get(), records.get(), nullptr, nullptr));
  DeviceArray<uint16_t> out(n * k);
  MX8_CUDA_OK(
      decode_mma_fragment_device(shape, records.get(), Act::kBf16, 0, n, out.get(), nullptr));
  const auto got = out.download();
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < k; ++i) {
      const double want = mx_value(static_cast<uint8_t>(i), static_cast<uint8_t>(r));
      const float have = bf16_to_f32(got[r * k + i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(have)) << i << " " << r;
      } else {
        ASSERT_EQ(have, bf16_to_f32(f32_to_bf16(static_cast<float>(want)))) << i << " " << r;
      }
    }
}

}  // namespace
}  // namespace mx8::cuda
