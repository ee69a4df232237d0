#include "kernels/cpu/linear.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/avx2_linear.h"
#include "kernels/cpu/avx512_linear.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/cpu/linear_scalar.h"
#include "kernels/reference/linear.h"
#include "pack/cpu_panel.h"

namespace mx8::cpu {

namespace {

// Rows of a chunk: a prepared slice of 240 x 576 FP32 is half a MiB and stays in L2.
constexpr int64_t kMaxChunkRows = 240;
// Claiming a chunk costs about 0.1 us, and the end of a region up to one chunk: no chunk below 5
// us, and none above 20 us unless that takes fewer columns than bring all reuse of the inputs.
constexpr double kMinChunkUs = 5;
constexpr double kMaxChunkUs = 20;
constexpr int64_t kReuseCols = 128;
constexpr int64_t kChunksPerThread = 8;

WeightCode code_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
      return WeightCode::kMxE4m3;
    case DType::kBF16:
      return WeightCode::kBf16;
    case DType::kF16:
      return WeightCode::kF16;
    case DType::kF32:
      return WeightCode::kF32;
    default:
      break;
  }
  MX8_CHECK(false, "no CPU kernel for weights of this type", dtype_name(dtype));
  return WeightCode::kF32;
}

const LinearKernels& kernels_for(const Exec& exec, const PackedWeight& weight, int64_t m) {
  if (weight.layout() == LayoutId::kCpuPanel8) {
    MX8_CHECK(exec.isa >= CpuIsa::kAvx2, cpu_isa_name(exec.isa));
    return avx2::mxfp8_linear(m);
  }
  if (weight.layout() == LayoutId::kCpuPanel16) {
    MX8_CHECK(exec.isa >= CpuIsa::kAvx512, cpu_isa_name(exec.isa));
    return avx512::mxfp8_linear(m);
  }
  MX8_CHECK(weight.layout() == LayoutId::kRowMajor, layout_name(weight.layout()));
  return weight.scheme().is_plain() && exec.isa >= CpuIsa::kAvx2 ? avx2::plain_linear(m)
                                                                 : scalar_linear_kernels();
}

int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return div_up(a, b) * b; }

// One job with its kernels, its prepared inputs and its grid of chunks.
struct Task {
  const LinearKernels* kernels;
  WeightRef weight;
  LinearInput in;
  LinearOutput out;
  float* prepared;
  int64_t strips;
  int64_t chunk_strips;
  int64_t chunk_n;
  int64_t chunks_m;
  int64_t chunks_n;
  int64_t first_chunk;  // in the region
  int64_t first_slice;  // in the preparing region

  int64_t chunks() const { return chunks_m * chunks_n; }
};

double bytes_of(WeightCode code) {
  return code == WeightCode::kMxE4m3 ? 1 : code == WeightCode::kF32 ? 4 : 2;
}

// The size of chunks: tall enough to reuse decoded weights, and about `wanted` of them.
void cut(Task& t, int64_t wanted) {
  const LinearKernels& k = *t.kernels;
  t.strips = div_up(t.in.m, k.strip_rows);
  // Of equal height.
  t.chunks_m = div_up(t.in.m, kMaxChunkRows);
  t.chunk_strips = div_up(t.strips, t.chunks_m);
  t.chunks_m = div_up(t.strips, t.chunk_strips);
  const auto depth = static_cast<double>(t.weight.k);
  const auto rows = static_cast<double>(std::min(t.in.m, t.chunk_strips * k.strip_rows));
  const double column_us =
      std::max(depth * rows / (k.gmacs * 1e3), depth * bytes_of(t.weight.code) / (k.gbytes * 1e3));
  const int64_t all = round_up(t.weight.n, k.n_step);
  const int64_t least = round_up(static_cast<int64_t>(kMinChunkUs / column_us) + 1, k.n_step);
  const int64_t most =
      round_up(std::max(kReuseCols, static_cast<int64_t>(kMaxChunkUs / column_us)), k.n_step);
  const int64_t fair = t.weight.n * t.chunks_m / wanted / k.n_step * k.n_step;
  t.chunk_n = std::min(all, std::max(least, std::min(fair, most)));
  t.chunks_n = div_up(t.weight.n, t.chunk_n);
}

int64_t chunk_rows(const Task& t) {
  return std::min(t.in.m, t.chunk_strips * t.kernels->strip_rows);
}

void run_chunk(const Task& t, int64_t chunk, float* scratch) {
  const LinearKernels& k = *t.kernels;
  LinearTile tile;
  // Neighbouring chunks share their weights rather than their inputs.
  tile.strip0 = chunk % t.chunks_m * t.chunk_strips;
  tile.strip1 = std::min(t.strips, tile.strip0 + t.chunk_strips);
  tile.m0 = k.first_row(t.in.m, tile.strip0);
  tile.m1 = k.first_row(t.in.m, tile.strip1);
  tile.n0 = chunk / t.chunks_m * t.chunk_n;
  tile.n1 = std::min(t.weight.n, tile.n0 + t.chunk_n);
  tile.sums = scratch;
  tile.ld = round_up(tile.n1 - tile.n0, k.n_step);
  k.sums(t.weight, t.in, t.prepared, tile, scratch + chunk_rows(t) * t.chunk_n);
  k.epilogue(tile, t.out);
}

