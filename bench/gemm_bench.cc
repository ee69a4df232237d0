// mx8_gemm_bench and `mx8 bench gemm`: the MXFP8 GEMM kernels on this machine's GPU against cuBLAS
// and recorded peers.
//
// Every time is the median of replays of a CUDA graph with one launch per copy of the weights
// (together several times the L2 cache). Candidates are first timed one after another; the fastest
// few are then timed again round-robin with cuBLAS BF16 and cuBLASLt row-scaled FP8, so that all
// see the same clocks; those medians are what is reported. The result of every reported kernel is
// checked against FP64.
//
//   mx8_gemm_bench [--mode bf16,fp8] [--m 1,8,...] [--shapes substring,...] [--custom 5120x256,...]
//                  [--kernels substring,...] [--json FILE] [--csv FILE] [--peers DIR]
//                  [--finalists 3] [--rounds 9] [--layer 1]
//
// --layer 1 times, for each shape and M, residual + RMSNorm + quantise + planned FP8 GEMM against
// residual + RMSNorm + cuBLAS BF16 instead.
#include "gemm_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "gemm_bench_peers.h"
#include "kernels/cuda/cublas_api.h"
#include "kernels/cuda/emulated_gemm.h"
#include "kernels/cuda/gemm_launch.h"
#include "kernels/cuda/pack_mma_fragment.h"
#include "kernels/cuda/quantize_tokens.h"
#include "kernels/cuda/sm90_mxfp8_gemm.h"
#include "kernels/cuda/sm90_mxfp8_stream.h"
#include "kernels/cuda/testing/gemm_problem.h"

