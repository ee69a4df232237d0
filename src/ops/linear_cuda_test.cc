// Linear on a GPU against FP64, with the CPU's own quantisers for the activations. Every output is
// poisoned first and checked element by element; the workspace is poisoned but for its flags.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "base/strings.h"
#include "kernels/cuda/gemm_launch.h"
#include "kernels/cuda/testing/gemm_problem.h"
#include "mx/bf16.h"
#include "mx/e4m3.h"
#include "mx/row_fold.h"
#include "ops/linear.h"
#include "runtime/cuda_device.h"

namespace mx8 {
namespace {

using cuda::testing::DeviceArray;

constexpr int64_t kTokens[] = {0, 1, 7, 16, 17, 64, 129, 300};
constexpr int64_t kMaxTokens = 300;

// The first GPU, or a skip with the reason.
#define REQUIRE_GPU(caps)                                         \
  const auto found_gpu = detect_cuda_caps(0);                     \
  if (!found_gpu.ok()) GTEST_SKIP() << found_gpu.error().message; \
  if (found_gpu->sm < 80) GTEST_SKIP() << "needs SM80 or later";  \
  const DeviceCaps& caps = *found_gpu

uint16_t to_half(float v, DType type) {
  return type == DType::kF16 ? f32_to_f16(v) : f32_to_bf16(v);
}
float from_half(uint16_t v, DType type) {
  return type == DType::kF16 ? f16_to_f32(v) : bf16_to_f32(v);
}

MxMatrix random_weight(int64_t n, int64_t k, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> values(static_cast<size_t>(n * k));
  for (float& v : values) v = normal(rng);
  return mx_quantize(values.data(), n, k, k, ScaleRule::kRceil);
}

struct Case {
  std::vector<int64_t> rows;  // of the parts
  int64_t k = 0;
  DType activation = DType::kBF16;
  DType out = DType::kBF16;
  ActivationMode mode = ActivationMode::kBf16;
  bool bias = false, residual = false, silu_mul = false;
  std::string backend;  // demanded
  int64_t max_m = kMaxTokens;
  int64_t pad_y = 0;
  int shift_scales = 0;  // added to every scale byte
  int lift = 0;  // added to the first scale of each row, whose codes become the smallest ones
  std::string describe() const {
    return str_cat("rows ", rows.front(), " x", rows.size(), " k ", k, " ", dtype_name(activation),
                   " to ", dtype_name(out), " mode ", static_cast<int>(mode), bias ? " bias" : "",
                   residual ? " residual" : "", silu_mul ? " silu" : "", " ", backend);
  }
};

class Layer {
 public:
  Layer(const DeviceCaps& caps, const Case& c) : c_(c) {
    for (size_t i = 0; i < c.rows.size(); ++i) {
      MxMatrix w = random_weight(c.rows[i], c.k, static_cast<uint32_t>(7 + i));
      for (uint8_t& scale : w.scales) scale = static_cast<uint8_t>(scale + c.shift_scales);
      for (int64_t row = 0; row < (c.lift > 0 ? w.rows : 0); ++row) {
        uint8_t& scale = w.scales[row * (c.k / kMxBlock)];
        scale = static_cast<uint8_t>(scale + c.lift);
        for (int j = 0; j < kMxBlock; ++j) {
          uint8_t& code = w.codes[row * c.k + j];
          code = static_cast<uint8_t>((code & 0x80) | 1);
        }
      }
      n_ += c.rows[i];
      parts_.push_back(std::move(w));
    }
    std::mt19937 rng(3);
    std::normal_distribution<float> normal(0, 1);
    for (int64_t i = 0; i < kMaxTokens * c.k; ++i) x_.push_back(to_half(normal(rng), c.activation));
    features_ = c.silu_mul ? n_ / 2 : n_;
    ldy_ = features_ + c.pad_y;
    for (int64_t i = 0; i < (c.bias ? n_ : 0); ++i) bias_.push_back(normal(rng));
    for (int64_t i = 0; i < kMaxTokens * ldy_; ++i)
      residual_.push_back(to_half(normal(rng), c.out));
    std::vector<QuantView> views;
    for (const MxMatrix& w : parts_) {
      views.push_back({w.codes.data(), w.scales.data(), w.rows, w.cols, QuantScheme::mxfp8()});
    }
    LinearSpec spec;
    spec.name = "model.layers.0.layer";
    spec.order = c.silu_mul ? RowOrder::kGateUpInterleaved : RowOrder::kPlain;
    spec.max_m = c.max_m;
    spec.activation = c.activation;
    spec.preference.backend = c.backend;
    spec.preference.activations = c.mode;
    auto loaded = Linear::load(caps, spec, views, bias_);
    if (!loaded.ok()) {
      error_ = loaded.error().message;
      return;
    }
    linear_ = std::move(loaded).value();
    x_device_ = DeviceArray<uint16_t>(x_.size());
    x_device_.upload(x_);
  }

