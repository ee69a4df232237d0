#include "kernels/cpu/kernel_bench.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iomanip>
#include <random>
#include <sstream>

#include "base/clock.h"
#include "kernels/cpu/cpu_probe.h"
#include "kernels/cpu/linear.h"
#include "mx/bf16.h"
#include "pack/cpu_panel.h"
#include "pack/row_list.h"

namespace mx8::cpu {

namespace {

// Keeps the compiler from dropping work whose result nobody reads.
volatile uint64_t g_sink;

std::vector<float> gaussian_pool() {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> pool(size_t{1} << 18);
  for (float& v : pool) v = normal(rng);
  return pool;
}

// A weight of Gaussian numbers drawn from the pool, quantised as a checkpoint would be.
PackedWeight make_weight(const KernelBenchCase& c, CpuIsa isa, const std::vector<float>& pool) {
  const bool mx = c.code_type == DType::kF8E4M3;
  const QuantScheme scheme = mx ? QuantScheme::mxfp8() : QuantScheme::plain(c.code_type);
  const int64_t element = dtype_size(c.code_type);
  std::vector<std::byte> codes(static_cast<size_t>(c.n * c.k * element));
  std::vector<uint8_t> scales(static_cast<size_t>(mx ? c.n * c.k / kMxBlock : 0));
  std::vector<float> row(static_cast<size_t>(c.k));
  std::mt19937 rng(2);
  for (int64_t n = 0; n < c.n; ++n) {
    for (int64_t k = 0; k < c.k; k += kMxBlock) {
      const size_t from = rng() % (pool.size() - kMxBlock);
      const auto count = static_cast<size_t>(std::min<int64_t>(kMxBlock, c.k - k));
      std::copy_n(pool.begin() + static_cast<int64_t>(from), count, row.begin() + k);
    }
    std::byte* to = codes.data() + n * c.k * element;
    if (mx) {
      const MxMatrix q = mx_quantize(row.data(), 1, c.k, c.k, ScaleRule::kRceil);
      std::memcpy(to, q.codes.data(), q.codes.size());
      std::memcpy(&scales[static_cast<size_t>(n * c.k / kMxBlock)], q.scales.data(),
                  q.scales.size());
    } else if (c.code_type == DType::kF32) {
      std::memcpy(to, row.data(), row.size() * sizeof(float));
    } else {
      for (int64_t k = 0; k < c.k; ++k) {
        const uint16_t bits =
            c.code_type == DType::kBF16 ? f32_to_bf16(row[k]) : f32_to_f16(row[k]);
        std::memcpy(to + 2 * k, &bits, 2);
      }
    }
  }
  const QuantView view{codes.data(), scales.data(), c.n, c.k, scheme};
  const std::vector<PackRow> rows = list_rows({&view, 1}, RowOrder::kPlain);
  if (mx && isa >= CpuIsa::kAvx512) {
    return {LayoutId::kCpuPanel16, RowOrder::kPlain, scheme, c.n, c.k, CpuPanel16::pack(rows, c.k)};
  }
  if (mx && isa >= CpuIsa::kAvx2) {
    return {LayoutId::kCpuPanel8, RowOrder::kPlain, scheme, c.n, c.k, CpuPanel8::pack(rows, c.k)};
  }
  return {
      LayoutId::kRowMajor, RowOrder::kPlain, scheme, c.n, c.k, pack_row_major(rows, c.k, scheme)};
}

PackedWeight copy_of(const PackedWeight& w) {
  Buffer bytes(w.size());
  std::memcpy(bytes.data(), w.data(), w.size());
  return {w.layout(), w.order(), w.scheme(), w.n(), w.k(), std::move(bytes)};
}

// One thread is timed by its own processor time, which other processes don't lengthen; several by
// the clock on the wall.
double now_of(const Exec& exec) {
  if (exec.pool->size() > 1) return now_seconds();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// A case with its data, and the times that were measured.
struct Bench {
  KernelBenchCase what;
  std::vector<PackedWeight> copies;
  std::vector<float> x;
  std::vector<float> y;
  std::vector<double> seconds;
  int64_t calls = 0;
};

Bench make_bench(const KernelBenchOptions& options, const KernelBenchCase& c,
                 const std::vector<float>& pool) {
  Bench b;
  b.what = c;
  b.copies.push_back(make_weight(c, options.isa, pool));
  const auto bytes = static_cast<int64_t>(b.copies[0].size());
  while (static_cast<int64_t>(b.copies.size() + 1) * bytes <= options.resident_bytes) {
    b.copies.push_back(copy_of(b.copies[0]));
  }
  b.x.resize(static_cast<size_t>(c.m * c.k));
  for (size_t i = 0; i < b.x.size(); ++i) b.x[i] = pool[i * 7 % pool.size()];
  b.y.resize(static_cast<size_t>(c.m * c.n));
  return b;
}

// One sample: enough calls for about two milliseconds.
void sample(const Exec& exec, Bench& b) {
  const KernelBenchCase& c = b.what;
  const LinearInput in{b.x.data(), c.k, nullptr, c.m, c.k};
  LinearOutput out{};
  out.y = b.y.data();
  out.ldy = c.n;
  out.n = c.n;
  const auto call = [&] {
    const LinearJob job{&b.copies[static_cast<size_t>(b.calls++) % b.copies.size()], 0, c.m};
    run_linear(exec, {&job, 1}, in, out);
  };
  constexpr double kSampleSeconds = 2e-3;
  const double last = b.seconds.empty() ? 1 : b.seconds.back();
  const int repeats = std::clamp(static_cast<int>(kSampleSeconds / last), 1, 200);
  const double start = now_of(exec);
  for (int i = 0; i < repeats; ++i) call();
  b.seconds.push_back((now_of(exec) - start) / repeats);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Four streams a thread, because one alone stays below what the memory can do. Fetching ahead helps
// on some machines and hurts on others, so both ways are measured and the better one counts.
template <bool kAhead>
uint64_t read_streams(const uint64_t* p, int64_t words) {
  constexpr int64_t kDistance = 4096 / 8;
  const int64_t quarter = words / 4;
  uint64_t s[4] = {};
  for (int64_t i = 0; i + 8 <= quarter; i += 8) {
    for (int64_t j = 0; j < 4; ++j) {
      const uint64_t* line = p + j * quarter + i;
      if (kAhead) __builtin_prefetch(line + kDistance);
      for (int64_t l = 0; l < 8; ++l) s[j] ^= line[l];
    }
  }
  return s[0] ^ s[1] ^ s[2] ^ s[3];
}

template <bool kAhead>
double time_read(const Exec& exec, const Buffer& memory) {
  // The size of a stream is no power of two, lest all four fall into the same sets of the caches.
  constexpr int64_t kChunkWords = 4 * (int64_t{1} << 20) / 8 - 4 * 264;
  const auto words = static_cast<int64_t>(memory.size()) / 8;
  const auto* p = memory.as<uint64_t>();
  const double start = now_of(exec);
  exec.pool->for_range(words, kChunkWords, [&](int64_t begin, int64_t end, int) {
    g_sink = g_sink ^ read_streams<kAhead>(p + begin, end - begin);
  });
  return now_of(exec) - start;
}

double time_fma(const Exec& exec, int64_t rounds) {
  const double start = now_of(exec);
  exec.pool->for_each(exec.pool->size(), [&](int64_t, int) {
    g_sink = g_sink ^ static_cast<uint64_t>(avx2::probe_fma(rounds) != 0);
  });
  return now_of(exec) - start;
}

KernelBenchRow make_row(const Bench& b, const KernelBenchReport& report, const Exec& exec) {
  KernelBenchRow row;
  row.what = b.what;
  row.kernel = linear_kernel_name(exec, b.copies[0], b.what.m);
  row.median_s = median(b.seconds);
  row.best_s = *std::min_element(b.seconds.begin(), b.seconds.end());
  row.worst_s = *std::max_element(b.seconds.begin(), b.seconds.end());
  row.gbytes_per_s = static_cast<double>(b.copies[0].size()) / row.median_s / 1e9;
  row.gflops = 2.0 * static_cast<double>(b.what.m * b.what.n * b.what.k) / row.median_s / 1e9;
  row.share_of_read = row.gbytes_per_s / report.read_gbytes_per_s;
  if (report.fma_gflops > 0) row.share_of_fma = row.gflops / report.fma_gflops;
  return row;
}

}  // namespace

std::vector<KernelBenchCase> default_kernel_bench_cases() {
  std::vector<KernelBenchCase> cases{{DType::kF8E4M3, 14336, 4096, 1}};
  for (const int64_t m : {1, 2, 3, 4, 6, 8, 12, 24, 48, 96, 256}) {
    cases.push_back({DType::kF8E4M3, 4096, 4096, m});
  }
  // SmolLM2-135M: attention output, qkv, gate and up, down, head.
  for (const int64_t m : {1, 128}) {
    cases.push_back({DType::kF8E4M3, 576, 576, m});
    cases.push_back({DType::kF8E4M3, 960, 576, m});
    cases.push_back({DType::kF8E4M3, 3072, 576, m});
    cases.push_back({DType::kF8E4M3, 576, 1536, m});
  }
  cases.push_back({DType::kF8E4M3, 49152, 576, 1});
  for (const int64_t m : {1, 128}) cases.push_back({DType::kBF16, 49152, 576, m});
  return cases;
}

KernelBenchReport bench_kernels(const KernelBenchOptions& options) {
  ThreadPool pool(options.threads);
  Arena arena;
  const Exec exec{DeviceKind::kCpu, options.isa, &pool, &arena, nullptr};
  const std::vector<float> numbers = gaussian_pool();
  KernelBenchReport report;
  report.machine = cpu_model_name();
  report.isa = cpu_isa_name(options.isa);
  report.threads = pool.size();

  Buffer memory(static_cast<size_t>(options.resident_bytes));
  std::memset(memory.data(), 1, memory.size());
  const bool has_fma = detect_cpu_features().has(CpuIsa::kAvx2);
  constexpr int64_t kFmaRounds = 200000;
  std::vector<double> reads, reads_ahead, fmas;
  const auto cases = options.cases.empty() ? default_kernel_bench_cases() : options.cases;
  std::vector<Bench> done;
  for (const KernelBenchCase& c : cases) {
    done.push_back(make_bench(options, c, numbers));
    Bench& b = done.back();
    sample(exec, b);  // warm: page tables, workspace, clock
    b.seconds.resize(1);
    for (int rep = 0; rep < options.reps; ++rep) {
      sample(exec, b);
      if (rep % 4 == 0) reads.push_back(time_read<false>(exec, memory));
      if (rep % 4 == 0) reads_ahead.push_back(time_read<true>(exec, memory));
      if (rep % 4 == 0 && has_fma) fmas.push_back(time_fma(exec, kFmaRounds));
    }
    b.seconds.erase(b.seconds.begin());
    // The name needs one copy; the others would not fit beside the next case's.
    b.copies.resize(1);
  }
  report.read_gbytes_per_s =
      static_cast<double>(memory.size()) / std::min(median(reads), median(reads_ahead)) / 1e9;
  if (has_fma) {
    report.fma_gflops =
        static_cast<double>(kFmaRounds * avx2::kProbeFlops * pool.size()) / median(fmas) / 1e9;
  }
  for (const Bench& b : done) report.rows.push_back(make_row(b, report, exec));
  return report;
}

std::string to_table(const KernelBenchReport& report) {
  std::ostringstream out;
  out << std::fixed << report.machine << ", " << report.isa << ", " << report.threads
      << " threads: reads " << std::setprecision(1) << report.read_gbytes_per_s << " GB/s, "
      << report.fma_gflops << " GFLOP/s of FMA\n"
      << "kernel                  weight       N      K     M   median us    best   worst   GB/s  "
         "of read  GFLOP/s  of FMA\n";
  for (const KernelBenchRow& r : report.rows) {
    out << std::left << std::setw(23) << r.kernel << ' ' << std::setw(8)
        << dtype_name(r.what.code_type) << std::right << std::setw(6) << r.what.n << std::setw(7)
        << r.what.k << std::setw(6) << r.what.m << std::setprecision(1) << std::setw(12)
        << r.median_s * 1e6 << std::setw(8) << r.best_s * 1e6 << std::setw(8) << r.worst_s * 1e6
        << std::setw(7) << r.gbytes_per_s << std::setprecision(2) << std::setw(9) << r.share_of_read
        << std::setprecision(1) << std::setw(9) << r.gflops << std::setprecision(2) << std::setw(8)
        << r.share_of_fma << '\n';
  }
  return out.str();
}

std::string to_json(const KernelBenchReport& report) {
  std::ostringstream out;
  // The machine's name is the only text from outside.
  std::string machine;
  for (const char c : report.machine) {
    if (c == '"' || c == '\\') machine += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) machine += c;
  }
  out << "{\"machine\":\"" << machine << "\",\"isa\":\"" << report.isa
      << "\",\"threads\":" << report.threads
      << ",\"read_gbytes_per_s\":" << report.read_gbytes_per_s
      << ",\"fma_gflops\":" << report.fma_gflops << ",\"kernels\":[";
  const char* separator = "";
  for (const KernelBenchRow& r : report.rows) {
    out << separator << "{\"kernel\":\"" << r.kernel << "\",\"weight\":\""
        << dtype_name(r.what.code_type) << "\",\"n\":" << r.what.n << ",\"k\":" << r.what.k
        << ",\"m\":" << r.what.m << ",\"median_s\":" << r.median_s << ",\"best_s\":" << r.best_s
        << ",\"worst_s\":" << r.worst_s << ",\"gbytes_per_s\":" << r.gbytes_per_s
        << ",\"gflops\":" << r.gflops << ",\"share_of_read\":" << r.share_of_read
        << ",\"share_of_fma\":" << r.share_of_fma << '}';
    separator = ",";
  }
  out << "]}";
  return out.str();
}

}  // namespace mx8::cpu
