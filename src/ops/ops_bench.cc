// mx8_ops_bench [threads]: attention against the floors that the machine sets, and the small ops of
// a decode step. Decode: gigabytes of keys and values a second beside a plain read of the same
// memory. Prefill: useful GFLOP/s (what the causal mask leaves) beside a loop of FMAs.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "runtime/cpu_info.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mx8 {
namespace {

// With one thread, the time that the thread ran: what else runs on the machine disturbs it less.
bool g_cpu_time = false;

double seconds() {
  if (!g_cpu_time) return now_seconds();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// The best of some repetitions of body, in seconds per call.
template <class Body>
double best_seconds(Body&& body, int calls) {
  double best = 1e9;
  for (int repetition = 0; repetition < 7; ++repetition) {
    const double start = seconds();
    for (int i = 0; i < calls; ++i) body(i);
    best = std::min(best, (seconds() - start) / calls);
  }
  return best;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float fma_loop(int64_t rounds) {
  __m256 acc[10];
  for (auto& a : acc) a = _mm256_set1_ps(1.0f);
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 10
    for (auto& a : acc) a = _mm256_fmadd_ps(a, x, y);
  }
  for (int i = 1; i < 10; ++i) acc[0] = _mm256_add_ps(acc[0], acc[i]);
  return _mm256_cvtss_f32(acc[0]);
}

__attribute__((target("avx2"))) int64_t read_loop(const std::byte* data, size_t size) {
  __m256i sum[4] = {};
  const auto* v = reinterpret_cast<const __m256i*>(data);
  for (size_t i = 0; i + 4 <= size / 32; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      sum[j] = _mm256_add_epi64(sum[j], _mm256_loadu_si256(v + i + j));
    }
  }
  sum[0] = _mm256_add_epi64(_mm256_add_epi64(sum[0], sum[1]), _mm256_add_epi64(sum[2], sum[3]));
  return _mm256_extract_epi64(sum[0], 0);
}

double fma_gflops(const Exec& exec) {
  constexpr int64_t kRounds = 100'000;
  std::vector<float> sink(64);
  const int threads = exec.pool->size();
  const double s = best_seconds(
      [&](int) {
        exec.pool->for_each(
            threads, [&](int64_t c, int) { sink[static_cast<size_t>(c)] = fma_loop(kRounds); });
      },
      3);
  return static_cast<double>(threads * kRounds * 160) / s * 1e-9;
}

double read_gbytes(const Exec& exec, const Buffer& memory) {
  std::vector<int64_t> sink(64);
  const size_t part = size_t{1} << 18;
  const auto parts = static_cast<int64_t>(memory.size() / part);
  const double s = best_seconds(
      [&](int) {
        exec.pool->for_each(parts, [&](int64_t c, int thread) {
          sink[static_cast<size_t>(thread)] +=
              read_loop(memory.data() + static_cast<size_t>(c) * part, part);
        });
      },
      2);
  return static_cast<double>(memory.size()) / s * 1e-9;
}
#else
double fma_gflops(const Exec&) { return NAN; }
double read_gbytes(const Exec&, const Buffer&) { return NAN; }
#endif

struct Shape {
  const char* name;
  int heads;
  int kv_heads;
  int head_dim;
  int layers;
};
constexpr Shape kShapes[] = {{"SmolLM2-135M", 9, 3, 64, 30}, {"Llama-3-8B", 32, 8, 128, 32}};
constexpr int kPage = 16;

// Sequences of equal length with all their pages, one cache for each of `layers` layers.
class Scene {
 public:
  Scene(const Exec& exec, const Shape& shape, int sequences, int context, int rows, int layers)
      : exec_(exec),
        shape_(shape),
        rows_(int64_t{sequences} * rows),
        layers_(layers),
        attention_({shape.heads, shape.kv_heads, shape.head_dim,
                    1 / std::sqrt(static_cast<float>(shape.head_dim)), 0}) {
    const int pages = (context + kPage - 1) / kPage;
    for (int s = 0; s < sequences; ++s) {
      q_start_.push_back(s * rows);
      context_.push_back(context);
      for (int p = 0; p < pages; ++p) pages_.push_back(s * pages + p);
      for (int r = context - rows; r < context; ++r) slots_.push_back(s * pages * kPage + r);
    }
    q_start_.push_back(sequences * rows);
    batch_ = {q_start_, context_, pages_, pages, slots_};
    layer_bytes_ = static_cast<size_t>(sequences) * static_cast<size_t>(pages) * kPage *
                   static_cast<size_t>(shape.kv_heads) * static_cast<size_t>(shape.head_dim) * 2;
    cache_ = Buffer(layer_bytes_ * 2 * static_cast<size_t>(layers));
    std::fill_n(cache_.as<uint16_t>(), cache_.size() / 2, uint16_t{0x3C00});
    const size_t q_size =
        static_cast<size_t>(rows_) * static_cast<size_t>(shape.heads * shape.head_dim);
    q_.assign(q_size, 0.01f);
    out_ = q_;
    k_.assign(q_size, 0.01f);
    attention_.plan(batch_, exec.pool->size());
  }

