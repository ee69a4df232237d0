#include "ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "base/strings.h"
#include "mx/bf16.h"
#include "mx/e4m3.h"
#include "runtime/cuda_device.h"
#include "shapes.h"

namespace mx8 {
namespace {

using Floats = std::vector<float>;

// A row of kernels of this machine with all that a call needs.
struct Row {
  CpuIsa isa;
  DeviceCaps caps;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Arena> arena = std::make_unique<Arena>();
  Exec exec() const { return {DeviceKind::kCpu, isa, pool.get(), arena.get(), nullptr}; }
};

Row make_row(CpuIsa isa, int threads) {
  Row row;
  row.isa = isa;
  row.caps = forced_caps(str_cat("cpu-", cpu_isa_name(isa))).value();
  row.pool = std::make_unique<ThreadPool>(threads);
  return row;
}

Floats gaussian(int64_t count, uint32_t seed, float sigma = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, sigma);
  Floats out(static_cast<size_t>(count));
  for (float& v : out) v = normal(rng);
  return out;
}

MxMatrix gaussian_weight(int64_t n, int64_t k, uint32_t seed) {
  return mx_quantize(gaussian(n * k, seed, 0.05f).data(), n, k, k, ScaleRule::kRceil);
}

// Every code but NaN with equal chance: 5 % subnormals.
MxMatrix uniform_weight(int64_t n, int64_t k, uint32_t seed, int low_scale, int high_scale) {
  std::mt19937 rng(seed);
  MxMatrix w(n, k);
  for (uint8_t& c : w.codes) {
    c = static_cast<uint8_t>(rng());
    if (e4m3_is_nan(c)) c ^= 1;
  }
  for (uint8_t& s : w.scales) {
    s = static_cast<uint8_t>(low_scale + rng() % static_cast<uint32_t>(high_scale - low_scale + 1));
  }
  return w;
}

QuantView view_of(const MxMatrix& w) {
  return {w.codes.data(), w.scales.data(), w.rows, w.cols, QuantScheme::mxfp8()};
}

LinearSpec spec_named(const std::string& name) {
  LinearSpec spec;
  spec.name = name;
  return spec;
}

Linear load(const Row& row, const MxMatrix& w) {
  const QuantView view = view_of(w);
  auto linear = Linear::load(row.caps, spec_named("layer"), {&view, 1});
  EXPECT_TRUE(linear.ok());
  return std::move(linear).value();
}

Floats apply(const Row& row, const Linear& linear, const Floats& x, int64_t m,
             const Epilogue& epilogue = {}) {
  const int64_t cols = epilogue.kind == EpilogueKind::kSiluMul ? linear.n() / 2 : linear.n();
  Floats y(static_cast<size_t>(m * cols), 777.0f);
  linear.apply(row.exec(), Mat::f32(const_cast<float*>(x.data()), m, linear.k()),
               Mat::f32(y.data(), m, cols), epilogue);
  return y;
}

// |y - exact| <= 4 sqrt(K) 2^-24 sum |w x|, element by element, against FP64.
void expect_near_exact(const MxMatrix& w, const Floats& x, int64_t m, const Floats& y,
                       const std::string& what) {
  const double relative = 4 * std::sqrt(static_cast<double>(w.cols)) * 0x1p-24;
  const MxView view = w.view();
  std::vector<double> row(static_cast<size_t>(w.cols));
  for (int64_t n = 0; n < w.rows; ++n) {
    for (int64_t k = 0; k < w.cols; ++k) row[k] = mx_value(view.code(n, k), view.scale(n, k));
    for (int64_t t = 0; t < m; ++t) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < w.cols; ++k) {
        const double term = row[k] * x[t * w.cols + k];
        sum += term;
        size += std::abs(term);
      }
      // Below the smallest normal FP32 number the spacing is absolute.
      const double bound = relative * size + 0x1p-140;
      ASSERT_LE(std::abs(y[t * w.rows + n] - sum), bound)
          << what << " m=" << t << " n=" << n << " got " << y[t * w.rows + n] << " want " << sum;
    }
  }
}