  const std::string& error() const { return error_; }
  const Linear& linear() const { return linear_; }
  Backend backend() const { return linear_.plan().backend; }
  size_t y_bytes() const { return static_cast<size_t>(kMaxTokens * ldy_ * dtype_size(c_.out)); }

  // A workspace as its owner makes it, the rest poisoned.
  DeviceArray<char> workspace() const {
    const size_t flags = cuda::PlannedGemm::flag_bytes();
    DeviceArray<char> bytes(linear_.workspace_bytes());
    bytes.fill(0xFF);
    MX8_CUDA_OK(cudaMemset(bytes.get(), 0, flags));
    return bytes;
  }

  // Poison, or the residual where it is read in place.
  void reset(uint8_t* y) const {
    MX8_CUDA_OK(cudaMemset(y, 0xFF, y_bytes()));
    if (c_.residual) {
      MX8_CUDA_OK(cudaMemcpy(y, residual_.data(), y_bytes(), cudaMemcpyHostToDevice));
    }
  }
  void apply(int64_t m, uint8_t* y, DeviceArray<char>& workspace, cudaStream_t stream) const {
    Exec exec;
    exec.device = DeviceKind::kCuda;
    exec.stream = stream;
    exec.device_workspace = workspace.get();
    exec.device_workspace_bytes = workspace.size();
    const Mat out{y, c_.out, m, features_, ldy_};
    Epilogue epilogue;
    if (c_.silu_mul) epilogue.kind = EpilogueKind::kSiluMul;
    if (c_.residual) epilogue = {EpilogueKind::kResidual, out};
    linear_.apply(exec, {x_device_.get(), c_.activation, m, c_.k, c_.k}, out, epilogue);
  }

  // "" or what is wrong with the first m rows of Y and what lies around them.
  std::string judge(int64_t m, const std::vector<uint8_t>& y) {
    make_reference();
    const double rounding = c_.out == DType::kBF16  ? 0x1p-8
                            : c_.out == DType::kF16 ? 0x1p-10
                                                    : 0x1p-15;
    // FP32 sums of E4M3 products in the tensor cores keep fewer bits than FP32 does.
    const double sums =
        backend() == Backend::kW8A16 || backend() == Backend::kEmulation ? 0x1p-18 : 0x1p-11;
    // Half of the smallest FP16; weights that BF16 rounds to multiples of 2^-133.
    const double floor = (c_.out == DType::kF16 ? 0x1p-25 : 0x1p-140) +
                         (c_.shift_scales < 0 ? static_cast<double>(c_.k) * 4 * 0x1p-134 : 0);
    const auto size = static_cast<size_t>(dtype_size(c_.out));
    for (int64_t t = 0; t < kMaxTokens; ++t) {
      for (int64_t i = 0; i < ldy_; ++i) {
        const uint8_t* at = y.data() + static_cast<size_t>(t * ldy_ + i) * size;
        if (t >= m || i >= features_) {
          if (c_.residual) continue;
          for (size_t b = 0; b < size; ++b) {
            if (at[b] != 0xFF) return str_cat("y[", t, ",", i, "] lies outside and was written");
          }
          continue;
        }
        const double got = value(at), want = want_[t * features_ + i];
        const double bound =
            rounding * std::abs(want) + sums * magnitude_[t * features_ + i] + floor;
        if (!(std::abs(got - want) <= bound)) {
          return str_cat("y[", t, ",", i, "] = ", got, ", expected ", want, " within ", bound);
        }
      }
    }
    return "";
  }