namespace mx8::bench {
namespace {

using namespace mx8::cuda;           // NOLINT
using namespace mx8::cuda::testing;  // NOLINT

struct Shape {
  const char* name;
  int n, k;
};
constexpr Shape kShapes[] = {
    {"q30b.qkv", 5120, 2048},  {"q30b.o", 2048, 4096},        {"q32b.qkv", 10240, 5120},
    {"q32b.o", 5120, 8192},    {"q32b.gate_up", 51200, 5120}, {"q32b.down", 5120, 25600},
    {"l8b.qkv", 6144, 4096},   {"l8b.o", 4096, 4096},         {"l8b.gate_up", 28672, 4096},
    {"l8b.down", 4096, 14336}, {"l70b.gate_up", 57344, 8192}, {"l70b.down", 8192, 28672}};

struct Options {
  std::vector<Act> modes = {Act::kBf16, Act::kFp8};
  std::vector<int> ms = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  std::vector<std::string> shapes;
  std::string json, csv, peers = MX8_PEERS_DIR;
  int finalists = 3, rounds = 9;
  bool layer = false;
  std::vector<std::string> kernels;         // only those whose names contain one of these
  std::vector<std::pair<int, int>> custom;  // N x K beside or instead of the table's shapes
};

std::vector<std::string> split_list(const std::string& s) {
  std::vector<std::string> out;
  size_t at = 0;
  while (at <= s.size()) {
    const size_t comma = std::min(s.find(',', at), s.size());
    if (comma > at) out.push_back(s.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

// Whether a name contains one of `parts`; every name if there are none.
bool wanted(std::string_view name, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
           return name.find(part) != std::string_view::npos;
         });
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--mode") {
      o.modes.clear();
      for (const auto& m : split_list(value))
        o.modes.push_back(m == "fp8" ? Act::kFp8 : Act::kBf16);
    } else if (flag == "--m") {
      o.ms.clear();
      for (const auto& m : split_list(value)) o.ms.push_back(std::atoi(m.c_str()));
    } else if (flag == "--shapes") {
      o.shapes = split_list(value);
    } else if (flag == "--json") {
      o.json = value;
    } else if (flag == "--csv") {
      o.csv = value;
    } else if (flag == "--peers") {
      o.peers = value;
    } else if (flag == "--finalists") {
      o.finalists = std::atoi(value.c_str());
    } else if (flag == "--custom") {
      for (const auto& shape : split_list(value))
        o.custom.emplace_back(std::atoi(shape.c_str()),
                              std::atoi(shape.c_str() + shape.find('x') + 1));
    } else if (flag == "--kernels") {
      o.kernels = split_list(value);
    } else if (flag == "--layer") {
      o.layer = value == "1";
    } else if (flag == "--rounds") {
      o.rounds = std::atoi(value.c_str());
    } else {
      std::fprintf(stderr, "unknown option %s\n", flag.c_str());
      std::exit(2);
    }
  }
  return o;
}

double median(std::vector<double> v) {
  if (v.empty()) return NAN;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// A captured graph of one launch per copy.
class Replay {
 public:
  Replay(cudaStream_t stream, int launches, const std::function<bool(int, cudaStream_t)>& launch)
      : stream_(stream), launches_(launches) {
    ok_ = launch(0, stream);
    MX8_CUDA_OK(cudaStreamSynchronize(stream));
    if (!ok_) return;
    cudaGraph_t graph;
    MX8_CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < launches; ++i) ok_ = launch(i, stream) && ok_;
    MX8_CUDA_OK(cudaStreamEndCapture(stream, &graph));
    MX8_CUDA_OK(cudaGraphInstantiate(&exec_, graph, 0));
    MX8_CUDA_OK(cudaGraphDestroy(graph));
    MX8_CUDA_OK(cudaEventCreate(&start_));
    MX8_CUDA_OK(cudaEventCreate(&stop_));
  }
  Replay(const Replay&) = delete;
  ~Replay() {
    if (exec_) cudaGraphExecDestroy(exec_);
    if (start_) cudaEventDestroy(start_);
    if (stop_) cudaEventDestroy(stop_);
  }
  bool ok() const { return ok_; }
  // Microseconds a launch, of one replay.
  double once() {
    MX8_CUDA_OK(cudaEventRecord(start_, stream_));
    MX8_CUDA_OK(cudaGraphLaunch(exec_, stream_));
    MX8_CUDA_OK(cudaEventRecord(stop_, stream_));
    MX8_CUDA_OK(cudaEventSynchronize(stop_));
    float ms = 0;
    MX8_CUDA_OK(cudaEventElapsedTime(&ms, start_, stop_));
    return ms * 1e3 / launches_;
  }
  // Median of up to `most` replays, fewer when they are long.
  double time(int most, double budget_ms) {
    once();
    std::vector<double> v;
    double total = 0;
    for (int r = 0; r < most && (r < 3 || total < budget_ms); ++r) {
      v.push_back(once());
      total += v.back() * launches_ * 1e-3;
    }
    return median(v);
  }

 private:
  cudaStream_t stream_;
  int launches_;
  bool ok_ = false;
  cudaGraphExec_t exec_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

struct Candidate {
  std::string name;
  std::function<bool(int, cudaStream_t, bool pdl)> launch;  // copy index
  double screening = NAN;
};

// All operands of one shape.
struct Problem {
  Shape shape;
  int copies, max_m;
  FragmentShape bf16_shape, folded_shape;
  DeviceArray<uint8_t> codes, scales, x_codes;
  DeviceArray<uint16_t> x, y;
  DeviceArray<float> row_scale, token_scale, plain_row_scale;
  std::vector<DeviceArray<uint8_t>> bf16, folded, plain_fp8;
  std::vector<DeviceArray<uint16_t>> plain;

  Problem(const Shape& s, int most_m, bool fp8) : shape(s), max_m(most_m) {
    const int64_t size = static_cast<int64_t>(s.n) * s.k;
    copies =
        static_cast<int>(std::max<int64_t>(2, std::min<int64_t>(8, (200000000 + size - 1) / size)));
    bf16_shape = {s.n, s.k, FragmentKind::kBf16, RowOrder::kPlain};
    folded_shape = {s.n, s.k, FragmentKind::kFolded, RowOrder::kPlain};
    codes = DeviceArray<uint8_t>(size);
    scales = DeviceArray<uint8_t>(size / 32);
    row_scale = DeviceArray<float>(folded_shape.row_scales());
    for (int i = copies - 1; i >= 0; --i) {
      generate_weights(codes.get(), scales.get(), s.n, s.k, 1000 + i, 0.02f);
      bf16.emplace_back(bf16_shape.bytes());
      MX8_CUDA_OK(pack_mma_fragment_device(bf16_shape, codes.get(), scales.get(), bf16.back().get(),
                                           nullptr, nullptr));
      if (fp8) {
        folded.emplace_back(folded_shape.bytes());
        MX8_CUDA_OK(pack_mma_fragment_device(folded_shape, codes.get(), scales.get(),
                                             folded.back().get(), row_scale.get(), nullptr));
      }
      plain.emplace_back(size);
      MX8_CUDA_OK(decode_mma_fragment_device(bf16_shape, bf16.back().get(), Act::kBf16, 0, s.n,
                                             plain.back().get(), nullptr));
    }
    std::reverse(bf16.begin(), bf16.end());  // copy 0 is the one whose codes stay
    std::reverse(folded.begin(), folded.end());
    for (int i = 0; i < std::min(copies, 8);
         ++i) {  // any bytes of the right statistics do for the peer
      plain_fp8.emplace_back(size);
      MX8_CUDA_OK(cudaMemcpy(plain_fp8.back().get(), codes.get(), size, cudaMemcpyDeviceToDevice));
    }
    x = DeviceArray<uint16_t>(static_cast<size_t>(max_m) * s.k);
    y = DeviceArray<uint16_t>(static_cast<size_t>(max_m) * s.n + 2048);
    x_codes = DeviceArray<uint8_t>(static_cast<size_t>(max_m) * s.k);
    token_scale = DeviceArray<float>(max_m);
    generate_values(x.get(), static_cast<int64_t>(max_m) * s.k, 7, Act::kBf16);
    QuantizeParams q;
    q.x = x.get(), q.ldx = s.k, q.codes = x_codes.get(), q.ld_codes = s.k,
    q.scales = token_scale.get();
    q.m = max_m, q.k = s.k;
    MX8_CUDA_OK(quantize_tokens(q, nullptr, false));
    MX8_CUDA_OK(cudaDeviceSynchronize());
  }

  GemmParams params(Act act, int m, int copy) const {
    GemmParams p;
    p.w = act == Act::kFp8 ? folded[copy].get() : bf16[copy].get();
    p.x = act == Act::kFp8 ? static_cast<const void*>(x_codes.get()) : x.get();
    p.ldx = shape.k;
    p.row_scale = act == Act::kFp8 ? row_scale.get() : nullptr;
    p.token_scale = token_scale.get();
    p.y = y.get();
    p.ldy = shape.n;
    p.m = m, p.n = shape.n, p.k = shape.k;
    p.row_blocks = static_cast<int>(bf16_shape.row_blocks());
    p.k_records = static_cast<int>(bf16_shape.k_records());
    return p;
  }
};

struct Context {
  cudaStream_t stream = nullptr;
  int sms = 0;
  DeviceArray<char> workspace, lt_workspace, emulation;
  CublasLt lt;
};

std::vector<Candidate> stream_candidates(const Problem& pr, Act act, int m, int sms) {
  std::vector<Candidate> out;
  for (int v = 0; v < stream_variant_count(act); ++v) {
    const StreamVariant& info = stream_variant(act, v);
    if (m > info.max_tokens || (info.max_tokens > 8 && m <= info.max_tokens / 2)) continue;
    for (int split = 1; split <= 8; ++split) {
      const int64_t ctas = pr.bf16_shape.row_blocks() * split, warps = ctas * info.warps;
      if (pr.bf16_shape.k_records() < split * info.warps || (split > 1 && warps > sms * 96))
        continue;
      if (warps < sms * 4) continue;
      out.push_back(
          {str_cat("stream/", info.name, "/s", split),
           [&pr, act, m, v, split](int i, cudaStream_t st, bool pdl) {
             MX8_CUDA_OK(launch_sm90_mxfp8_stream(act, pr.params(act, m, i), {v, split}, st, pdl));
             return true;
           }});
    }
  }
  return out;
}

// Tiles worth trying for a number of tokens.
bool tile_fits(const GemmVariant& v, int m) {
  const int tiles = (m + v.tile_tokens - 1) / v.tile_tokens;
  const double waste = static_cast<double>(tiles) * v.tile_tokens / m;
  if (m <= 16) return v.tile_tokens <= 32 && (m > 8 || v.tile_tokens == 16);
  if (m <= 64) return v.tile_tokens >= 32 && v.tile_tokens <= 2 * m && tiles <= 2;
  if (m <= 256) return v.tile_tokens >= 64 && waste <= 1.5 && tiles <= 4;
  if (v.takes(GemmSplit::kCluster) && m > 1024) return false;
  return v.tile_rows * v.tile_tokens >= 128 * 128 &&
         (m <= 2048 || v.tile_rows * v.tile_tokens >= 32768);
}

std::vector<Candidate> gemm_candidates(const Problem& pr, Act act, int m, Context& c) {
  std::vector<Candidate> out;
  for (int v = 0; v < gemm_variant_count(act); ++v) {
    const GemmVariant& info = gemm_variant(act, v);
    if (!tile_fits(info, m)) continue;
    const int tiles = (pr.shape.n + info.tile_rows - 1) / info.tile_rows *
                      ((m + info.tile_tokens - 1) / info.tile_tokens);
    std::vector<GemmConfig> configs;
    const int slots = c.sms * info.ctas_per_sm;
    if (info.takes(GemmSplit::kCluster)) {
      for (int s = 1; s <= 8; ++s)
        if (pr.shape.k / info.tile_k >= 2 * s && (s == 1 || tiles * s <= slots * 5 / 4) &&
            tiles * s >= c.sms / 3)
          configs.push_back({v, GemmSplit::kCluster, s});
    } else {
      if (tiles >= slots / 2) configs.push_back({v, GemmSplit::kWholeTiles, 1});
      const bool cut = info.takes(GemmSplit::kStreamK) && tiles % slots != 0;
      if (cut) configs.push_back({v, GemmSplit::kStreamK, 1});
      if (cut && tiles > slots && m <= 4096) configs.push_back({v, GemmSplit::kStreamKOne, 1});
    }
    for (const GemmConfig& config : configs) {
      static const char* const kNames[] = {"whole", "streamk", "streamk1", "cluster"};
      out.push_back(
          {str_cat("gemm/", info.name, "/", kNames[static_cast<int>(config.split)],
                   config.split == GemmSplit::kCluster ? std::to_string(config.cluster) : ""),
           [&pr, &c, act, m, config](int i, cudaStream_t st, bool pdl) {
             MX8_CUDA_OK(launch_sm90_mxfp8_gemm(act, pr.params(act, m, i), config, c.sms,
                                                c.workspace.get(), st, pdl));
             return true;
           }});
    }
  }
  return out;
}

// Decode to BF16, then cuBLASLt.
Candidate emulation_candidate(const Problem& pr, int m, Context& c) {
  return {"emulation", [&pr, &c, m](int i, cudaStream_t st, bool) {
            return emulated_gemm(c.lt, Act::kBf16, pr.bf16_shape, pr.params(Act::kBf16, m, i),
                                 c.emulation.get(), c.emulation.size(), st)
                .ok();
          }};
}

// Relative Frobenius error of Y against FP64 at sampled places; NaN when any output was not
// written.
double check(const Problem& pr, Act act, int m, const Candidate& candidate, cudaStream_t stream) {
  const size_t used = static_cast<size_t>(m) * pr.shape.n;
  MX8_CUDA_OK(cudaMemset(pr.y.get(), 0xFF, (used + 2048) * 2));
  MX8_CUDA_OK(cudaDeviceSynchronize());
  candidate.launch(0, stream, false);
  MX8_CUDA_OK(cudaStreamSynchronize(stream));
  std::vector<uint16_t> y(used + 2048);
  MX8_CUDA_OK(cudaMemcpy(y.data(), pr.y.get(), y.size() * 2, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < y.size(); ++i)
    if ((y[i] == 0xFFFF) != (i >= used)) return NAN;
  ReferenceInput in;
  in.codes = pr.codes.get(), in.scales = pr.scales.get(), in.act = act, in.ldx = pr.shape.k;
  in.x = pr.x.get(), in.x_codes = pr.x_codes.get(), in.token_scale = pr.token_scale.get();
  in.row_scale = act == Act::kFp8 ? pr.row_scale.get() : nullptr;
  in.rows = pr.shape.n, in.k = pr.shape.k;
  const auto positions = choose_positions(pr.shape.n, m, 2000);
  const auto expected = reference(in, positions);
  double error = 0, norm = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const uint32_t bits =
        static_cast<uint32_t>(y[static_cast<size_t>(positions[i].m) * pr.shape.n + positions[i].n])
        << 16;
    float got;
    std::memcpy(&got, &bits, 4);
    error += (got - expected[i].value) * (got - expected[i].value);
    norm += expected[i].value * expected[i].value;
  }
  return std::sqrt(error / norm);
}

struct Row {
  std::string shape;
  int m;
  Act act;
  std::string kernel;
  double us, us_no_pdl, spread, error, cublas, fp8row, floor;
  std::vector<std::pair<std::string, double>> finalists;  // interleaved medians
};

double peer(const PeerTable& t, const std::string& key) {
  const auto it = t.find(key);
  return it == t.end() ? NAN : it->second;
}

struct Ceilings {
  double copy_tbs, bf16_tflops, fp8_tflops;
};

Ceilings measure_ceilings(Context& c) {
  Ceilings out = {};
  const size_t bytes = size_t{2} << 30;
  {
    DeviceArray<char> a(bytes), b(bytes);
    a.fill(1);
    // Not in a graph: there a copy goes to a copy engine, which is slower than the multiprocessors.
    cudaEvent_t start, stop;
    MX8_CUDA_OK(cudaEventCreate(&start));
    MX8_CUDA_OK(cudaEventCreate(&stop));
    for (int i = 0; i < 6; ++i) {
      if (i == 1) MX8_CUDA_OK(cudaEventRecord(start, c.stream));
      MX8_CUDA_OK(cudaMemcpyAsync(b.get(), a.get(), bytes, cudaMemcpyDeviceToDevice, c.stream));
    }
    MX8_CUDA_OK(cudaEventRecord(stop, c.stream));
    MX8_CUDA_OK(cudaEventSynchronize(stop));
    float ms = 0;
    MX8_CUDA_OK(cudaEventElapsedTime(&ms, start, stop));
    out.copy_tbs = 5 * 2.0 * bytes / ms * 1e-9;
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
  }
  const int n = 8192;
  DeviceArray<uint16_t> a(static_cast<size_t>(n) * n), b(static_cast<size_t>(n) * n),
      d(static_cast<size_t>(n) * n);
  generate_values(a.get(), static_cast<int64_t>(n) * n, 1, Act::kBf16);
  generate_values(b.get(), static_cast<int64_t>(n) * n, 2, Act::kBf16);
  MX8_CUDA_OK(cudaDeviceSynchronize());
  Replay gemm(c.stream, 4, [&](int, cudaStream_t st) {
    LtGemm g;
    g.m = g.n = g.k = n, g.a = a.get(), g.b = b.get(), g.d = d.get(), g.lda = g.ldd = n;
    return c.lt.matmul(g, c.lt_workspace.get(), c.lt_workspace.size(), st).ok();
  });
  out.bf16_tflops = 2.0 * n * n * n / gemm.time(9, 200) * 1e-6;
  return out;
}

void run_cell(const Options& o, Context& c, const Problem& pr, int m, std::vector<Row>& rows,
              FILE* csv) {
  auto cublas = [&](int i, cudaStream_t st) {
    LtGemm g;
    g.m = m, g.n = pr.shape.n, g.k = pr.shape.k;
    g.a = pr.x.get(), g.lda = g.k, g.b = pr.plain[i].get(), g.d = pr.y.get(), g.ldd = g.n;
    return c.lt.matmul(g, c.lt_workspace.get(), c.lt_workspace.size(), st).ok();
  };
  auto fp8row = [&](int i, cudaStream_t st) {
    LtGemm g;
    g.m = m, g.n = pr.shape.n, g.k = pr.shape.k;
    g.a = pr.x_codes.get(), g.lda = g.k, g.b = pr.plain_fp8[i].get(), g.d = pr.y.get(), g.ldd = g.n;
    g.input = CUDA_R_8F_E4M3, g.a_scale = pr.token_scale.get(), g.b_scale = pr.row_scale.get();
    return c.lt.matmul(g, c.lt_workspace.get(), c.lt_workspace.size(), st).ok();
  };
  for (Act act : o.modes) {
    std::vector<Candidate> all = stream_candidates(pr, act, m, c.sms);
    for (auto& g : gemm_candidates(pr, act, m, c)) all.push_back(std::move(g));
    if (act == Act::kBf16 && m >= 256) all.push_back(emulation_candidate(pr, m, c));
    std::erase_if(all, [&](const Candidate& cand) { return !wanted(cand.name, o.kernels); });
    if (all.empty()) continue;
    const double long_cell = 2.0 * m * pr.shape.n * pr.shape.k > 2e12 ? 3 : 10;
    for (Candidate& cand : all) {
      Replay r(c.stream, pr.copies,
               [&](int i, cudaStream_t st) { return cand.launch(i, st, true); });
      cand.screening = r.ok() ? r.time(static_cast<int>(long_cell), 8) : 1e30;
      if (csv)
        std::fprintf(csv, "%s,%d,%s,%s,%.3f\n", pr.shape.name, m, act == Act::kFp8 ? "fp8" : "bf16",
                     cand.name.c_str(), cand.screening);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.screening < b.screening; });
    if (static_cast<int>(all.size()) > o.finalists) all.resize(o.finalists);
    std::vector<std::unique_ptr<Replay>> replays;
    for (Candidate& cand : all)
      replays.push_back(std::make_unique<Replay>(
          c.stream, pr.copies, [&](int i, cudaStream_t st) { return cand.launch(i, st, true); }));
    for (Candidate& cand : all)
      replays.push_back(std::make_unique<Replay>(
          c.stream, pr.copies, [&](int i, cudaStream_t st) { return cand.launch(i, st, false); }));
    replays.push_back(std::make_unique<Replay>(c.stream, pr.copies, cublas));
    if (act == Act::kFp8) replays.push_back(std::make_unique<Replay>(c.stream, pr.copies, fp8row));
    std::vector<std::vector<double>> times(replays.size());
    for (int round = 0; round <= o.rounds; ++round)
      for (size_t i = 0; i < replays.size(); ++i) {
        const size_t j = (i + round) % replays.size();
        if (!replays[j]->ok()) continue;
        const double us = replays[j]->once();
        if (round > 0) times[j].push_back(us);
      }
    const size_t n = all.size();
    size_t best = 0;
    for (size_t i = 1; i < n; ++i)
      if (median(times[i]) < median(times[best])) best = i;
    Row row;
    row.shape = pr.shape.name, row.m = m, row.act = act, row.kernel = all[best].name;
    row.us = median(times[best]);
    for (size_t i = 0; i < n; ++i) row.finalists.emplace_back(all[i].name, median(times[i]));
    row.us_no_pdl = 1e30;
    for (size_t i = n; i < 2 * n; ++i) row.us_no_pdl = std::min(row.us_no_pdl, median(times[i]));
    std::sort(times[best].begin(), times[best].end());
    row.spread =
        (times[best][times[best].size() * 3 / 4] - times[best][times[best].size() / 4]) / row.us;
    row.error = check(pr, act, m, all[best], c.stream);
    row.cublas = median(times[2 * n]);
    row.fp8row = act == Act::kFp8 ? median(times[2 * n + 1]) : NAN;
    const double bytes =
        (act == Act::kFp8 ? 1.0 : 33.0 / 32) * pr.shape.n * pr.shape.k +
        static_cast<double>(m) * (pr.shape.k * (act == Act::kFp8 ? 1 : 2) + 2.0 * pr.shape.n);
    const double flops = 2.0 * m * pr.shape.n * pr.shape.k;
    row.floor = std::max(bytes / 4.3e6, flops / ((act == Act::kFp8 ? 1580 : 790) * 1e6));
    rows.push_back(row);
    std::printf(
        "%-13s M=%-5d %-4s %9.2f us (no pdl %9.2f, iqr %4.1f%%) %-28s err %.1e floor %4.2f cublas "
        "%9.2f fp8row %9.2f\n",
        row.shape.c_str(), m, act == Act::kFp8 ? "fp8" : "bf16", row.us, row.us_no_pdl,
        row.spread * 100, row.kernel.c_str(), row.error, row.floor / row.us, row.cublas,
        row.fp8row);
    std::fflush(stdout);
  }
}

// Residual + RMSNorm + quantise + FP8 GEMM against residual + RMSNorm + cuBLAS BF16, interleaved.
void run_layer(const Options& o, Context& c, const Problem& pr, int m,
               std::map<int, std::vector<double>>& ratios) {
  const int n = pr.shape.n, k = pr.shape.k;
  DeviceArray<uint16_t> residual(static_cast<size_t>(m) * k), weight(k),
      normed(static_cast<size_t>(m) * k);
  generate_values(residual.get(), static_cast<int64_t>(m) * k, 31, Act::kBf16);
  generate_values(weight.get(), k, 32, Act::kBf16);
  MX8_CUDA_OK(cudaDeviceSynchronize());
  auto planned = PlannedGemm::make(pr.folded_shape, {Act::kFp8, n, k, std::max(m, 16), 90, c.sms});
  if (!planned.ok()) {
    std::printf("%s\n", planned.error().message.c_str());
    return;
  }
  DeviceArray<char> workspace(planned->workspace_bytes());
  workspace.fill(0);
  QuantizeParams q;
  q.x = pr.x.get(), q.ldx = k, q.m = m, q.k = k;
  q.residual = residual.get(), q.residual_out = normed.get(), q.ld_residual = k,
  q.norm_weight = weight.get();
  QuantizeParams plain = q;
  q.codes = pr.x_codes.get(), q.ld_codes = k, q.scales = pr.token_scale.get();
  DeviceArray<uint16_t> activations(static_cast<size_t>(m) * k);
  plain.normed_out = activations.get(), plain.ld_normed = k;
  Replay ours(c.stream, pr.copies, [&](int i, cudaStream_t st) {
    GemmParams p = pr.params(Act::kFp8, m, i);
    return quantize_tokens(q, st, true) == cudaSuccess &&
           planned->launch(p, workspace.get(), st, true).ok();
  });
  Replay theirs(c.stream, pr.copies, [&](int i, cudaStream_t st) {
    LtGemm g;
    g.m = m, g.n = n, g.k = k, g.a = activations.get(), g.lda = k, g.b = pr.plain[i].get(),
    g.d = pr.y.get(), g.ldd = n;
    return quantize_tokens(plain, st, true) == cudaSuccess &&
           c.lt.matmul(g, c.lt_workspace.get(), c.lt_workspace.size(), st).ok();
  });
  std::vector<double> a, b;
  for (int round = 0; round <= o.rounds; ++round) {
    const double first = round & 1 ? theirs.once() : ours.once(),
                 second = round & 1 ? ours.once() : theirs.once();
    if (round == 0) continue;
    a.push_back(round & 1 ? second : first);
    b.push_back(round & 1 ? first : second);
  }
  ratios[m].push_back(median(b) / median(a));
  std::printf("layer %-13s M=%-5d %9.2f us against %9.2f us: %.2f\n", pr.shape.name, m, median(a),
              median(b), ratios[m].back());
}

std::string rounded(double v) {
  if (!std::isfinite(v)) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", v);
  return text;
}

// Geomeans over the shapes, one line per (mode, M).
void summary(const Options& o, const std::vector<Row>& rows) {
  PeerTable marlin, humming, record;
  for (auto [table, file] : {std::pair{&marlin, "h200_vllm_marlin_mxfp8.json"},
                             {&humming, "h200_humming_mxfp8.json"},
                             {&record, "h200_cublas.json"}}) {
    auto read = read_peer_table(o.peers + "/" + file);
    if (read.ok())
      *table = *read;
    else
      std::fprintf(stderr, "%s\n", read.error().message.c_str());
  }
  std::printf(
      "\nGeometric means over the shapes: how many times as fast as the peer. 'rescaled': the "
      "record times (cuBLAS\n"
      "BF16 of this run / of the record).\n%-5s %5s | %-18s | %-18s | %-18s | %-6s | %-6s | %-6s | "
      "%-5s | %s\n",
      "mode", "M", "Marlin, recorded", "Marlin, rescaled", "cuBLAS BF16", "fp8row", "Hummng",
      "resc.", "floor", "without PDL: Marlin, cuBLAS");
  for (Act act : o.modes)
    for (int m : o.ms) {
      struct Mean {
        double log = 0, min = 1e30;
        int n = 0;
        void add(double v) {
          if (!std::isfinite(v)) return;
          log += std::log(v), min = std::min(min, v), ++n;
        }
        double get() const { return n ? std::exp(log / n) : NAN; }
      } vs_marlin, vs_marlin_scaled, vs_cublas, vs_fp8, vs_humming, vs_humming_scaled, floor,
          np_marlin, np_cublas;
      for (const Row& r : rows) {
        if (r.act != act || r.m != m) continue;
        const std::string key = str_cat(r.shape, " ", m);
        const double scale = r.cublas / peer(record, key + "/bf16");
        const double mar = peer(marlin, key);
        const double hum =
            std::min(peer(humming, key + "/a16"), peer(humming, key + "/a8_gemm_only"));
        const double hscale = r.cublas / peer(humming, key + "/bf16");
        vs_marlin.add(mar / r.us), vs_marlin_scaled.add(mar * scale / r.us);
        vs_cublas.add(r.cublas / r.us), vs_fp8.add(r.fp8row / r.us);
        vs_humming.add(hum / r.us), vs_humming_scaled.add(hum * hscale / r.us);
        floor.add(r.floor / r.us);
        np_marlin.add(mar / r.us_no_pdl), np_cublas.add(r.cublas / r.us_no_pdl);
      }
      if (vs_cublas.n == 0) continue;
      auto pair = [](const Mean& mean) {
        return mean.n ? str_cat(rounded(mean.get()), " (least ", rounded(mean.min), ")")
                      : std::string("-");
      };
      std::printf("%-5s %5d | %-18s | %-18s | %-18s | %-6s | %-6s | %-6s | %-5s | %s, %s\n",
                  act == Act::kFp8 ? "fp8" : "bf16", m, pair(vs_marlin).c_str(),
                  pair(vs_marlin_scaled).c_str(), pair(vs_cublas).c_str(),
                  rounded(vs_fp8.get()).c_str(), rounded(vs_humming.get()).c_str(),
                  rounded(vs_humming_scaled.get()).c_str(), rounded(floor.get()).c_str(),
                  rounded(np_marlin.get()).c_str(), rounded(np_cublas.get()).c_str());
    }
}

void write_json(const std::string& path, const std::vector<Row>& rows, const Ceilings& ceilings,
                const cudaDeviceProp& prop) {
  FILE* f = std::fopen(path.c_str(), "w");
  if (!f) return;
  std::fprintf(f,
               "{\"device\": \"%s\", \"sms\": %d, \"copy_tb_s\": %.3f, \"bf16_8192_tflops\": %.1f, "
               "\"rows\": [\n",
               prop.name, prop.multiProcessorCount, ceilings.copy_tbs, ceilings.bf16_tflops);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    std::fprintf(f,
                 " {\"shape\": \"%s\", \"m\": %d, \"mode\": \"%s\", \"kernel\": \"%s\", \"us\": "
                 "%.3f, \"us_no_pdl\": %.3f, "
                 "\"iqr\": %.4f, \"error\": %.3e, \"cublas_bf16\": %.3f, \"floor\": %.3f",
                 r.shape.c_str(), r.m, r.act == Act::kFp8 ? "fp8" : "bf16", r.kernel.c_str(), r.us,
                 r.us_no_pdl, r.spread, r.error, r.cublas, r.floor);
    if (r.act == Act::kFp8) std::fprintf(f, ", \"cublas_fp8row\": %.3f", r.fp8row);
    std::fprintf(f, ", \"finalists\": {");
    for (size_t j = 0; j < r.finalists.size(); ++j)
      std::fprintf(f, "%s\"%s\": %.3f", j ? ", " : "", r.finalists[j].first.c_str(),
                   r.finalists[j].second);
    std::fprintf(f, "}");
    std::fprintf(f, "}%s\n", i + 1 < rows.size() ? "," : "");
  }
  std::fprintf(f, "]}\n");
  std::fclose(f);
}

