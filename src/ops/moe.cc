#include "ops/moe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/op_kernels.h"
#include "kernels/reference/exp.h"
#include "ops/parallel.h"

namespace mx8 {

namespace {

// Probabilities of one row of logits. Not finite maxima (overflowed or padding rows) get a stated
// answer: infinite logits share the mass, and where no logit is above minus infinity all are equal.
void probabilities(const cpu::OpKernels& kernels, const float* logits, int experts, float* scratch,
                   float* p) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float max = -kInf;
  for (int e = 0; e < experts; ++e) {
    scratch[e] = std::isnan(logits[e]) ? -kInf : logits[e];
    max = std::max(max, scratch[e]);
  }
  if (std::isfinite(max)) {
    kernels.softmax(scratch, experts, p);
    return;
  }
  const auto equal = static_cast<float>(std::count(scratch, scratch + experts, max));
  for (int e = 0; e < experts; ++e) p[e] = scratch[e] == max ? 1.0f / equal : 0.0f;
}

// The top_k of p by falling value, ties to the lower index.
void choose(const float* p, int experts, int top_k, int32_t* chosen, float* weights) {
  int count = 0;
  for (int e = 0; e < experts; ++e) {
    if (count == top_k && !(p[e] > weights[top_k - 1])) continue;
    int at = count < top_k ? count++ : top_k - 1;
    for (; at > 0 && p[e] > weights[at - 1]; --at) {
      weights[at] = weights[at - 1];
      chosen[at] = chosen[at - 1];
    }
    weights[at] = p[e];
    chosen[at] = e;
  }
}

// Counting sort of the choices by expert; `place` holds the experts at first.
void sort_by_expert(int experts, int top_k, Routing& out) {
  out.offsets.assign(static_cast<size_t>(experts) + 1, 0);
  for (const int32_t e : out.place) ++out.offsets[static_cast<size_t>(e) + 1];
  for (size_t e = 1; e < out.offsets.size(); ++e) out.offsets[e] += out.offsets[e - 1];
  out.rows.resize(out.place.size());
  for (size_t i = 0; i < out.place.size(); ++i) {
    const int32_t row = out.offsets[static_cast<size_t>(out.place[i])]++;
    out.rows[static_cast<size_t>(row)] = static_cast<int32_t>(i) / top_k;
    out.place[i] = row;
  }
  // Each offset has moved to the start of the next expert.
  std::copy_backward(out.offsets.begin(), out.offsets.end() - 2, out.offsets.end() - 1);
  out.offsets.front() = 0;
}

}  // namespace

void route_tokens(const Exec& exec, const RouterShape& shape, const Mat& logits, Routing& out) {
  const int experts = shape.experts;
  const int top_k = shape.top_k;
  MX8_CHECK(top_k > 0 && top_k <= experts, top_k, experts);
  MX8_CHECK(logits.cols == experts, logits.cols, experts);
  const cpu::OpKernels& kernels = cpu::op_kernels(exec.isa);
  out.place.resize(static_cast<size_t>(logits.rows * top_k));
  out.weights.resize(out.place.size());

  const Arena::Scope scope(*exec.workspace);
  float* scratch = exec.workspace->alloc<float>(int64_t{2} * experts * exec_threads(exec));
  constexpr int64_t kRowsPerChunk = 16;
  const int64_t chunks = (logits.rows + kRowsPerChunk - 1) / kRowsPerChunk;
  for_each_chunk(exec, chunks, logits.rows * experts >= 8192, [&](int64_t chunk, int thread) {
    float* sane = scratch + int64_t{2} * experts * thread;
    float* p = sane + experts;
    const int64_t end = std::min(logits.rows, (chunk + 1) * kRowsPerChunk);
    for (int64_t m = chunk * kRowsPerChunk; m < end; ++m) {
      float* weights = out.weights.data() + m * top_k;
      probabilities(kernels, logits.f32_row(m), experts, sane, p);
      choose(p, experts, top_k, out.place.data() + m * top_k, weights);
      if (!shape.renormalise) continue;
      float sum = 0;
      for (int i = 0; i < top_k; ++i) sum += weights[i];
      for (int i = 0; i < top_k; ++i) weights[i] /= sum;
    }
  });
  sort_by_expert(experts, top_k, out);
}

void combine_experts(const Exec& exec, const Routing& routing, int top_k, const Mat& expert_out,
                     const Mat& out, bool accumulate) {
  constexpr int kMaxTopK = 64;
  MX8_CHECK(top_k > 0 && top_k <= kMaxTopK, top_k, kMaxTopK);
  MX8_CHECK(out.cols == expert_out.cols, out.cols, expert_out.cols);
  MX8_CHECK(static_cast<int64_t>(routing.place.size()) == out.rows * top_k, routing.place.size(),
            out.rows, top_k);
  MX8_CHECK(expert_out.rows >= static_cast<int64_t>(routing.place.size()), expert_out.rows);
  const cpu::OpKernels& kernels = cpu::op_kernels(exec.isa);
  for_each_row(exec, out.rows, out.cols * (top_k + 1), [&](int64_t m) {
    const float* rows[kMaxTopK];
    for (int i = 0; i < top_k; ++i) {
      rows[i] = expert_out.f32_row(routing.place[static_cast<size_t>(m * top_k + i)]);
    }
    kernels.weighted_sum(rows, routing.weights.data() + m * top_k, top_k, out.cols, accumulate,
                         out.f32_row(m));
  });
}

void scale_rows_by_sigmoid(const Exec& exec, const Mat& gate, const Mat& x) {
  MX8_CHECK(gate.rows == x.rows, gate.rows, x.rows);
  const cpu::OpKernels& kernels = cpu::op_kernels(exec.isa);
  for_each_row(exec, x.rows, x.cols, [&](int64_t m) {
    kernels.scale(reference::sigmoid(gate.f32_row(m)[0]), x.cols, x.f32_row(m));
  });
}

}  // namespace mx8