 private:
  double value(const uint8_t* at) const {
    if (c_.out == DType::kF32) {
      float f;
      std::memcpy(&f, at, 4);
      return static_cast<double>(f);
    }
    uint16_t h;
    std::memcpy(&h, at, 2);
    return static_cast<double>(from_half(h, c_.out));
  }

  // Rows of W in FP64, as the plan's backend holds them.
  std::vector<double> weights() const {
    std::vector<double> out;
    for (const MxMatrix& w : parts_) {
      if (backend() == Backend::kFp8Folded) {
        const RowFold fold = mx_fold_rows(w.view());
        for (int64_t i = 0; i < w.rows * w.cols; ++i) {
          out.push_back(std::ldexp(static_cast<double>(e4m3_decode(fold.codes[i])),
                                   fold.exponents[i / w.cols]));
        }
      } else {
        for (int64_t i = 0; i < w.rows * w.cols; ++i) {
          out.push_back(mx_value(w.codes[i], w.scales[i / kMxBlock]));
        }
      }
    }
    return out;
  }

  // X in FP64, quantised where the backend does.
  std::vector<double> inputs() const {
    std::vector<float> x;
    for (uint16_t v : x_) x.push_back(from_half(v, c_.activation));
    std::vector<double> out(x.begin(), x.end());
    if (backend() == Backend::kBlockScaled) {
      const MxMatrix q = mx_quantize(x.data(), kMaxTokens, c_.k, c_.k, ScaleRule::kRceil);
      for (size_t i = 0; i < out.size(); ++i) out[i] = mx_value(q.codes[i], q.scales[i / kMxBlock]);
    } else if (backend() == Backend::kFp8Folded) {
      for (int64_t t = 0; t < kMaxTokens; ++t) {
        float amax = 0;
        for (int64_t k = 0; k < c_.k; ++k) amax = std::max(amax, std::abs(x[t * c_.k + k]));
        const float scale = amax / 448.f, inverse = 448.f / amax;
        for (int64_t k = 0; k < c_.k; ++k) {
          double& v = out[t * c_.k + k];
          v = static_cast<double>(e4m3_decode(e4m3_encode(x[t * c_.k + k] * inverse))) *
              static_cast<double>(scale);
        }
      }
    }
    return out;
  }

  void make_reference() {
    if (!want_.empty()) return;
    const std::vector<double> w = weights(), x = inputs();
    std::vector<double> sum(static_cast<size_t>(kMaxTokens * n_)), size(sum.size());
    for (int64_t t = 0; t < kMaxTokens; ++t) {
      for (int64_t n = 0; n < n_; ++n) {
        double s = 0, a = 0;
        for (int64_t k = 0; k < c_.k; ++k) {
          const double term = w[n * c_.k + k] * x[t * c_.k + k];
          s += term, a += std::abs(term);
        }
        const double b = c_.bias ? static_cast<double>(bias_[n]) : 0;
        sum[t * n_ + n] = s + b, size[t * n_ + n] = a + std::abs(b);
      }
    }
    for (int64_t t = 0; t < kMaxTokens; ++t) {
      for (int64_t i = 0; i < features_; ++i) {
        double v = sum[t * n_ + i], a = size[t * n_ + i];
        if (c_.silu_mul) {
          const double up = sum[t * n_ + features_ + i], up_size = size[t * n_ + features_ + i];
          const double silu = v / (1 + std::exp(-v));
          a = 1.1 * a * std::abs(up) + std::abs(silu) * up_size;
          v = silu * up;
        }
        if (c_.residual) {
          const auto r = static_cast<double>(from_half(residual_[t * ldy_ + i], c_.out));
          v += r, a += std::abs(r);
        }
        want_.push_back(v);
        magnitude_.push_back(a);
      }
    }
  }

