// Routing of tokens to experts, and the sum of what comes back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/exec.h"
#include "tensor/matrix.h"

namespace mx8 {

struct RouterShape {
  int experts = 0;
  int top_k = 0;
  bool renormalise = false;  // divide the chosen weights by their sum
};

// The (token, expert) pairs of a step sorted by expert; within an expert by token. All on the host.
struct Routing {
  std::vector<int32_t> offsets;  // [E + 1]: rows of each expert
  std::vector<int32_t> rows;     // [M * top_k]: the token of each sorted row
  std::vector<int32_t> place;    // [M, top_k]: the sorted row of a token's i-th choice
  std::vector<float> weights;    // [M, top_k]: by falling probability; ties go to the lower expert
};

// Softmax over logits [M, E] in FP32, then the top_k. Throws nothing away: a logit that is NaN
// counts as minus infinity, infinite logits share the probability, and a row without any logit
// above minus infinity gives every expert the same, so that the choice is always top_k distinct
// experts with finite weights.
void route_tokens(const Exec& exec, const RouterShape& shape, const Mat& logits, Routing& out);

// out[m] (+)= sum over i of weights[m, i] * expert_out[place[m, i]], in the order of i. With
// `accumulate` the sum is added to out.
void combine_experts(const Exec& exec, const Routing& routing, int top_k, const Mat& expert_out,
                     const Mat& out, bool accumulate);

// x[m] *= sigmoid(gate[m, 0]): the shared expert's gate of Qwen2-MoE.
void scale_rows_by_sigmoid(const Exec& exec, const Mat& gate, const Mat& x);

}  // namespace mx8
