#include "ops/attention.h"

#include <algorithm>

#include "kernels/reference/attention.h"
#include "ops/parallel.h"

namespace mx8 {

namespace {

// Query rows times heads of a tile: enough to use a converted block of keys many times, few enough
// for scores and accumulators to stay in the second-level cache; a multiple of six rows for every
// usual size of a group.
constexpr int kTileRows = 144;
// Below this many (query head, key) pairs a step's attention runs on the calling thread.
constexpr int64_t kWorkWorthAThread = 384;

int first_segment(int position, int window) { return first_key(position, window) / kSegmentKeys; }

// Rows of the batch before a row are the ones before it in the context.
int position_of(const AttentionBatch& batch, int sequence, int row) {
  const auto s = static_cast<size_t>(sequence);
  return batch.context[s] - batch.q_start[s + 1] + row;
}

void check_batch(const AttentionBatch& batch) {
  const int sequences = batch.sequences();
  MX8_CHECK(static_cast<int>(batch.q_start.size()) == sequences + 1, batch.q_start.size(),
            sequences);
  MX8_CHECK(static_cast<int64_t>(batch.pages.size()) >= int64_t{sequences} * batch.max_pages,
            batch.pages.size(), sequences, batch.max_pages);
  for (int s = 0; s < sequences; ++s) {
    const auto i = static_cast<size_t>(s);
    const int rows = batch.q_start[i + 1] - batch.q_start[i];
    MX8_CHECK(rows >= 0 && rows <= batch.context[i], s, rows, batch.context[i]);
  }
  MX8_CHECK(batch.q_start[0] >= 0 && batch.q_start.back() <= batch.tokens(), batch.q_start[0],
            batch.q_start.back(), batch.tokens());
}

}  // namespace

PagedAttention::PagedAttention(const AttentionShape& shape) : shape_(shape) {
  MX8_CHECK(shape.kv_heads > 0 && shape.heads > 0 && shape.heads % shape.kv_heads == 0, shape.heads,
            shape.kv_heads);
  MX8_CHECK(shape.head_dim > 0 && shape.window >= 0, shape.head_dim, shape.window);
}

void PagedAttention::plan(const AttentionBatch& batch, int threads) {
  check_batch(batch);
  units_.clear();
  splits_.clear();
  states_ = most_rows_ = work_ = 0;
  const int tile_rows = std::max(1, kTileRows / group());

  // A tile that would keep one thread busy for long is split, so that each thread gets a few units.
  int64_t total = 0;
  const auto for_each_tile = [&](auto&& body) {
    for (int s = 0; s < batch.sequences(); ++s) {
      const int end = batch.q_start[static_cast<size_t>(s) + 1];
      for (int row = batch.q_start[static_cast<size_t>(s)]; row < end; row += tile_rows) {
        body(s, row, std::min(tile_rows, end - row));
      }
    }
  };
  for_each_tile([&](int s, int row, int rows) {
    const int position = position_of(batch, s, row);
    const int last = position + rows - 1;
    total += int64_t{rows} * (last / kSegmentKeys + 1 - first_segment(position, shape_.window)) *
             shape_.kv_heads;
    work_ += int64_t{rows} * (last + 1 - first_key(position, shape_.window)) * shape_.heads;
  });
  const int64_t share = std::max<int64_t>(1, total / (int64_t{4} * threads));
  for_each_tile([&](int s, int row, int rows) {
    const int64_t chunk = threads == 1 ? INT32_MAX : std::max<int64_t>(1, share / rows);
    add_tile(batch, s, row, rows, static_cast<int>(std::min<int64_t>(chunk, INT32_MAX)));
  });
  // The longest first: a long unit that starts last would be waited for.
  std::sort(units_.begin(), units_.end(),
            [](const Unit& a, const Unit& b) { return a.cost() > b.cost(); });
}

void PagedAttention::add_tile(const AttentionBatch& batch, int sequence, int first_row, int rows,
                              int chunk) {
  const int position = position_of(batch, sequence, first_row);
  const int begin = first_segment(position, shape_.window);
  const int end = (position + rows - 1) / kSegmentKeys + 1;
  const bool split = end - begin > chunk;
  for (int h = 0; h < shape_.kv_heads; ++h) {
    int index = -1;
    if (split) {
      index = static_cast<int>(splits_.size());
      splits_.push_back({h, first_row, rows, position, begin, end - begin, states_});
      states_ += int64_t{rows} * group() * (end - begin);
    }
    for (int s = begin; s < end; s += split ? chunk : end - begin) {
      const int unit_end = split ? std::min(end, s + chunk) : end;
      units_.push_back({sequence, h, first_row, rows, s, unit_end, index});
    }
  }
  most_rows_ = std::max<int64_t>(most_rows_, int64_t{rows} * group());
}

AttentionTile PagedAttention::make_tile(const Unit& unit, const AttentionBatch& batch, const Mat& q,
                                        const KvCache& cache, const Mat& out, float* states) const {
  const int64_t column = int64_t{unit.kv_head} * group() * shape_.head_dim;
  AttentionTile tile = {};
  tile.cache = cache;
  tile.pages = batch.pages.data() + int64_t{unit.sequence} * batch.max_pages;
  tile.kv_head = unit.kv_head;
  tile.group = group();
  tile.q = q.f32_row(unit.first_row) + column;
  tile.q_ld = q.ld;
  tile.out = out.f32_row(unit.first_row) + column;
  tile.out_ld = out.ld;
  tile.queries = unit.rows;
  tile.first_position = position_of(batch, unit.sequence, unit.first_row);
  tile.scale = shape_.scale;
  tile.window = shape_.window;
  tile.segment_begin = unit.segment_begin;
  tile.segment_end = unit.segment_end;
  if (unit.split >= 0) {
    const Split& split = splits_[static_cast<size_t>(unit.split)];
    tile.partials = states + split.states * (kStateHeader + shape_.head_dim);
    tile.partial_begin = split.segment_begin;
    tile.partial_segments = split.segments;
  }
  return tile;
}

void PagedAttention::merge_split(const cpu::OpKernels& kernels, const Split& split,
                                 const float* states, float* scratch, const Mat& out) const {
  const int64_t state_size = kStateHeader + shape_.head_dim;
  for (int row = 0; row < split.rows * group(); ++row) {
    const int query = row / group();
    const int position = split.first_position + query;
    const int begin = first_segment(position, shape_.window);
    const int end = position / kSegmentKeys + 1;
    const int64_t first =
        split.states + int64_t{row} * split.segments + begin - split.segment_begin;
    const int head = split.kv_head * group() + row % group();
    kernels.attention_merge(
        {states + first * state_size, end - begin, shape_.head_dim, scratch,
         out.f32_row(split.first_row + query) + int64_t{head} * shape_.head_dim});
  }
}

void PagedAttention::run(const Exec& exec, const AttentionBatch& batch, const Mat& q, const Mat& k,
                         const Mat& v, const KvLayer& layer, const Mat& out) const {
  const int64_t tokens = batch.tokens();
  const int64_t kv_cols = int64_t{shape_.kv_heads} * shape_.head_dim;
  const int64_t q_cols = int64_t{shape_.heads} * shape_.head_dim;
  MX8_CHECK(q.rows == tokens && q.cols == q_cols, q.rows, tokens, q.cols, q_cols);
  MX8_CHECK(out.rows == tokens && out.cols == q_cols, out.rows, tokens, out.cols, q_cols);
  MX8_CHECK(k.rows == tokens && k.cols == kv_cols, k.rows, tokens, k.cols, kv_cols);
  MX8_CHECK(v.rows == tokens && v.cols == kv_cols, v.rows, tokens, v.cols, kv_cols);
  MX8_CHECK(layer.kv_heads == shape_.kv_heads && layer.head_dim == shape_.head_dim, layer.kv_heads,
            shape_.kv_heads, layer.head_dim, shape_.head_dim);
  MX8_CHECK(layer.dtype == DType::kBF16 || layer.dtype == DType::kF32, dtype_name(layer.dtype));
  MX8_CHECK(layer.page_size > 0, layer.page_size);

  const cpu::OpKernels& kernels = cpu::op_kernels(exec.isa);
  const auto attend = shape_.head_dim % kernels.head_dim_multiple == 0 ? kernels.attention_tile
                                                                       : reference::attention_tile;
  const KvCache cache = {layer.keys,      layer.values,   layer.dtype == DType::kF32,
                         layer.page_size, layer.kv_heads, layer.head_dim};
  for_each_row(exec, tokens, 4 * kv_cols, [&](int64_t m) {
    kernels.write_kv({cache, k.f32_row(m), k.ld, v.f32_row(m), v.ld, batch.slots.data() + m, 1});
  });

  const Arena::Scope scope(*exec.workspace);
  const int64_t state_size = kStateHeader + shape_.head_dim;
  const int64_t scratch_size = attention_scratch(static_cast<int>(most_rows_), shape_.head_dim);
  float* states = exec.workspace->alloc<float>(states_ * state_size);
  float* scratch = exec.workspace->alloc<float>(scratch_size * exec_threads(exec));
  const bool parallel = work_ >= kWorkWorthAThread;
  for_each_chunk(exec, static_cast<int64_t>(units_.size()), parallel, [&](int64_t u, int thread) {
    AttentionTile tile = make_tile(units_[static_cast<size_t>(u)], batch, q, cache, out, states);
    tile.scratch = scratch + scratch_size * thread;
    attend(tile);
  });
  const auto splits = static_cast<int64_t>(splits_.size());
  for_each_chunk(exec, splits, states_ * state_size >= 32 * 1024, [&](int64_t s, int thread) {
    merge_split(kernels, splits_[static_cast<size_t>(s)], states, scratch + scratch_size * thread,
                out);
  });
}

}  // namespace mx8
