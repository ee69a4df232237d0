// What a tokenizer.json becomes in memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace mx8::text {

// The post-processor's template: what it puts before and after the text.
struct TemplateIds {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
};

// bos, eos, unk or pad as tokenizer_config.json names it.
struct RoleToken {
  std::string text;
  std::optional<int32_t> id;
};

enum Role : size_t { kBos, kEos, kUnk, kPad, kRoleCount };

// Hands each encoding thread a BpeScratch and takes it back.
class ScratchPool {
 public:
  std::unique_ptr<BpeScratch> take();
  void give_back(std::unique_ptr<BpeScratch> scratch);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<BpeScratch>> idle_;
};

struct TokenizerData {
  TokenizerData(Bpe model) : bpe(std::move(model)) {}

  // The token's text, or an empty view for an id that no token has.
  std::string_view token_text(int32_t id) const;
  bool has(int32_t id) const;
  int32_t find(std::string_view token) const;
  bool is_special(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < special.size() && special[static_cast<size_t>(id)];
  }

  Bpe bpe;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  TemplateIds post;
  std::vector<DecoderNode> decoder;
  std::vector<AddedToken> added;         // ascending ids
  AddedTokenMatcher raw_matcher;         // matches before normalising
  AddedTokenMatcher normalized_matcher;  // matches after
  std::array<RoleToken, kRoleCount> roles;
  std::vector<int32_t> special_ids;
  std::vector<bool> special;  // by id
  int32_t vocab_size = 0;
  mutable ScratchPool scratch;
};

// `config_json` and `special_map_json` may be empty; `name` stands for the file in messages.
Result<std::shared_ptr<const TokenizerData>> parse_tokenizer(std::string_view tokenizer_json,
                                                             std::string_view config_json,
                                                             std::string_view special_map_json,
                                                             const std::string& name);

}  // namespace mx8::text