  void run(int layer) {
    std::byte* keys = cache_.data() + layer_bytes_ * 2 * static_cast<size_t>(layer % layers_);
    const int q_cols = shape_.heads * shape_.head_dim;
    const int kv_cols = shape_.kv_heads * shape_.head_dim;
    const Mat kv = Mat::f32(k_.data(), rows_, kv_cols);
    attention_.run(
        exec_, batch_, Mat::f32(q_.data(), rows_, q_cols), kv, kv,
        {keys, keys + layer_bytes_, DType::kBF16, kPage, shape_.kv_heads, shape_.head_dim},
        Mat::f32(out_.data(), rows_, q_cols));
  }

  const Buffer& cache() const { return cache_; }
  double bytes() const { return 2.0 * static_cast<double>(layer_bytes_); }

 private:
  const Exec& exec_;
  Shape shape_;
  int64_t rows_;
  int layers_;
  PagedAttention attention_;
  std::vector<int32_t> q_start_, context_, pages_, slots_;
  AttentionBatch batch_;
  size_t layer_bytes_;
  Buffer cache_;
  std::vector<float> q_, k_, out_;
};

void bench_decode(const Exec& exec, const Shape& shape, int sequences, int context) {
  Scene scene(exec, shape, sequences, context, 1, shape.layers);
  const double s = best_seconds([&](int i) { scene.run(i); }, shape.layers);
  const double read = read_gbytes(exec, scene.cache());
  std::printf("decode  %-13s %2d x %6d tokens %9.2f us  %6.1f GB/s  %4.2f of a read (%.1f)\n",
              shape.name, sequences, context, s * 1e6, scene.bytes() / s * 1e-9,
              scene.bytes() / s * 1e-9 / read, read);
}

void bench_prefill(const Exec& exec, const Shape& shape, int rows, int context) {
  Scene scene(exec, shape, 1, context, rows, 2);
  const double s = best_seconds([&](int i) { scene.run(i); }, 2);
  const double keys = static_cast<double>(rows) * (context - rows + (rows + 1) / 2.0);
  const double gflops = keys * 4 * shape.heads * shape.head_dim / s * 1e-9;
  const double peak = fma_gflops(exec);
  std::printf("prefill %-13s %5d of %5d tokens %9.1f us  %6.1f GFLOP/s  %4.2f of FMA (%.0f)\n",
              shape.name, rows, context, s * 1e6, gflops, gflops / peak, peak);
}

void bench_small(const Exec& exec) {
  constexpr int kCols = 576;
  std::vector<float> x(kCols, 0.5f), y(kCols), weight(kCols, 1.0f);
  const std::vector<float> inv_freq(32, 0.1f);
  const RopeTable table = make_rope_table(inv_freq, 16, 1.0f);
  const std::vector<int32_t> position = {5};
  const Mat in = Mat::f32(x.data(), 1, kCols), out = Mat::f32(y.data(), 1, kCols);
  const double norm = best_seconds([&](int) { rms_norm(exec, in, weight, 1e-5f, out); }, 1000);
  const double rotate = best_seconds([&](int) { rope(exec, table, position, 64, out); }, 1000);
  std::printf("one row of %d: rms_norm %.3f us, rope %.3f us\n", kCols, norm * 1e6, rotate * 1e6);
}

}  // namespace
}  // namespace mx8

int main(int argc, char** argv) {
  using namespace mx8;
  ThreadPool pool(argc > 1 ? std::atoi(argv[1]) : 0);
  g_cpu_time = pool.size() == 1;
  Arena arena;
  Exec exec;
  exec.isa = detect_cpu_features().has(CpuIsa::kAvx2) ? CpuIsa::kAvx2 : CpuIsa::kScalar;
  exec.pool = &pool;
  exec.workspace = &arena;
  std::printf("%s, %d threads, %s\n", cpu_model_name().c_str(), pool.size(),
              std::string(cpu_isa_name(exec.isa)).c_str());
  bench_small(exec);
  for (const Shape& shape : kShapes) {
    for (const int context : {32, 128, 512, 2048, 8192}) bench_decode(exec, shape, 1, context);
    bench_decode(exec, shape, 8, 512);
    for (const int rows : {64, 256, 1024}) bench_prefill(exec, shape, rows, rows);
    bench_prefill(exec, shape, 256, 2048);
  }
  return 0;
}
