#include "kernels/cpu/linear.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/cpu/linear_scalar.h"
#include "kernels/reference/linear.h"

namespace mx8::cpu {

namespace {

// Rows of a chunk: a prepared slice of 240 x 576 FP32 is half a MiB and stays in L2.
constexpr int64_t kMaxChunkRows = 240;
// More columns than this bring no further reuse of the inputs, and worse balance.
constexpr int64_t kMaxChunkCols = 128;
// Claiming a chunk costs about 0.1 us; the tail of a region costs at most one chunk.
constexpr double kMinChunkUs = 5;
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
  MX8_CHECK(weight.layout() == LayoutId::kRowMajor, layout_name(weight.layout()));
  return scalar_linear_kernels();
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
  int64_t chunk_m;
  int64_t chunk_n;
  int64_t chunks_n;
  int64_t first_chunk;  // in the region
  int64_t first_slice;  // of the preparing region
};

// The size of chunks: tall enough to reuse decoded weights, and about kChunksPerThread a thread.
void cut(Task& t, int64_t wanted_chunks) {
  const LinearKernels& k = *t.kernels;
  t.chunk_m = std::min(round_up(kMaxChunkRows, k.m_step), round_up(t.in.m, k.m_step));
  const int64_t chunks_m = div_up(t.in.m, t.chunk_m);
  const double column_macs = static_cast<double>(t.weight.k) * static_cast<double>(t.chunk_m);
  const double code_bytes = t.weight.code == WeightCode::kF32      ? 4
                            : t.weight.code == WeightCode::kMxE4m3 ? 1
                                                                   : 2;
  const double column_us =
      std::max(column_macs / (k.gmacs * 1e3),
               static_cast<double>(t.weight.k) * code_bytes / (k.gbytes * 1e3));
  const int64_t least = round_up(static_cast<int64_t>(kMinChunkUs / column_us) + 1, k.n_step);
  const int64_t fair = round_up(div_up(t.weight.n * chunks_m, wanted_chunks), k.n_step);
  t.chunk_n = std::max(std::min(fair, round_up(kMaxChunkCols, k.n_step)), least);
  t.chunk_n = std::min(t.chunk_n, round_up(t.weight.n, k.n_step));
  t.chunks_n = div_up(t.weight.n, t.chunk_n);
}

void run_chunk(const Task& t, int64_t chunk, float* scratch) {
  const LinearKernels& k = *t.kernels;
  LinearTile tile;
  // Neighbouring chunks share their weights rather than their inputs.
  const int64_t chunks_m = div_up(t.in.m, t.chunk_m);
  tile.m0 = chunk % chunks_m * t.chunk_m;
  tile.m1 = std::min(t.in.m, tile.m0 + t.chunk_m);
  tile.n0 = chunk / chunks_m * t.chunk_n;
  tile.n1 = std::min(t.weight.n, tile.n0 + t.chunk_n);
  tile.sums = scratch;
  tile.ld = round_up(tile.n1 - tile.n0, k.n_step);
  k.sums(t.weight, t.in, t.prepared, tile, scratch + (tile.m1 - tile.m0) * tile.ld);
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
  // Rows of one slice when it is worth a region.
  constexpr int64_t kSliceRows = 24;
  int64_t slices = 0, floats = 0;
  for (Task& t : tasks) {
    t.first_slice = slices;
    if (t.kernels->prepared_floats(t.in.m, t.in.k) == 0) continue;
    slices += div_up(t.in.m, round_up(kSliceRows, t.kernels->m_step));
    floats += t.in.m * t.in.k;
  }
  const auto run_slice = [&](int64_t slice, int) {
    const Task& t = task_of<&Task::first_slice>(tasks, slice);
    const int64_t rows = round_up(kSliceRows, t.kernels->m_step);
    const int64_t m0 = (slice - t.first_slice) * rows;
    t.kernels->prepare(t.in, m0, std::min(t.in.m, m0 + rows), t.prepared);
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
    chunks += t.chunks_n * div_up(t.in.m, t.chunk_m);
    const int64_t rows = std::min(t.in.m, t.chunk_m);
    scratch_floats =
        std::max(scratch_floats, rows * t.chunk_n + t.kernels->scratch_floats(rows, t.in.k));
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

void decode_row(const PackedWeight& weight, int64_t n, float* out) {
  const auto decode =
      weight.scheme().is_mxfp8() ? reference::decode_row_mxfp8 : reference::decode_row_plain;
  decode(weight.as<RowMajor>(), n, out);
}

}  // namespace mx8::cpu