  Case c_;
  int64_t n_ = 0, features_ = 0, ldy_ = 0;
  std::vector<MxMatrix> parts_;
  std::vector<uint16_t> x_, residual_;
  std::vector<float> bias_;
  std::vector<double> want_, magnitude_;
  std::string error_;
  Linear linear_;
  DeviceArray<uint16_t> x_device_;
};

// Loads the case and runs it for every number of tokens.
void expect_right(const DeviceCaps& caps, const Case& c, Backend* backend = nullptr) {
  Layer layer(caps, c);
  ASSERT_EQ(layer.error(), "") << c.describe();
  if (backend) *backend = layer.backend();
  DeviceArray<char> workspace = layer.workspace();
  DeviceArray<uint8_t> y(layer.y_bytes());
  for (int64_t m : kTokens) {
    layer.reset(y.get());
    layer.apply(m, y.get(), workspace, nullptr);
    MX8_CUDA_OK(cudaDeviceSynchronize());
    ASSERT_EQ(layer.judge(m, y.download()), "")
        << c.describe() << " m " << m << " on " << backend_name(layer.backend()) << " "
        << layer.linear().plan().bucket(m).instance;
  }
}

TEST(LinearCuda, FusedPartsOfOddSizesWithBias) {
  REQUIRE_GPU(caps);
  for (DType activation : {DType::kBF16, DType::kF16}) {
    for (ActivationMode mode : {ActivationMode::kBf16, ActivationMode::kFp8}) {
      for (DType out : {DType::kBF16, DType::kF16, DType::kF32}) {
        Backend backend{};
        expect_right(caps,
                     {.rows = {100, 36, 29},
                      .k = 320,
                      .activation = activation,
                      .out = out,
                      .mode = mode,
                      .bias = true,
                      .pad_y = 3},
                     &backend);
        if (HasFatalFailure()) return;
        if (caps.sm == 90) {
          EXPECT_EQ(backend, mode == ActivationMode::kFp8 ? Backend::kFp8Folded : Backend::kW8A16);
        }
      }
    }
  }
}

TEST(LinearCuda, GateAndUp) {
  REQUIRE_GPU(caps);
  for (DType activation : {DType::kBF16, DType::kF16}) {
    for (ActivationMode mode : {ActivationMode::kBf16, ActivationMode::kFp8}) {
      for (int64_t half : {84, 256}) {
        for (bool bias : {false, true}) {
          expect_right(caps, {.rows = {half, half},
                              .k = 256,
                              .activation = activation,
                              .out = activation,
                              .mode = mode,
                              .bias = bias,
                              .silu_mul = true});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(LinearCuda, ResidualInPlace) {
  REQUIRE_GPU(caps);
  for (DType activation : {DType::kBF16, DType::kF16}) {
    for (ActivationMode mode : {ActivationMode::kBf16, ActivationMode::kFp8}) {
      for (int64_t n : {136, 131}) {
        expect_right(caps, {.rows = {n},
                            .k = 192,
                            .activation = activation,
                            .out = activation,
                            .mode = mode,
                            .bias = n == 131,
                            .residual = true,
                            .pad_y = n == 131});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LinearCuda, AWideLayerIsResidentOnce) {
  REQUIRE_GPU(caps);
  for (ActivationMode mode : {ActivationMode::kBf16, ActivationMode::kFp8}) {
    const Case c{.rows = {1536}, .k = 1024, .mode = mode, .max_m = 8192};
    expect_right(caps, c);
    if (HasFatalFailure()) return;
    const Layer layer(caps, c);
    EXPECT_LE(layer.linear().resident_bytes(), 1536u * 1024 * 33 / 32 + 64 * 1024);
    EXPECT_GE(layer.linear().resident_bytes(), 1536u * 1024);
  }
}

TEST(LinearCuda, EveryBackendOfTheDeviceOnDemand) {
  REQUIRE_GPU(caps);
  int ran = 0;
  std::string last;
  for (const KernelInfo* kernel : kernel_registry()) {
    const std::string name(backend_name(kernel->backend));
    if (name == last) continue;
    last = name;
    for (DType activation : {DType::kBF16, DType::kF16}) {
      const Case c{.rows = {160, 96},
                   .k = 384,
                   .activation = activation,
                   .out = activation,
                   .mode = ActivationMode::kFp8,
                   .bias = true,
                   .backend = name};
      const Layer probe(caps, c);
      if (!probe.error().empty()) {
        EXPECT_NE(probe.error().find("model.layers.0.layer"), std::string::npos) << probe.error();
        continue;
      }
      Backend backend{};
      expect_right(caps, c, &backend);
      if (HasFatalFailure()) return;
      EXPECT_EQ(backend_name(backend), name);
      ++ran;
    }
  }
  // w8a16, fp8-folded and emulation, each for BF16 and FP16.
  const int emulated = caps.cublaslt_missing.empty() ? 2 : 0;
  if (caps.sm == 90) {
    EXPECT_EQ(ran, 4 + emulated);
  } else {
    EXPECT_GE(ran, 2 + emulated);
  }
}

// Where the scale of one block lies far above the others of its row, and its codes are small, the
// row cannot be folded; the layer keeps its scales.
TEST(LinearCuda, AMatrixThatDoesNotFold) {
  REQUIRE_GPU(caps);
  for (DType activation : {DType::kBF16, DType::kF16}) {
    Backend backend{};
    expect_right(caps,
                 {.rows = {200},
                  .k = 256,
                  .activation = activation,
                  .out = activation,
                  .mode = ActivationMode::kFp8,
                  .lift = 12},
                 &backend);
    if (HasFatalFailure()) return;
    if (caps.sm == 90) {
      EXPECT_EQ(backend, Backend::kW8A16);
    }
  }
  const Layer wide(caps, {.rows = {64}, .k = 256, .activation = DType::kF16, .lift = 30});
  EXPECT_NE(wide.error().find("FP16 holds a row's blocks down to 2^-15"), std::string::npos)
      << wide.error();
}

TEST(LinearCuda, ScalesOutsideTheExactRangeAreEmulated) {
  REQUIRE_GPU(caps);
  if (!caps.cublaslt_missing.empty()) GTEST_SKIP() << caps.cublaslt_missing;
  for (int shift : {-115, 25}) {  // scale bytes 0 to 2, and above 134
    Backend backend{};
    const Case c{.rows = {200}, .k = 256, .out = DType::kF32, .shift_scales = shift};
    expect_right(caps, c, &backend);
    if (HasFatalFailure()) return;
    if (caps.sm < 100) {
      EXPECT_EQ(backend, Backend::kEmulation) << shift;
    }
  }
}

TEST(LinearCuda, WithoutCublasLt) {
  REQUIRE_GPU(found);
  DeviceCaps caps = found;
  caps.cublaslt_missing = "not wanted here";
  expect_right(caps, {.rows = {256}, .k = 512, .max_m = 8192});
  const Layer emulated(caps, {.rows = {256}, .k = 512, .backend = "emulation"});
  EXPECT_NE(emulated.error().find("not wanted here"), std::string::npos) << emulated.error();
}

// Two layers share a workspace on one stream, captured and replayed.
TEST(LinearCuda, CapturedInAGraph) {
  REQUIRE_GPU(caps);
  cudaStream_t stream;
  MX8_CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (ActivationMode mode : {ActivationMode::kBf16, ActivationMode::kFp8}) {
    for (const char* backend : {"", "emulation"}) {
      if (*backend && !caps.cublaslt_missing.empty()) continue;
      Layer first(
          caps, {.rows = {100, 36, 29}, .k = 1024, .mode = mode, .bias = true, .backend = backend});
      Layer second(
          caps, {.rows = {256, 256}, .k = 512, .mode = mode, .silu_mul = true, .backend = backend});
      ASSERT_EQ(first.error() + second.error(), "");
      DeviceArray<char> workspace =
          first.linear().workspace_bytes() > second.linear().workspace_bytes() ? first.workspace()
                                                                               : second.workspace();
      DeviceArray<uint8_t> y1(first.y_bytes()), y2(second.y_bytes());
      for (int64_t m : {1, 16, 100, 300}) {
        // cuBLASLt loads its kernels at their first call, which a capture may not hold.
        first.apply(m, y1.get(), workspace, stream);
        second.apply(m, y2.get(), workspace, stream);
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        MX8_CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < 2; ++i) {
          first.apply(m, y1.get(), workspace, stream);
          second.apply(m, y2.get(), workspace, stream);
        }
        MX8_CUDA_OK(cudaStreamEndCapture(stream, &graph));
        MX8_CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
        for (int replay = 0; replay < 3; ++replay) {
          first.reset(y1.get()), second.reset(y2.get());
          MX8_CUDA_OK(cudaDeviceSynchronize());
          MX8_CUDA_OK(cudaGraphLaunch(exec, stream));
          MX8_CUDA_OK(cudaStreamSynchronize(stream));
          ASSERT_EQ(first.judge(m, y1.download()), "") << m << " " << backend;
          ASSERT_EQ(second.judge(m, y2.download()), "") << m << " " << backend;
        }
        cudaGraphExecDestroy(exec);
        cudaGraphDestroy(graph);
      }
    }
  }
  MX8_CUDA_OK(cudaStreamDestroy(stream));
}

TEST(LinearCuda, TwoThreadsWithAWorkspaceEach) {
  REQUIRE_GPU(caps);
  for (ActivationMode mode : {ActivationMode::kBf16, ActivationMode::kFp8}) {
    Layer layer(caps, {.rows = {512}, .k = 1024, .mode = mode, .bias = true});
    ASSERT_EQ(layer.error(), "");
    std::vector<std::vector<uint8_t>> got[2];
    const auto work = [&](int thread) {
      MX8_CUDA_OK(cudaSetDevice(caps.ordinal));
      cudaStream_t stream;
      MX8_CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      DeviceArray<char> workspace = layer.workspace();
      DeviceArray<uint8_t> y(layer.y_bytes());
      for (int64_t m : {1, 33, 129, 300}) {
        y.fill(0xFF);
        MX8_CUDA_OK(cudaDeviceSynchronize());
        for (int i = 0; i < 20; ++i) layer.apply(m, y.get(), workspace, stream);
        MX8_CUDA_OK(cudaStreamSynchronize(stream));
        got[thread].push_back(y.download());
      }
      MX8_CUDA_OK(cudaStreamDestroy(stream));
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    int i = 0;
    for (int64_t m : {1, 33, 129, 300}) {
      for (const auto& results : got) {
        EXPECT_EQ(layer.judge(m, results[i]), "") << m;
      }
      ++i;
    }
  }
}

// A negative control of the judge: another layer's result is not taken for this one's.
TEST(LinearCuda, TheJudgeSeesWrongResults) {
  REQUIRE_GPU(caps);
  const Case good{.rows = {128}, .k = 256};
  Case moved = good;
  moved.shift_scales = 1;
  Layer a(caps, good), b(caps, moved);
  DeviceArray<char> workspace = b.workspace();
  DeviceArray<uint8_t> y(b.y_bytes());
  b.reset(y.get());
  b.apply(7, y.get(), workspace, nullptr);
  MX8_CUDA_OK(cudaDeviceSynchronize());
  const auto result = y.download();
  EXPECT_EQ(b.judge(7, result), "");
  EXPECT_NE(a.judge(7, result), "");
  EXPECT_NE(b.judge(8, result), "") << "a row that was not written";
  EXPECT_NE(b.judge(6, result), "") << "a row too many";
}

TEST(LinearCuda, PlainWeightsAndOtherGpusAreRefused) {
  REQUIRE_GPU(caps);
  const std::vector<uint16_t> zeros(64);
  const QuantView plain{zeros.data(), nullptr, 1, 64, QuantScheme::plain(DType::kBF16)};
  LinearSpec spec;
  spec.name = "lm_head";
  spec.activation = DType::kBF16;
  EXPECT_NE(Linear::load(caps, spec, {&plain, 1}).error().message.find("runs on CPUs only"),
            std::string::npos);
  EXPECT_NE(detect_cuda_caps(1000).error().message.find("there is no GPU 1000"), std::string::npos);
  EXPECT_NE(DeviceBuffer::allocate(0, size_t{1} << 50).error().message.find("free"),
            std::string::npos);
}

}  // namespace
}  // namespace mx8