// The last task whose `first` is not above `index`.
template <int64_t Task::*kFirst>
const Task& task_of(std::span<const Task> tasks, int64_t index) {
  const auto it = std::upper_bound(tasks.begin(), tasks.end(), index,
                                   [](int64_t i, const Task& t) { return i < t.*kFirst; });
  return *(it - 1);
}

Task make_task(const Exec& exec, const LinearJob& job, const LinearInput& in,
               const LinearOutput& out) {
  Task t;
  const PackedWeight& w = *job.weight;
  t.kernels = &kernels_for(exec, w, job.rows);
  t.weight = {w.data(), w.n(), w.k(), code_of(w.scheme().code_type)};
  t.in = in;
  t.in.m = job.rows;
  if (in.rows == nullptr) {
    t.in.x += job.first * in.ld;
  } else {
    t.in.rows += job.first;
  }
  t.out = out;
  t.out.y += job.first * out.ldy;
  if (out.residual != nullptr) t.out.residual += job.first * out.ldr;
  t.prepared = exec.workspace->alloc<float>(t.kernels->prepared_floats(job.rows, w.k()));
  return t;
}

void prepare_inputs(const Exec& exec, std::span<Task> tasks) {
  // Below this one thread is done before a region would have started.
  constexpr int64_t kSerialFloats = 8192;
  // Strips of one slice when it is worth a region.
  constexpr int64_t kSliceStrips = 4;
  int64_t slices = 0, floats = 0;
  for (Task& t : tasks) {
    t.first_slice = slices;
    if (t.kernels->prepared_floats(t.in.m, t.in.k) == 0) continue;
    slices += div_up(t.strips, kSliceStrips);
    floats += t.in.m * t.in.k;
  }
  const auto run_slice = [&](int64_t slice, int) {
    const Task& t = task_of<&Task::first_slice>(tasks, slice);
    const int64_t strip = (slice - t.first_slice) * kSliceStrips;
    t.kernels->prepare(t.in, strip, std::min(t.strips, strip + kSliceStrips), t.prepared);
  };
  if (floats <= kSerialFloats) {
    for (int64_t s = 0; s < slices; ++s) run_slice(s, 0);
  } else {
    exec.pool->for_each(slices, run_slice);
  }
}

}  // namespace

void run_linear(const Exec& exec, std::span<const LinearJob> jobs, const LinearInput& in,
                const LinearOutput& out) {
  MX8_CHECK(exec.pool != nullptr && exec.workspace != nullptr,
            "a CPU op needs a pool and an arena");
  const Arena::Scope scope(*exec.workspace);
  Task* storage = exec.workspace->alloc<Task>(static_cast<int64_t>(jobs.size()));
  int64_t count = 0;
  for (const LinearJob& job : jobs) {
    if (job.rows > 0) storage[count++] = make_task(exec, job, in, out);
  }
  if (count == 0) return;
  const std::span<Task> tasks(storage, static_cast<size_t>(count));
  const int64_t wanted = div_up(exec.pool->size() * kChunksPerThread, count);
  int64_t chunks = 0, scratch_floats = 0;
  for (Task& t : tasks) {
    cut(t, wanted);
    t.first_chunk = chunks;
    chunks += t.chunks();
    scratch_floats = std::max(
        scratch_floats, chunk_rows(t) * t.chunk_n + t.kernels->scratch_floats(t.in.m, t.in.k));
  }
  // A cache line apart, so that threads don't share one.
  scratch_floats = round_up(scratch_floats, 16) + 16;
  float* scratch = exec.workspace->alloc<float>(scratch_floats * exec.pool->size());
  prepare_inputs(exec, tasks);
  exec.pool->for_each(chunks, [&](int64_t chunk, int thread) {
    const Task& t = task_of<&Task::first_chunk>(tasks, chunk);
    run_chunk(t, chunk - t.first_chunk, scratch + thread * scratch_floats);
  });
}

const char* linear_kernel_name(const Exec& exec, const PackedWeight& weight, int64_t m) {
  return kernels_for(exec, weight, m).name;
}

void decode_row(const PackedWeight& weight, int64_t n, float* out) {
  if (weight.layout() == LayoutId::kCpuPanel8) {
    CpuPanel8::decode_row(weight.as<CpuPanel8>(), n, out);
  } else if (weight.layout() == LayoutId::kCpuPanel16) {
    CpuPanel16::decode_row(weight.as<CpuPanel16>(), n, out);
  } else if (weight.scheme().is_mxfp8()) {
    reference::decode_row_mxfp8(weight.as<RowMajor>(), n, out);
  } else {
    reference::decode_row_plain(weight.as<RowMajor>(), n, out);
  }
}

}  // namespace mx8::cpu