class LinearRows : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (!detect_cpu_features().has(GetParam())) {
      GTEST_SKIP() << "this CPU has no " << cpu_isa_name(GetParam());
    }
    row_ = make_row(GetParam(), 2);
  }
  Row row_;
};

INSTANTIATE_TEST_SUITE_P(Isa, LinearRows,
                         testing::Values(CpuIsa::kScalar, CpuIsa::kAvx2, CpuIsa::kAvx512),
                         [](const auto& p) { return std::string(cpu_isa_name(p.param)); });

TEST_P(LinearRows, IsNearTheExactSumOverTheShapeTable) {
  for (const auto [n, k] : shapes::linear_shapes()) {
    const MxMatrix w = gaussian_weight(n, k, static_cast<uint32_t>(n * 31 + k));
    const Linear linear = load(row_, w);
    for (const int64_t m : shapes::token_counts()) {
      // The scalar row is slow, and FP64 too: the larger batches on the smaller matrices.
      if (m * n * k > 6'000'000) continue;
      const Floats x = gaussian(m * k, 7);
      const Floats y = apply(row_, linear, x, m);
      expect_near_exact(w, x, m, y, str_cat(n, "x", k, " M=", m));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(LinearRows, RunsInItsOwnLayout) {
  const LinearPlan plan = load(row_, gaussian_weight(8, 32, 1)).plan();
  EXPECT_EQ(plan.layout, GetParam() == CpuIsa::kScalar ? LayoutId::kRowMajor
                         : GetParam() == CpuIsa::kAvx2 ? LayoutId::kCpuPanel8
                                                       : LayoutId::kCpuPanel16);
  EXPECT_EQ(load(row_, uniform_weight(8, 32, 1, 250, 252)).plan().layout, LayoutId::kRowMajor);
}

TEST_P(LinearRows, EqualsTheScalarTwinBitForBit) {
  const Row scalar = make_row(CpuIsa::kScalar, 2);
  for (const auto [n, k] : shapes::linear_shapes()) {
    const MxMatrix w = uniform_weight(n, k, static_cast<uint32_t>(n + k), 100, 130);
    const Linear twin = load(scalar, w);
    const Linear linear = load(row_, w);
    for (const int64_t m : {1, 2, 3, 5, 8, 13, 67}) {
      if (m * n * k > 6'000'000) continue;
      const Floats x = gaussian(m * k, 11);
      EXPECT_EQ(apply(row_, linear, x, m), apply(scalar, twin, x, m))
          << n << "x" << k << " M=" << m;
    }
  }
}

TEST_P(LinearRows, ARowOfTheResultDependsOnNothingButItsInput) {
  const int64_t n = 88, k = 288, all = 131;
  const MxMatrix w = gaussian_weight(n, k, 5);
  const Linear linear = load(row_, w);
  const Floats x = gaussian(all * k, 6);
  const Floats whole = apply(row_, linear, x, all);
  for (const int threads : {1, 2, 3}) {
    const Row other = make_row(GetParam(), threads);
    for (int64_t m = 1; m <= 34; ++m) {
      const int64_t first = (m * 17) % (all - m);
      const Floats part(x.begin() + first * k, x.begin() + (first + m) * k);
      const Floats want(whole.begin() + first * n, whole.begin() + (first + m) * n);
      ASSERT_EQ(apply(other, linear, part, m), want) << "threads " << threads << " M " << m;
    }
  }
}

TEST_P(LinearRows, EveryPairOfCodesAtEveryPlace) {
  // Row n holds codes (n, j) at places 2j and 2j + 1; the input picks one place at a time.
  const int64_t n = 256, k = 512;
  MxMatrix w(n, k);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t j = 0; j < 256; ++j) {
      w.codes[r * k + 2 * j] = e4m3_is_nan(static_cast<uint8_t>(r)) ? 0 : static_cast<uint8_t>(r);
      w.codes[r * k + 2 * j + 1] =
          e4m3_is_nan(static_cast<uint8_t>(j)) ? 0 : static_cast<uint8_t>(j);
    }
  }
  std::fill(w.scales.begin(), w.scales.end(), 127);
  const Linear linear = load(row_, w);
  for (const int64_t m : {1, 8}) {
    for (int64_t first = 0; first < k; first += m) {
      Floats x(static_cast<size_t>(m * k));
      for (int64_t t = 0; t < m; ++t) x[t * k + first + t] = 1;
      const Floats y = apply(row_, linear, x, m);
      for (int64_t t = 0; t < m; ++t) {
        for (int64_t r = 0; r < n; ++r) {
          ASSERT_EQ(y[t * n + r], e4m3_decode(w.codes[r * k + first + t])) << r << " " << first + t;
        }
      }
    }
  }
}

TEST_P(LinearRows, EveryScaleByte) {
  const Row scalar = make_row(CpuIsa::kScalar, 1);
  // One matrix for each scale, so that each is selected on its own range.
  for (int s = 0; s <= 254; ++s) {
    const MxMatrix w = uniform_weight(17, 64, static_cast<uint32_t>(s), s, s);
    const Linear linear = load(row_, w);
    const Linear twin = load(scalar, w);
    // An all-zero block may carry any byte but NaN.
    MxMatrix zero_block = gaussian_weight(17, 64, 3);
    for (int64_t r = 0; r < 17; ++r) {
      std::memset(&zero_block.codes[r * 64 + 32], 0, 32);
      zero_block.scales[r * 2 + 1] = static_cast<uint8_t>(s);
    }
    const Linear with_zeros = load(row_, zero_block);
    for (const int64_t m : {1, 2, 7}) {
      const Floats x = gaussian(m * 64, 9);
      ASSERT_EQ(apply(row_, linear, x, m), apply(scalar, twin, x, m)) << "scale " << s;
      expect_near_exact(zero_block, x, m, apply(row_, with_zeros, x, m), "zero block");
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(LinearRows, HostileNumbers) {
  const Row scalar = make_row(CpuIsa::kScalar, 1);
  const int64_t n = 40, k = 352;
  std::vector<MxMatrix> weights;
  weights.push_back(uniform_weight(n, k, 1, 0, 254));
  weights.push_back(uniform_weight(n, k, 2, 0, 246));
  weights.push_back(uniform_weight(n, k, 3, 120, 124));
  MxMatrix subnormal = gaussian_weight(n, k, 4);
  for (uint8_t& c : subnormal.codes) c = static_cast<uint8_t>((c & 0x80) | (1 + c % 7));
  weights.push_back(subnormal);
  MxMatrix extreme = gaussian_weight(n, k, 5);
  for (size_t i = 0; i < extreme.codes.size(); ++i) extreme.codes[i] = i % 2 == 0 ? 0x7E : 0xFE;
  weights.push_back(extreme);
  MxMatrix zeros(n, k);
  for (size_t i = 0; i < zeros.codes.size(); ++i) zeros.codes[i] = i % 3 == 0 ? 0x80 : 0;
  weights.push_back(zeros);
  for (const MxMatrix& w : weights) {
    const Linear linear = load(row_, w);
    const Linear twin = load(scalar, w);
    for (const float size : {1.0f, 1e-30f, 1e30f, 1e-38f, 1e-44f, 65536.0f, 3e38f}) {
      for (const int64_t m : {1, 2, 3, 9}) {
        Floats x = gaussian(m * k, 12);
        for (float& v : x) v *= size;
        // A huge spread within a row, zeros of both signs, and one number that no product of is
        // normal.
        x[0] = 0.0f;
        x[1] = -0.0f;
        x[2] = 1e-45f;
        const Floats got = apply(row_, linear, x, m), want = apply(scalar, twin, x, m);
        for (size_t i = 0; i < got.size(); ++i) {
          if (std::isnan(want[i])) {
            ASSERT_TRUE(std::isnan(got[i]));
          } else {
            ASSERT_EQ(got[i], want[i]) << "size " << size << " M " << m << " at " << i;
          }
        }
      }
    }
  }
}

TEST_P(LinearRows, NanAndInfinityStayInTheirRow) {
  const int64_t n = 24, k = 96;
  const Linear linear = load(row_, gaussian_weight(n, k, 5));
  for (const int64_t m : {2, 3, 13}) {
    Floats x = gaussian(m * k, 6);
    const Floats clean = apply(row_, linear, x, m);
    x[k + 5] = std::numeric_limits<float>::quiet_NaN();
    const Floats y = apply(row_, linear, x, m);
    for (int64_t i = 0; i < m * n; ++i) {
      if (i / n == 1) {
        EXPECT_TRUE(std::isnan(y[i]));
      } else {
        EXPECT_EQ(y[i], clean[i]);
      }
    }
    x[k + 5] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(apply(row_, linear, x, m)[n]));
  }
}

// One plain weight type with the conversions that a test needs.
struct PlainMatrix {
  std::vector<std::byte> bytes;
  Floats values;  // what the bytes mean
  QuantView view;
};

PlainMatrix plain_matrix(DType type, int64_t n, int64_t k, uint32_t seed) {
  PlainMatrix out;
  out.values = gaussian(n * k, seed, 0.05f);
  out.bytes.resize(out.values.size() * static_cast<size_t>(dtype_size(type)));
  for (size_t i = 0; i < out.values.size(); ++i) {
    float& v = out.values[i];
    if (type == DType::kF32) {
      std::memcpy(&out.bytes[i * 4], &v, 4);
      continue;
    }
    const uint16_t bits = type == DType::kBF16 ? f32_to_bf16(v) : f32_to_f16(v);
    v = type == DType::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
    std::memcpy(&out.bytes[i * 2], &bits, 2);
  }
  out.view = {out.bytes.data(), nullptr, n, k, QuantScheme::plain(type)};
  return out;
}

TEST_P(LinearRows, PlainWeights) {
  const Row scalar = make_row(CpuIsa::kScalar, 2);
  for (const DType type : {DType::kBF16, DType::kF16, DType::kF32}) {
    for (const auto [n, k] : {shapes::LinearShape{1, 1}, {5, 7}, {8, 32}, {33, 576}, {129, 100}}) {
      const PlainMatrix w = plain_matrix(type, n, k, static_cast<uint32_t>(n));
      const Linear linear = Linear::load(row_.caps, spec_named("p"), {&w.view, 1}).value();
      const Linear twin = Linear::load(scalar.caps, spec_named("p"), {&w.view, 1}).value();
      for (const int64_t m : {1, 2, 3, 4, 7, 31}) {
        const Floats x = gaussian(m * k, 8);
        const Floats y = apply(row_, linear, x, m);
        EXPECT_EQ(y, apply(scalar, twin, x, m)) << dtype_name(type) << n << "x" << k << " M=" << m;
        for (int64_t i = 0; i < m * n; ++i) {
          double sum = 0, size = 0;
          for (int64_t j = 0; j < k; ++j) {
            const double term = double{w.values[i % n * k + j]} * x[i / n * k + j];
            sum += term;
            size += std::abs(term);
          }
          ASSERT_LE(std::abs(y[i] - sum), 4 * std::sqrt(static_cast<double>(k)) * 0x1p-24 * size);
        }
      }
      Floats decoded(static_cast<size_t>(k));
      linear.decode_row(n - 1, decoded.data());
      EXPECT_EQ(decoded, Floats(w.values.end() - k, w.values.end()));
    }
  }
}

TEST_P(LinearRows, DecodesRows) {
  for (const auto [n, k] : {shapes::LinearShape{1, 32}, {13, 96}, {17, 576}}) {
    const MxMatrix w = uniform_weight(n, k, 3, 100, 140);
    const Linear linear = load(row_, w);
    const std::vector<float> want = mx_dequantize(w.view());
    Floats got(static_cast<size_t>(k));
    for (int64_t r = 0; r < n; ++r) {
      linear.decode_row(r, got.data());
      EXPECT_EQ(got, Floats(want.begin() + r * k, want.begin() + (r + 1) * k));
    }
  }
}

TEST_P(LinearRows, EpiloguesAndStrides) {
  for (const int64_t n : {5, 16, 40, 67}) {
    const int64_t k = 64;
    const MxMatrix w = gaussian_weight(n, k, 21);
    const QuantView view = view_of(w);
    const Floats bias = gaussian(n, 22);
    const Linear plain = load(row_, w);
    const Linear biased = Linear::load(row_.caps, spec_named("b"), {&view, 1}, bias).value();
    for (const int64_t m : {1, 2, 5, 14}) {
      const Floats x = gaussian(m * k, 23);
      const Floats sums = apply(row_, plain, x, m);
      // Inputs, outputs and residual inside wider matrices; what lies around them stays.
      Floats wide_x(static_cast<size_t>(m * (k + 3)), 5.0f),
          wide_y(static_cast<size_t>(m * (n + 5)), 9.0f);
      for (int64_t t = 0; t < m; ++t)
        std::memcpy(&wide_x[t * (k + 3)], &x[t * k], sizeof(float) * k);
      const Mat mx{wide_x.data(), DType::kF32, m, k, k + 3};
      const Mat my{wide_y.data(), DType::kF32, m, n, n + 5};
      biased.apply(row_.exec(), mx, my);
      for (int64_t i = 0; i < m * (n + 5); ++i) {
        const int64_t t = i / (n + 5), c = i % (n + 5);
        ASSERT_EQ(wide_y[i], c < n ? sums[t * n + c] + bias[c] : 9.0f);
      }
      // In place: y += x W^T + bias.
      const Floats before = wide_y;
      biased.apply(row_.exec(), mx, my, {EpilogueKind::kResidual, my});
      for (int64_t i = 0; i < m * (n + 5); ++i) {
        const int64_t t = i / (n + 5), c = i % (n + 5);
        ASSERT_EQ(wide_y[i], c < n ? before[i] + (sums[t * n + c] + bias[c]) : 9.0f);
      }
    }
  }
}

TEST_P(LinearRows, SiluMulOverInterleavedGateAndUp) {
  const Row scalar = make_row(CpuIsa::kScalar, 1);
  for (const int64_t half : {1, 7, 8, 12, 16, 44}) {
    const int64_t k = 96;
    const MxMatrix gate = gaussian_weight(half, k, 31), up = gaussian_weight(half, k, 32);
    const std::vector<QuantView> parts{view_of(gate), view_of(up)};
    const Floats bias = gaussian(2 * half, 33);
    LinearSpec spec = spec_named("gate_up");
    spec.order = RowOrder::kGateUpInterleaved;
    const Linear fused = Linear::load(row_.caps, spec, parts, bias).value();
    const Linear twin = Linear::load(scalar.caps, spec, parts, bias).value();
    const Linear only_gate = load(row_, gate), only_up = load(row_, up);
    for (const int64_t m : {1, 2, 3, 20}) {
      Floats x = gaussian(m * k, 34, 8);
      x[0] = 3000;  // gates far out on both sides
      const Floats y = apply(row_, fused, x, m, {EpilogueKind::kSiluMul, {}});
      EXPECT_EQ(y, apply(scalar, twin, x, m, {EpilogueKind::kSiluMul, {}}));
      const Floats g = apply(row_, only_gate, x, m), u = apply(row_, only_up, x, m);
      for (int64_t i = 0; i < m * half; ++i) {
        const double gi = g[i] + bias[i % half], ui = u[i] + bias[half + i % half];
        const double want = gi / (1 + std::exp(-gi)) * ui;
        // exp overflows in FP32 for gates below -88.7, where |silu| is under 3e-37.
        ASSERT_NEAR(y[i], want, 2e-6 * std::abs(want) + 3e-37 * std::abs(ui))
            << half << " " << m << " " << i;
      }
    }
  }
}

TEST_P(LinearRows, StackedPartsEqualTheirOwnLayers) {
  const int64_t k = 64;
  const MxMatrix q = gaussian_weight(24, k, 1), key = gaussian_weight(9, k, 2),
                 v = gaussian_weight(8, k, 3);
  const std::vector<QuantView> parts{view_of(q), view_of(key), view_of(v)};
  const Linear fused = Linear::load(row_.caps, spec_named("qkv"), parts).value();
  EXPECT_EQ(fused.n(), 41);
  const Floats x = gaussian(3 * k, 4);
  const Floats y = apply(row_, fused, x, 3);
  const Floats yq = apply(row_, load(row_, q), x, 3), yk = apply(row_, load(row_, key), x, 3),
               yv = apply(row_, load(row_, v), x, 3);
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t n = 0; n < 41; ++n) {
      const float want = n < 24 ? yq[t * 24 + n] : n < 33 ? yk[t * 9 + n - 24] : yv[t * 8 + n - 33];
      EXPECT_EQ(y[t * 41 + n], want);
    }
  }
}

TEST_P(LinearRows, NoTokensIsNoWork) {
  const Linear linear = load(row_, gaussian_weight(8, 32, 1));
  linear.apply(row_.exec(), Mat::f32(nullptr, 0, 32), Mat::f32(nullptr, 0, 8));
}

TEST_P(LinearRows, ExpertsEqualTheirOwnLayers) {
  const int64_t n = 48, k = 160;
  const int experts = 6;
  std::vector<MxMatrix> weights;
  auto grouped = GroupedLinear::begin(row_.caps, spec_named("experts"), experts).value();
  for (int e = 0; e < experts; ++e) {
    // Expert 3 is outside the fast kernels' range and gets another layout.
    weights.push_back(e == 3 ? uniform_weight(n, k, 3, 250, 252) : gaussian_weight(n, k, 40 + e));
    const QuantView view = view_of(weights.back());
    ASSERT_TRUE(grouped.add({&view, 1}).ok());
  }
  ASSERT_TRUE(grouped.end().ok());
  // Counts of every kind: none, one, two, a few, many.
  const std::vector<int32_t> offsets{0, 1, 1, 20, 22, 27, 60};
  const int64_t tokens = 23, rows = offsets.back();
  const Floats x = gaussian(tokens * k, 50, 1e-3f);
  std::vector<int32_t> list;
  for (int64_t r = 0; r < rows; ++r) list.push_back(static_cast<int32_t>(r * 7 % tokens));
  Floats y(static_cast<size_t>(rows * n));
  grouped.apply(row_.exec(), Mat::f32(const_cast<float*>(x.data()), tokens, k), offsets, list,
                Mat::f32(y.data(), rows, n));
  Floats gathered;
  for (const int32_t r : list)
    gathered.insert(gathered.end(), x.begin() + r * k, x.begin() + (r + 1) * k);
  Floats direct(y.size());
  grouped.apply(row_.exec(), Mat::f32(gathered.data(), rows, k), offsets, {},
                Mat::f32(direct.data(), rows, n));
  EXPECT_EQ(y, direct);
  for (int e = 0; e < experts; ++e) {
    const int64_t count = offsets[e + 1] - offsets[e];
    if (count == 0) continue;
    const Floats part(gathered.begin() + offsets[e] * k, gathered.begin() + offsets[e + 1] * k);
    const Floats want = apply(row_, load(row_, weights[e]), part, count);
    EXPECT_EQ(Floats(y.begin() + offsets[e] * n, y.begin() + offsets[e + 1] * n), want) << e;
  }
}

TEST(LinearErrors, NameTheLayerAndTheFault) {
  const DeviceCaps caps = forced_caps("cpu-scalar").value();
  const auto message = [&](const LinearSpec& spec, const std::vector<QuantView>& parts,
                           const Floats& bias = {}) {
    const auto linear = Linear::load(caps, spec, parts, bias);
    return linear.ok() ? std::string("loaded") : linear.error().message;
  };
  const auto expect = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find("model.layers.3.qkv"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  const LinearSpec spec = spec_named("model.layers.3.qkv");
  const MxMatrix good = gaussian_weight(8, 64, 1), narrow = gaussian_weight(8, 32, 2);
  const PlainMatrix plain = plain_matrix(DType::kBF16, 8, 64, 3);
  expect(message(spec, {view_of(good), view_of(narrow)}),
         "parts disagree: mxfp8 (w8a16) [8, 64] and");
  expect(message(spec, {view_of(good), plain.view}), "bf16 [8, 64]");
  MxMatrix nan_code = good;
  nan_code.codes[77] = 0xFF;
  expect(message(spec, {view_of(good), view_of(nan_code)}), "(part 2) holds 1 NaN codes");
  MxMatrix nan_scale = good;
  nan_scale.scales[3] = 255;
  expect(message(spec, {view_of(nan_scale)}), "1 NaN scales");
  expect(message(spec, {view_of(good)}, Floats(7)), "bias of 7 elements for 8 output features");
  QuantView odd = plain.view;
  odd.scheme.code_type = DType::kI8;
  expect(message(spec, {odd}), "not supported");
  QuantView empty = view_of(good);
  empty.rows = 0;
  expect(message(spec, {empty}), "no elements");
  QuantView ragged = view_of(good);
  ragged.cols = 48;
  expect(message(spec, {ragged}), "multiple of 32");
  LinearSpec gate_up = spec;
  gate_up.order = RowOrder::kGateUpInterleaved;
  const MxMatrix shorter = gaussian_weight(7, 64, 4);
  expect(message(gate_up, {view_of(good), view_of(shorter)}), "same rows");
  LinearSpec demanding = spec;
  demanding.preference.backend = "cpu-avx2";
  expect(message(demanding, {view_of(good)}), "needs avx2");

  // What a GPU would refuse, without one.
  const DeviceCaps gpu = forced_caps("sm90").value();
  const QuantView one = view_of(good);
  LinearSpec half = spec;
  half.activation = DType::kBF16;
  expect(Linear::load(gpu, half, {&plain.view, 1}).error().message, "runs on CPUs only");
  expect(Linear::load(gpu, half, {&one, 1}).error().message, "H200 is the record of a device");
  if (!cuda_device_count().ok()) {  // a record that claims to be of this machine
    DeviceCaps claimed = gpu;
    claimed.forced = false;
    const std::string built = cuda::missing_unit(cuda::Unit::kSm90, 90);
    expect(Linear::load(claimed, half, {&one, 1}).error().message, built);
  }
  auto experts = GroupedLinear::begin(gpu, half, 1).value();
  expect(experts.add({&one, 1}).error().message, "has no grouped form");

  auto grouped = GroupedLinear::begin(caps, spec, 2).value();
  const QuantView first = view_of(good), second = view_of(narrow), bad = view_of(nan_code);
  EXPECT_TRUE(grouped.add({&first, 1}).ok());
  expect(grouped.add({&second, 1}).error().message, "experts must be alike");
  expect(grouped.add({&bad, 1}).error().message, "expert 1 holds 1 NaN codes");
  expect(grouped.end().error().message, "1 experts were found, 2 expected");
}

}  // namespace
}  // namespace mx8
