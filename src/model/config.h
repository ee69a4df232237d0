// ModelConfig: a checkpoint's config.json as the code of the families needs it. Everything that a
// config asks for is either in here, or refused by name, or (a field that no known model gives a
// meaning) listed in `notes`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/hf_config.h"
#include "model/model.h"
#include "model/rope.h"

namespace mx8 {

// What an architecture does with the optional fields of a config.
struct FamilyRules {
  enum class AttentionBias : uint8_t {
    kNone,
    kQkv,           // q, k and v, always
    kQkvByConfig,   // q, k and v, by `qkv_bias`
    kQkvoByConfig,  // q, k, v and o, by `attention_bias`
  };
  AttentionBias attention_bias = AttentionBias::kNone;
  bool mlp_bias = false;        // `mlp_bias` has a meaning
  bool qk_norm = false;         // RMS norm over each head of q and k, before the rotation
  bool sliding_window = false;  // `sliding_window` has a meaning
  bool window_switch = false;   // `use_sliding_window` switches it on; layers may differ
  bool experts = false;         // a mixture of experts
  bool shared_expert = false;
  bool always_renormalise = false;  // of the chosen experts' weights; otherwise `norm_topk_prob`
};

struct ModelConfig {
  std::string architecture;
  ModelShape shape;  // max_positions: the longest context of this load
  float norm_eps = 1e-6f;

  bool qkv_bias = false;
  bool o_bias = false;
  bool qk_norm = false;
  float attention_scale = 1;
  std::vector<int> windows;  // per layer, 0: full attention
  RopeParameters rope;

  int64_t intermediate = 0;  // of dense MLPs
  bool mlp_bias = false;

  int experts = 0;
  int experts_per_token = 0;
  bool renormalise = false;
  int64_t expert_intermediate = 0;
  int64_t shared_intermediate = 0;  // 0: no shared expert
  std::vector<bool> moe_layers;     // per layer

  bool tied_head = false;
  std::vector<std::string> notes;  // what the user should know, a line each

  int64_t q_width() const { return int64_t{shape.heads} * shape.head_dim; }
  int64_t kv_width() const { return int64_t{shape.kv_heads} * shape.head_dim; }
};

// `max_context` 0 means max_position_embeddings.
Result<ModelConfig> read_model_config(const HfConfig& hf, const FamilyRules& rules,
                                      int64_t max_context);

}  // namespace mx8
