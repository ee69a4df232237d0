// The C ABI and the token quantiser on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/cuda/quantize_mx_tokens.h"
#include "kernels/cuda/quantize_tokens.h"
#include "kernels/cuda/testing/gemm_problem.h"
#include "mx/bf16.h"
#include "mx/e4m3.h"
#include "mx8/kernels.h"
#include "pack/sm100_mx.h"

namespace mx8::cuda {
namespace {

using namespace mx8::cuda::testing;  // NOLINT

bool have_gpu() {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
         major == 9;
}
#define REQUIRE_SM90() \
  if (!have_gpu()) GTEST_SKIP() << "needs an SM90 GPU"

// Plans through the C ABI for every bucket of M, captured in a graph and replayed, against FP64.
TEST(CudaApi, PlansRunEveryBucketInsideAGraph) {
  REQUIRE_SM90();
  const int n = 1536, k = 1024, max_m = 700;
  DeviceArray<uint8_t> codes(n * k), scales(n * k / 32);
  generate_weights(codes.get(), scales.get(), n, k, 3, 0.05f);
  DeviceArray<uint16_t> x(max_m * k), y(max_m * n);
  generate_values(x.get(), max_m * k, 4, Act::kBf16);
  cudaStream_t stream;
  MX8_CUDA_OK(cudaStreamCreate(&stream));
  for (mx8_activations act : {MX8_BF16, MX8_FP8}) {
    mx8_gemm_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.weight = {sizeof(mx8_weight_desc), n, k, act, 0};
    desc.max_m = max_m;
    size_t bytes = 0, row_scales = 0;
    ASSERT_EQ(mx8_packed_size(&desc.weight, &bytes, &row_scales), MX8_OK) << mx8_last_error();
    DeviceArray<uint8_t> packed(bytes), x_codes(max_m * k);
    DeviceArray<float> row_scale(row_scales + 1), token_scale(max_m);
    ASSERT_EQ(
        mx8_pack(&desc.weight, codes.get(), scales.get(), packed.get(), row_scale.get(), stream),
        MX8_OK)
        << mx8_last_error();
    mx8_quantize_args q = {};
    q.struct_size = sizeof(q);
    q.x = x.get(), q.ldx = k, q.m = max_m, q.k = k, q.codes = x_codes.get(), q.ld_codes = k,
    q.scales = token_scale.get();
    ASSERT_EQ(mx8_quantize_tokens(&q, stream), MX8_OK) << mx8_last_error();
    mx8_gemm* plan = nullptr;
    ASSERT_EQ(mx8_gemm_create(&desc, &plan), MX8_OK) << mx8_last_error();
    DeviceArray<uint8_t> workspace(mx8_gemm_workspace_size(plan));
    workspace.fill(0xFF);
    ASSERT_EQ(mx8_gemm_workspace_init(plan, workspace.get(), stream), MX8_OK) << mx8_last_error();
    for (int m : {1, 2, 3, 5, 9, 16, 17, 33, 64, 65, 129, 257, 513, 700}) {
      mx8_gemm_args args = {};
      args.struct_size = sizeof(args);
      args.packed = packed.get(), args.row_scales = row_scale.get(),
      args.token_scales = token_scale.get();
      args.x = act == MX8_FP8 ? static_cast<const void*>(x_codes.get()) : x.get();
      args.ldx = k, args.y = y.get(), args.ldy = n, args.m = m, args.workspace = workspace.get();
      args.dependent_launch = 1;
      y.fill(0xFF);
      cudaGraph_t graph;
      cudaGraphExec_t exec;
      MX8_CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < 3; ++i)
        ASSERT_EQ(mx8_gemm_launch(plan, &args, stream), MX8_OK) << mx8_last_error();
      MX8_CUDA_OK(cudaStreamEndCapture(stream, &graph));
      MX8_CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
      for (int i = 0; i < 3; ++i) MX8_CUDA_OK(cudaGraphLaunch(exec, stream));
      MX8_CUDA_OK(cudaStreamSynchronize(stream));
      ReferenceInput in;
      in.codes = codes.get(), in.scales = scales.get(), in.rows = n, in.k = k, in.ldx = k;
      in.x = x.get(), in.x_codes = x_codes.get(), in.token_scale = token_scale.get();
      in.act = act == MX8_FP8 ? Act::kFp8 : Act::kBf16;
      in.row_scale = act == MX8_FP8 ? row_scale.get() : nullptr;
      const auto at = choose_positions(n, m, 20000);
      const auto want = reference(in, at);
      const auto got = y.download();
      double error = 0, norm = 0;
      for (size_t i = 0; i < at.size(); ++i) {
        const double d = bf16_to_f32(got[at[i].m * n + at[i].n]) - want[i].value;
        error += d * d, norm += want[i].value * want[i].value;
      }
      EXPECT_LT(std::sqrt(error / norm), act == MX8_FP8 ? 6e-3 : 2.5e-3)
          << mx8_gemm_kernel(plan, m) << " m " << m;
      cudaGraphExecDestroy(exec);
      cudaGraphDestroy(graph);
    }
    mx8_gemm_args args = {};
    args.struct_size = sizeof(args);
    args.packed = packed.get(), args.row_scales = row_scale.get(),
    args.token_scales = token_scale.get();
    args.x = x.get(), args.ldx = k, args.y = y.get(), args.ldy = n, args.m = max_m + 1,
    args.workspace = workspace.get();
    EXPECT_EQ(mx8_gemm_launch(plan, &args, stream), MX8_INVALID_ARGUMENT);
    EXPECT_NE(std::string(mx8_last_error()).find("701"), std::string::npos) << mx8_last_error();
    args.m = 1, args.x = static_cast<const char*>(args.x) + 2;
    EXPECT_EQ(mx8_gemm_launch(plan, &args, stream), MX8_INVALID_ARGUMENT) << "unaligned rows of X";
    mx8_gemm_destroy(plan);
    desc.force_kernel = "gemm/nothing/whole";
    EXPECT_EQ(mx8_gemm_create(&desc, &plan), MX8_UNSUPPORTED) << mx8_last_error();
  }
  MX8_CUDA_OK(cudaStreamDestroy(stream));
}

struct QuantizeCase {
  int m, k;
  bool residual, norm, silu;
  TokenScale rule;
  Act type;
};

float to_float(uint16_t v, Act type) { return type == Act::kFp16 ? f16_to_f32(v) : bf16_to_f32(v); }
float rounded(float v, Act type) {
  return type == Act::kFp16 ? f16_to_f32(f32_to_f16(v)) : bf16_to_f32(f32_to_bf16(v));
}

// The quantiser against a scalar twin on the CPU: every scale and, but for ties that the order of
// the norm's sum may move by one step, every code.
TEST(CudaQuantize, MatchesTheScalarTwin) {
  REQUIRE_SM90();
  for (const QuantizeCase& c :
       {QuantizeCase{5, 32, false, false, false, TokenScale::kReal, Act::kBf16},
        QuantizeCase{3, 2048, false, false, false, TokenScale::kPowerOfTwo, Act::kBf16},
        QuantizeCase{2, 28672, false, false, false, TokenScale::kReal, Act::kFp16},
        QuantizeCase{4, 4096, true, true, false, TokenScale::kReal, Act::kBf16},
        QuantizeCase{4, 25600, true, true, false, TokenScale::kReal, Act::kBf16},
        QuantizeCase{7, 768, false, false, true, TokenScale::kReal, Act::kBf16}}) {
    const int wide = c.silu ? 2 * c.k : c.k;
    DeviceArray<uint16_t> x(c.m * wide), residual(c.m * c.k), weight(c.k), normed(c.m * c.k);
    generate_values(x.get(), c.m * wide, 1, c.type);
    generate_values(residual.get(), c.m * c.k, 2, c.type);
    generate_values(weight.get(), c.k, 3, c.type);
    MX8_CUDA_OK(cudaMemset(x.get(), 0, c.silu ? 0 : c.k * 2));  // the first token is zero
    const auto hx = x.download(), hr = residual.download(), hw = weight.download();
    DeviceArray<uint8_t> codes(c.m * c.k);
    DeviceArray<float> scales(c.m);
    codes.fill(0x55);
    QuantizeParams q;
    q.x = x.get(), q.ldx = wide, q.type = c.type, q.codes = codes.get(), q.ld_codes = c.k,
    q.scales = scales.get();
    q.rule = c.rule, q.m = c.m, q.k = c.k, q.silu_mul = c.silu;
    if (c.residual)
      q.residual = residual.get(), q.residual_out = residual.get(), q.ld_residual = c.k;
    if (c.norm) q.norm_weight = weight.get();
    q.normed_out = normed.get(), q.ld_normed = c.k;
    MX8_CUDA_OK(quantize_tokens(q, nullptr, false));
    const auto got = codes.download();
    const auto got_scales = scales.download();
    const auto got_normed = normed.download(), got_residual = residual.download();
    int64_t off = 0;
    for (int m = 0; m < c.m; ++m) {
      std::vector<float> v(c.k);
      double squares = 0;
      for (int k = 0; k < c.k; ++k) {
        v[k] = to_float(hx[m * wide + k], c.type);
        if (c.silu) {
          const double gate = v[k], up = to_float(hx[m * wide + c.k + k], c.type);
          v[k] = rounded(static_cast<float>(gate / (1 + std::exp(-gate)) * up), c.type);
        }
        if (c.residual) {
          v[k] = rounded(v[k] + to_float(hr[m * c.k + k], c.type), c.type);
          ASSERT_EQ(v[k], to_float(got_residual[m * c.k + k], c.type));
        }
        squares += static_cast<double>(v[k]) * v[k];
      }
      float amax = 0;
      for (int k = 0; k < c.k; ++k) {
        if (c.norm)
          v[k] = rounded(
              rounded(v[k] * static_cast<float>(1 / std::sqrt(squares / c.k + q.epsilon)), c.type) *
                  to_float(hw[k], c.type),
              c.type);
        const float device = to_float(got_normed[m * c.k + k], c.type);
        ASSERT_NEAR(device, v[k], std::abs(v[k]) * 0.017 + 1e-6) << m << " " << k;
        v[k] = device;  // what follows is exact given the device's own value
        amax = std::max(amax, std::abs(v[k]));
      }
      float scale = 1.f, inverse = 1.f;
      if (amax > 0 && c.rule == TokenScale::kReal) scale = amax / 448.f, inverse = 448.f / amax;
      if (amax > 0 && c.rule == TokenScale::kPowerOfTwo)
        scale = std::ldexp(1.f, static_cast<int>(std::ceil(std::log2(amax / 448.f)))),
        inverse = 1.f / scale;
      ASSERT_EQ(got_scales[m], scale) << m;
      for (int k = 0; k < c.k; ++k) {
        const int slot = (k & ~15) + 4 * ((k & 7) >> 1) + ((k >> 3) & 1) + 2 * (k & 1);
        off += got[m * c.k + slot] != e4m3_encode(v[k] * inverse);
      }
    }
    EXPECT_EQ(off, 0) << "k " << c.k;
  }
}

// FP8 with one scale a token is as good as exact MXFP8 activations (one scale per 32).
TEST(CudaQuantize, ErrorIsThatOfExactMxfp8Activations) {
  REQUIRE_SM90();
  const int m = 64, k = 4096;
  DeviceArray<uint16_t> x(m * k);
  generate_values(x.get(), m * k, 9, Act::kBf16);
  DeviceArray<uint8_t> codes(m * k);
  DeviceArray<float> scales(m);
  QuantizeParams q;
  q.x = x.get(), q.ldx = k, q.codes = codes.get(), q.ld_codes = k, q.scales = scales.get(), q.m = m,
  q.k = k;
  MX8_CUDA_OK(quantize_tokens(q, nullptr, false));
  const auto hx = x.download();
  const auto hc = codes.download();
  const auto hs = scales.download();
  double token = 0, block = 0, norm = 0;
  for (int i = 0; i < m; ++i)
    for (int b = 0; b < k / 32; ++b) {
      float v[32];
      for (int j = 0; j < 32; ++j) v[j] = bf16_to_f32(hx[i * k + b * 32 + j]);
      uint8_t mx[32];
      const uint8_t e = mx_quantize_block(v, ScaleRule::kRceil, mx);
      for (int j = 0; j < 32; ++j) {
        const int at = b * 32 + j,
                  slot = (at & ~15) + 4 * ((at & 7) >> 1) + ((at >> 3) & 1) + 2 * (at & 1);
        token += std::pow(e4m3_decode(hc[i * k + slot]) * static_cast<double>(hs[i]) - v[j], 2);
        block += std::pow(mx_value(mx[j], e) - v[j], 2);
        norm += static_cast<double>(v[j]) * v[j];
      }
    }
  EXPECT_LT(std::sqrt(token / norm), 4e-2);
  EXPECT_LT(std::sqrt(token / norm), 1.05 * std::sqrt(block / norm));
}

// The MXFP8 quantiser writes the bytes of the CPU's, scales in the 128x4 order, padding included,
// whatever lay in the scale buffer before.
TEST(CudaQuantize, MxBlocksMatchTheCpu) {
  REQUIRE_SM90();
  for (int m : {1, 5, 33, 65, 129, 130})
    for (int k : {32, 64, 96, 160, 224, 288, 352, 416, 480, 544, 1024}) {
      DeviceArray<uint16_t> x(m * k);
      generate_values(x.get(), m * k, m + k, Act::kBf16, 3.f);
      auto hx = x.download();
      for (int i = 0; i < 32; ++i) hx[i] = 0;             // a block of zeros
      if (m > 1) hx[k + 3] = 0x7F80, hx[k + 4] = 0x7FC0;  // infinity and NaN
      // Small values beside a large one, which a scale without the range of E4M3 would flush.
      for (int i = 32; i < std::min(k, 64); ++i) hx[i] = f32_to_bf16(i == 32 ? 300.f : 1e-3f);
      x.upload(hx);
      std::vector<float> values(m * k);
      for (int i = 0; i < m * k; ++i) values[i] = bf16_to_f32(hx[i]);
      const MxMatrix want = mx_quantize(values.data(), m, k, k, ScaleRule::kRceil);
      for (int before : {0x55, 0xFF}) {
        DeviceArray<uint8_t> codes(m * k), scales(sf128x4_bytes(m, k));
        codes.fill(before), scales.fill(before);
        QuantizeMxParams q;
        q.x = x.get(), q.ldx = k, q.codes = codes.get(), q.scales = scales.get(), q.m = m, q.k = k;
        MX8_CUDA_OK(quantize_mx_tokens(q, nullptr, false));
        const auto got = codes.download();
        for (int i = 0; i < m * k; ++i)
          ASSERT_EQ(got[i], want.codes[i]) << m << "x" << k << " at " << i;
        ASSERT_TRUE(scales.download() == pack_sf128x4(want.scales, m, k)) << m << "x" << k;
      }
    }
}

// A token is quantised the same whether it comes alone or among others.
TEST(CudaQuantize, TokensDoNotDependOnTheirNumber) {
  REQUIRE_SM90();
  const int most = 300, k = 288;
  DeviceArray<uint16_t> x(most * k);
  generate_values(x.get(), most * k, 8, Act::kBf16);
  std::vector<uint8_t> whole_codes, whole_mx, whole_mx_scales;
  std::vector<float> whole_scales;
  for (int m = most; m >= 1; --m) {
    DeviceArray<uint8_t> codes(m * k), mx(m * k), mx_scales(sf128x4_bytes(m, k));
    DeviceArray<float> scales(m);
    QuantizeParams q;
    q.x = x.get(), q.ldx = k, q.codes = codes.get(), q.ld_codes = k, q.scales = scales.get();
    q.m = m, q.k = k;
    MX8_CUDA_OK(quantize_tokens(q, nullptr, false));
    QuantizeMxParams b;
    b.x = x.get(), b.ldx = k, b.codes = mx.get(), b.scales = mx_scales.get(), b.m = m, b.k = k;
    MX8_CUDA_OK(quantize_mx_tokens(b, nullptr, false));
    const auto got_codes = codes.download(), got_mx = mx.download();
    const auto got_scales = scales.download();
    const auto got_mx_scales = unpack_sf128x4(mx_scales.download(), m, k);
    if (m == most) {
      whole_codes = got_codes, whole_mx = got_mx, whole_scales = got_scales;
      whole_mx_scales = got_mx_scales;
      continue;
    }
    ASSERT_TRUE(std::equal(got_codes.begin(), got_codes.end(), whole_codes.begin())) << m;
    ASSERT_TRUE(std::equal(got_mx.begin(), got_mx.end(), whole_mx.begin())) << m;
    ASSERT_TRUE(std::equal(got_scales.begin(), got_scales.end(), whole_scales.begin())) << m;
    ASSERT_TRUE(std::equal(got_mx_scales.begin(), got_mx_scales.end(), whole_mx_scales.begin()))
        << m;
  }
}

// More than 2^31 elements: the last tokens are quantised as they are alone.
TEST(CudaQuantize, LargeBatches) {
  REQUIRE_SM90();
  const int64_t m = 70000, k = 32768, tail = 4, first = m - tail;
  DeviceArray<uint16_t> x(static_cast<size_t>(m * k));
  generate_values(x.get(), m * k, 31, Act::kBf16);
  DeviceArray<uint8_t> codes(static_cast<size_t>(m * k)), want(static_cast<size_t>(tail * k));
  DeviceArray<float> scales(m), want_scales(tail);
  DeviceArray<unsigned long long> differing(1);
  differing.fill(0);
  const auto quantize = [&](const uint16_t* from, int64_t tokens, uint8_t* to, float* to_scales) {
    QuantizeParams q;
    q.x = from, q.ldx = k, q.codes = to, q.ld_codes = k, q.scales = to_scales;
    q.m = static_cast<int>(tokens), q.k = static_cast<int>(k);
    MX8_CUDA_OK(quantize_tokens(q, nullptr, false));
  };
  quantize(x.get(), m, codes.get(), scales.get());
  quantize(x.get() + first * k, tail, want.get(), want_scales.get());
  count_differences(codes.get() + first * k, want.get(), want.size(), differing.get());
  count_differences(scales.get() + first, want_scales.get(), tail * sizeof(float), differing.get());
  EXPECT_EQ(differing.download()[0], 0u) << "one scale a token";

  DeviceArray<uint8_t> mx_scales(sf128x4_bytes(m, k)), want_mx_scales(sf128x4_bytes(tail, k));
  const auto quantize_mx = [&](const uint16_t* from, int64_t tokens, uint8_t* to,
                               uint8_t* to_scales) {
    QuantizeMxParams q;
    q.x = from, q.ldx = k, q.codes = to, q.scales = to_scales;
    q.m = static_cast<int>(tokens), q.k = static_cast<int>(k);
    MX8_CUDA_OK(quantize_mx_tokens(q, nullptr, false));
  };
  quantize_mx(x.get(), m, codes.get(), mx_scales.get());
  quantize_mx(x.get() + first * k, tail, want.get(), want_mx_scales.get());
  count_differences(codes.get() + first * k, want.get(), want.size(), differing.get());
  EXPECT_EQ(differing.download()[0], 0u) << "MX blocks";
  const auto all = mx_scales.download(), alone = want_mx_scales.download();
  for (int64_t t = 0; t < tail; ++t)
    for (int64_t b = 0; b < k / kMxBlock; ++b)
      ASSERT_EQ(all[sf128x4_offset(first + t, b, k)], alone[sf128x4_offset(t, b, k)]) << t;
}

}  // namespace
}  // namespace mx8::cuda