int run(const Options& o) {
  cudaDeviceProp prop;
  MX8_CUDA_OK(cudaGetDeviceProperties(&prop, 0));
  Context c;
  c.sms = prop.multiProcessorCount;
  MX8_CUDA_OK(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));
  c.workspace = DeviceArray<char>(gemm_workspace_bytes(c.sms));
  c.workspace.fill(0);
  c.lt_workspace = DeviceArray<char>(size_t{64} << 20);
  c.emulation = DeviceArray<char>(size_t{1} << 30);
  auto lt = CublasLt::create();
  if (!lt.ok()) {
    std::fprintf(stderr, "%s\n", lt.error().message.c_str());
    return 1;
  }
  c.lt = std::move(lt).value();
  const Ceilings ceilings = measure_ceilings(c);
  std::printf("%s, %d SMs: copy %.2f TB/s, cuBLAS BF16 8192^3 %.0f TFLOP/s\n", prop.name, c.sms,
              ceilings.copy_tbs, ceilings.bf16_tflops);
  FILE* csv = o.csv.empty() ? nullptr : std::fopen(o.csv.c_str(), "w");
  const bool fp8 = std::find(o.modes.begin(), o.modes.end(), Act::kFp8) != o.modes.end();
  std::vector<Row> rows;
  std::map<int, std::vector<double>> layers;
  std::vector<Shape> shapes;
  std::vector<std::string> names;
  names.reserve(o.custom.size());
  for (const auto& [n, k] : o.custom) {
    names.push_back(str_cat(n, "x", k));
    shapes.push_back({names.back().c_str(), n, k});
  }
  if (o.custom.empty()) shapes.assign(std::begin(kShapes), std::end(kShapes));
  for (const Shape& s : shapes) {
    if (!wanted(s.name, o.shapes)) continue;
    const Problem pr(s, *std::max_element(o.ms.begin(), o.ms.end()), fp8);
    for (int m : o.ms) {
      if (o.layer)
        run_layer(o, c, pr, m, layers);
      else
        run_cell(o, c, pr, m, rows, csv);
    }
  }
  if (csv) std::fclose(csv);
  if (o.layer) {
    for (const auto& [m, ratios] : layers) {
      double log = 0;
      for (double r : ratios) log += std::log(r);
      std::printf("layer M=%-5d geomean %.2f, least %.2f\n", m, std::exp(log / ratios.size()),
                  *std::min_element(ratios.begin(), ratios.end()));
    }
    return 0;
  }
  summary(o, rows);
  if (!o.json.empty()) write_json(o.json, rows, ceilings, prop);
  const bool good = std::all_of(rows.begin(), rows.end(), [](const Row& r) {
    return r.error < (r.act == Act::kFp8 ? 6e-3 : 2.5e-3);
  });
  if (!good) std::printf("SOME RESULTS ARE WRONG\n");
  return good ? 0 : 1;
}

}  // namespace

int gemm_bench_main(int argc, char** argv) { return run(parse(argc, argv)); }

}  // namespace mx8::bench
