// Opens a model folder: configuration, weights, tokenizer and chat template, ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/quant_config.h"
#include "kernels/kernel_info.h"
#include "model/model.h"
#include "runtime/exec.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace mx8 {

struct OpenOptions {
  CheckpointOptions checkpoint;
  bool dummy_weights = false;  // --load-format dummy: only config.json is needed
  uint64_t dummy_seed = 0;
  OnlineQuant quantization;  // --quantization mxfp8
  Preference preference;     // --linear-backend, --activations
  int threads = 0;           // 0: every processor
  int64_t max_step_tokens = 512;
  int64_t max_model_len = 0;  // tokens of a sequence; 0: default_model_len
  // Where max_model_len is 0: so many, or what the config says if that is less; 0: the latter.
  // What grows with the context (rotary tables) is made for this length.
  int64_t default_model_len = 0;
  bool text = true;           // load the tokenizer (and the chat template where there is one)
};

struct OpenedModel {
  std::string folder;
  HfConfig config;
  QuantPlan quant;
  DeviceCaps caps;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Arena> workspace;
  std::unique_ptr<Model> model;
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::string no_chat_template;  // why there is none
  double load_seconds = 0;
  LoadMode load_mode = LoadMode::kMmap;
  bool dummy = false;

  Exec exec() const;
  // End-of-sequence ids: generation_config.json's, else config.json's, else the tokenizer's.
  std::vector<int32_t> eos_ids() const;
};

// The configuration is judged whole before any weight is read.
Result<OpenedModel> open_model(const std::string& folder, const OpenOptions& options);

// Where the environment gives it: MX8_LINEAR_BACKEND.
Preference preference_from_environment();

}  // namespace mx8
