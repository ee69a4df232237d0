// The small ops of a decoder layer. All matrices F32 on a CPU; rows are tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/exec.h"
#include "tensor/matrix.h"

namespace mx8 {

// out[m] = table[ids[m]]; table [vocab, hidden] BF16, F16 or F32.
void embedding(const Exec& exec, const Mat& table, std::span<const int32_t> ids, const Mat& out);

// out = x / sqrt(mean(x^2) + eps) * weight, per row. out may be x. weight is FP32 [cols].
void rms_norm(const Exec& exec, const Mat& x, std::span<const float> weight, float eps,
              const Mat& out);

// The same over each head of a row: x [M, heads * head_dim], weight [head_dim]. In place.
void head_rms_norm(const Exec& exec, const Mat& x, int head_dim, std::span<const float> weight,
                   float eps);

// cos and sin of every position, made once at load: [max_positions, rotary_dim / 2] each, FP32.
struct RopeTable {
  int rotary_dim = 0;
  std::vector<float> cos;
  std::vector<float> sin;
  int64_t positions() const {
    return rotary_dim == 0 ? 0 : static_cast<int64_t>(cos.size()) / (rotary_dim / 2);
  }
};

// inv_freq [rotary_dim / 2] per pair; cos and sin are multiplied by `magnitude` (YaRN and LongRoPE;
// 1 otherwise). Angles in FP32 as Transformers computes them.
RopeTable make_rope_table(std::span<const float> inv_freq, int64_t positions, float magnitude);

// Rotates the first rotary_dim elements of each head of x [M, heads * head_dim] in place, halves
// apart (GPT-NeoX order): (x[i], x[i + d/2]) by the angle of pair i at positions[m].
void rope(const Exec& exec, const RopeTable& table, std::span<const int32_t> positions,
          int head_dim, const Mat& x);

// out[m] = x[rows[m]].
void gather_rows(const Exec& exec, const Mat& x, std::span<const int32_t> rows, const Mat& out);

}  // namespace mx8
