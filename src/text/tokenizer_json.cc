// tokenizer.json and the two small files beside it. The big file is read with simdjson; its small
// nodes are handed as text to tokenizer_nodes.cc.
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "text/tokenizer_data.h"
#include "text/tokenizer_nodes.h"

namespace mx8::text {

namespace {

namespace ondemand = simdjson::ondemand;
using nlohmann::json;
using StringPair = std::pair<std::string_view, std::string_view>;

Error json_error(std::string_view where, simdjson::error_code code) {
  return corrupt(str_cat(where, ": ", simdjson::error_message(code)));
}

// MX8_JSON(std::string_view s, value.get_string(), "where"): declares s or returns the error.
#define MX8_JSON(decl, expr, where) MX8_JSON_INNER(decl, expr, where, MX8_CONCAT(error_, __LINE__))
#define MX8_JSON_INNER(decl, expr, where, error) \
  decl;                                          \
  if (const auto error = (expr)) return json_error(where, error)

struct Model {
  Vocab vocab;
  std::vector<StringPair> merges;  // views into the parser's buffer
  BpeOptions options;
};

Result<void> read_vocab(ondemand::value value, Vocab& vocab) {
  MX8_JSON(ondemand::object object, value.get_object().get(object), "model.vocab");
  for (auto field : object) {
    MX8_JSON(std::string_view token, field.unescaped_key().get(token), "model.vocab");
    int64_t id = 0;
    if (field.value().get_int64().get(id) != simdjson::SUCCESS) {
      return corrupt(str_cat("model.vocab: the id of \"", token, "\" is not a whole number"));
    }
    const std::string problem = vocab.add(token, id);
    if (!problem.empty()) return corrupt(str_cat("model.vocab: ", problem));
  }
  return {};
}

Result<StringPair> read_merge(ondemand::value value, size_t index) {
  const std::string where = str_cat("model.merges[", index, "]");
  MX8_JSON(ondemand::json_type type, value.type().get(type), where);
  StringPair pair;
  if (type == ondemand::json_type::string) {
    MX8_JSON(std::string_view text, value.get_string().get(text), where);
    const size_t space = text.find(' ');
    pair = {text.substr(0, space),
            space == std::string_view::npos ? std::string_view() : text.substr(space + 1)};
    if (pair.second.find(' ') != std::string_view::npos) pair.second = {};
  } else if (type == ondemand::json_type::array) {
    MX8_JSON(ondemand::array parts, value.get_array().get(parts), where);
    size_t n = 0;
    for (auto part : parts) {
      MX8_JSON(std::string_view text, part.get_string().get(text), where);
      if (n == 0) pair.first = text;
      if (n == 1) pair.second = text;
      ++n;
    }
    if (n != 2) pair = {};
  }
  if (pair.first.empty() || pair.second.empty()) {
    return corrupt(str_cat(where, ": not two tokens, as \"a b\" or [\"a\", \"b\"]"));
  }
  return pair;
}

Result<void> read_merges(ondemand::value value, std::vector<StringPair>& merges) {
  MX8_JSON(ondemand::array list, value.get_array().get(list), "model.merges");
  for (auto entry : list) {
    MX8_JSON(ondemand::value item, entry.get(item), "model.merges");
    std::string_view raw = item.raw_json_token();
    if (merges.empty() && raw.substr(0, 9) == "\"#version") continue;
    MX8_TRY(const StringPair pair, read_merge(item, merges.size()));
    merges.push_back(pair);
  }
  return {};
}

// An option of the model that must be off: it changes results and we don't have it.
Result<void> require_unset(ondemand::value value, std::string_view key) {
  bool unset = false;
  MX8_JSON(ondemand::json_type type, value.type().get(type), "model");
  if (type == ondemand::json_type::null) {
    unset = true;
  } else if (type == ondemand::json_type::string) {
    std::string_view text;
    unset = value.get_string().get(text) == simdjson::SUCCESS && text.empty();
  } else if (type == ondemand::json_type::number) {
    double number = 1;
    unset = value.get_double().get(number) == simdjson::SUCCESS && number == 0;
  }
  if (!unset) return unsupported(str_cat("model.", key, " is set, which is not supported"));
  return {};
}

Result<void> read_flag(ondemand::value value, std::string_view key, bool& out) {
  if (value.get_bool().get(out) != simdjson::SUCCESS) {
    return corrupt(str_cat("model.", key, " is not true or false"));
  }
  return {};
}

Result<void> read_model_field(std::string_view key, ondemand::value value, Model& model) {
  if (key == "vocab") return read_vocab(value, model.vocab);
  if (key == "merges") return read_merges(value, model.merges);
  if (key == "fuse_unk") return read_flag(value, key, model.options.fuse_unk);
  if (key == "byte_fallback") return read_flag(value, key, model.options.byte_fallback);
  if (key == "ignore_merges") return read_flag(value, key, model.options.ignore_merges);
  if (key == "unk_token") {
    MX8_JSON(ondemand::json_type type, value.type().get(type), "model.unk_token");
    if (type == ondemand::json_type::null) return {};
    MX8_JSON(std::string_view text, value.get_string().get(text), "model.unk_token");
    model.options.unk_token = std::string(text);
    return {};
  }
  if (key == "dropout" || key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
    return require_unset(value, key);
  }
  return {};
}

Result<Model> read_model(ondemand::value value) {
  MX8_JSON(ondemand::object object, value.get_object().get(object), "model");
  std::string_view type;
  const auto found = object.find_field_unordered("type").get_string().get(type);
  if (found == simdjson::SUCCESS && type != "BPE") {
    return unsupported(str_cat("model type \"", type, "\" is not supported (BPE is)"));
  }
  if (found != simdjson::SUCCESS && found != simdjson::NO_SUCH_FIELD) {
    return json_error("model.type", found);
  }
  if (const auto error = object.reset().error()) return json_error("model", error);
  Model model;
  std::vector<std::string> seen;
  for (auto field : object) {
    MX8_JSON(std::string_view key, field.unescaped_key().get(key), "model");
    MX8_JSON(ondemand::value field_value, field.value().get(field_value), "model");
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return corrupt(str_cat("model has \"", key, "\" twice"));
    }
    seen.emplace_back(key);
    MX8_RETURN_IF_ERROR(read_model_field(key, field_value, model));
  }
  for (const char* key : {"vocab", "merges"}) {
    if (std::find(seen.begin(), seen.end(), key) == seen.end()) {
      return corrupt(str_cat("model has no \"", key, "\""));
    }
  }
  return model;
}

Result<Bpe> build_model(Model model) {
  std::vector<std::pair<int32_t, int32_t>> merges;
  merges.reserve(model.merges.size());
  for (size_t i = 0; i < model.merges.size(); ++i) {
    const auto& [left, right] = model.merges[i];
    merges.push_back({model.vocab.find(left), model.vocab.find(right)});
    for (const auto& [id, text] :
         {std::pair(merges.back().first, left), std::pair(merges.back().second, right)}) {
      if (id == kNoToken) {
        return corrupt(str_cat("model.merges[", i, "]: \"", text, "\" is not in the vocabulary"));
      }
    }
  }
  auto bpe = Bpe::build(std::move(model.vocab), merges, std::move(model.options));
  if (!bpe) return Error{bpe.error().code, "model: " + bpe.error().message};
  return bpe;
}

// One entry of added_tokens, or of tokenizer_config.json's added_tokens_decoder.
Result<AddedToken> read_added_token(const json& entry, const std::string& where, int64_t id) {
  if (!entry.is_object()) return corrupt(str_cat(where, ": not an object"));
  const auto content = entry.find("content");
  if (content == entry.end() || !content->is_string()) {
    return corrupt(str_cat(where, ": \"content\" is missing or not a string"));
  }
  AddedToken token;
  token.content = content->get<std::string>();
  if (token.content.empty()) return corrupt(str_cat(where, ": \"content\" is empty"));
  if (id < 0 || id > Vocab::kMaxId) {
    return corrupt(str_cat(where, ": id ", id, " is outside [0, ", Vocab::kMaxId, "]"));
  }
  token.id = static_cast<int32_t>(id);
  const std::pair<const char*, bool*> flags[] = {
      {"special", &token.special}, {"single_word", &token.single_word}, {"lstrip", &token.lstrip},
      {"rstrip", &token.rstrip},   {"normalized", &token.normalized},
  };
  token.normalized = entry.value("special", json(false)) != json(true);
  for (const auto& [key, flag] : flags) {
    const auto it = entry.find(key);
    if (it == entry.end()) continue;
    if (!it->is_boolean()) return corrupt(str_cat(where, ": \"", key, "\" is not true or false"));
    *flag = it->get<bool>();
  }
  return token;
}

// Added tokens in the order of the files, checked against the vocabulary and each other.
class AddedTokenList {
 public:
  explicit AddedTokenList(const Vocab& vocab) : vocab_(vocab) {}

  Result<void> add(AddedToken token, const std::string& where) {
    const auto clash = [&](int32_t other_id, std::string_view other) {
      return corrupt(str_cat(where, ": \"", token.content, "\" with id ", token.id,
                             " contradicts \"", other, "\" with id ", other_id));
    };
    if (const auto it = by_id_.find(token.id); it != by_id_.end() && it->second != token.content) {
      return clash(token.id, it->second);
    }
    if (const auto it = by_text_.find(token.content); it != by_text_.end()) {
      if (it->second != token.id) return clash(it->second, token.content);
      return {};  // listed before
    }
    const int32_t in_vocab = vocab_.find(token.content);
    if (in_vocab != kNoToken && in_vocab != token.id) return clash(in_vocab, token.content);
    if (vocab_.has(token.id) && vocab_.text(token.id) != token.content) {
      return clash(token.id, vocab_.text(token.id));
    }
    by_id_[token.id] = token.content;
    by_text_[token.content] = token.id;
    tokens_.push_back(std::move(token));
    return {};
  }

  // A role token that is only a word of the model becomes a special token, as in `transformers`.
  void add_role(const std::string& text) {
    const int32_t id = vocab_.find(text);
    if (text.empty() || id == kNoToken || by_text_.count(text) > 0) return;
    AddedToken token;
    token.id = id;
    token.content = text;
    token.special = true;
    by_id_[id] = text;
    by_text_[text] = id;
    tokens_.push_back(std::move(token));
  }

  std::optional<int32_t> find(const std::string& text) const {
    if (const auto it = by_text_.find(text); it != by_text_.end()) return it->second;
    const int32_t id = vocab_.find(text);
    return id == kNoToken ? std::nullopt : std::optional<int32_t>(id);
  }

  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  const Vocab& vocab_;
  std::map<int32_t, std::string> by_id_;
  std::map<std::string, int32_t> by_text_;
  std::vector<AddedToken> tokens_;
};

Result<json> parse_small(std::string_view text, std::string_view name) {
  const auto depth = check_depth(text);
  if (!depth) return corrupt(str_cat(name, ": ", depth.error().message));
  json tree = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (tree.is_discarded()) return corrupt(str_cat(name, ": not valid JSON"));
  return tree;
}

Result<void> read_added_tokens(std::string_view text, AddedTokenList& list) {
  MX8_TRY(const json tree, parse_small(text, "added_tokens"));
  if (tree.is_null()) return {};
  if (!tree.is_array()) return corrupt("added_tokens: not a list");
  for (size_t i = 0; i < tree.size(); ++i) {
    const std::string where = str_cat("added_tokens[", i, "]");
    const json& entry = tree[i];
    const bool has_id =
        entry.is_object() && entry.contains("id") && entry["id"].is_number_integer();
    if (!has_id) return corrupt(str_cat(where, ": \"id\" is missing or not a whole number"));
    MX8_TRY(AddedToken token, read_added_token(entry, where, entry["id"].get<int64_t>()));
    MX8_RETURN_IF_ERROR(list.add(std::move(token), where));
  }
  return {};
}

Result<void> read_added_tokens_decoder(const json& config, AddedTokenList& list) {
  const auto it = config.find("added_tokens_decoder");
  if (it == config.end() || it->is_null()) return {};
  const std::string name = "tokenizer_config.json: added_tokens_decoder";
  if (!it->is_object()) return corrupt(str_cat(name, " is not an object"));
  for (const auto& [key, entry] : it->items()) {
    const std::string where = str_cat(name, "[\"", key, "\"]");
    const bool digits =
        !key.empty() && key.size() <= 9 &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return corrupt(str_cat(where, ": the key is not a token id"));
    MX8_TRY(AddedToken token, read_added_token(entry, where, std::stoll(key)));
    MX8_RETURN_IF_ERROR(list.add(std::move(token), where));
  }
  return {};
}

// "bos_token": "<s>", or {"content": "<s>", ...}, or null.
Result<std::string> read_role(const json& file, const char* key, std::string_view name) {
  const auto it = file.find(key);
  if (it == file.end() || it->is_null()) return std::string();
  if (it->is_string()) return it->get<std::string>();
  if (it->is_object() && it->contains("content") && (*it)["content"].is_string()) {
    return (*it)["content"].get<std::string>();
  }
  return corrupt(str_cat(name, ": \"", key, "\" is neither a string nor null nor an added token"));
}

constexpr std::array<const char*, kRoleCount> kRoleKeys = {"bos_token", "eos_token", "unk_token",
                                                           "pad_token"};

Result<void> read_side_files(std::string_view config_json, std::string_view special_map_json,
                             AddedTokenList& list, std::array<RoleToken, kRoleCount>& roles) {
  const std::pair<std::string_view, std::string_view> files[] = {
      {config_json, "tokenizer_config.json"}, {special_map_json, "special_tokens_map.json"}};
  for (const auto& [text, name] : files) {
    if (text.empty()) continue;
    MX8_TRY(const json file, parse_small(text, name));
    if (!file.is_object()) return corrupt(str_cat(name, ": not an object"));
    MX8_RETURN_IF_ERROR(read_added_tokens_decoder(file, list));
    for (size_t role = 0; role < kRoleCount; ++role) {
      MX8_TRY(const std::string token, read_role(file, kRoleKeys[role], name));
      if (roles[role].text.empty()) roles[role].text = token;
    }
  }
  for (size_t role = 0; role < kRoleCount; ++role) {
    RoleToken& token = roles[role];
    if (token.text.empty()) continue;
    list.add_role(token.text);
    token.id = list.find(token.text);
    if (!token.id && (role == kBos || role == kEos)) {
      return corrupt(str_cat("tokenizer_config.json: ", kRoleKeys[role], " \"", token.text,
                             "\" is not a token of tokenizer.json"));
    }
  }
  return {};
}

// The top-level fields other than the model, as text.
using Fields = std::map<std::string, std::string, std::less<>>;

// The model waits for the rest: its index depends on the pre-tokeniser.
Result<void> read_fields(ondemand::object& root, Fields& fields, std::optional<Model>& model) {
  for (auto field : root) {
    MX8_JSON(std::string_view view, field.unescaped_key().get(view), "top level");
    const std::string key(view);
    MX8_JSON(ondemand::value value, field.value().get(value), key);
    if (key == "model") {
      if (model) return corrupt("\"model\" appears twice");
      MX8_TRY(model, read_model(value));
      continue;
    }
    MX8_JSON(std::string_view text, simdjson::to_json_string(value).get(text), key);
    if (!fields.emplace(key, text).second) {
      return corrupt(str_cat("\"", key, "\" appears twice"));
    }
  }
  return {};
}

std::string_view field_or_null(const Fields& fields, std::string_view key) {
  const auto it = fields.find(key);
  return it == fields.end() ? std::string_view("null") : std::string_view(it->second);
}

Result<void> check_ids(const std::vector<int32_t>& ids, const TokenizerData& data) {
  for (const int32_t id : ids) {
    if (!data.has(id)) return corrupt(str_cat("post_processor: id ", id, " is no token"));
  }
  return {};
}

void finish_added(TokenizerData& data, std::vector<AddedToken> tokens) {
  // Special tokens first: of two that look alike, the first one counts.
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const auto& a, const auto& b) { return a.special && !b.special; });
  std::vector<AddedToken> raw, normalized;
  std::vector<std::string> raw_contents, normalized_contents;
  data.vocab_size = data.bpe.vocab().end_id();
  for (const AddedToken& token : tokens) {
    data.vocab_size = std::max(data.vocab_size, token.id + 1);
    if (token.special) data.special_ids.push_back(token.id);
    if (token.normalized) {
      TracedText content;
      content.bytes = token.content;
      data.normalizer.apply(content);
      normalized.push_back(token);
      normalized_contents.push_back(content.bytes);
    } else {
      raw.push_back(token);
      raw_contents.push_back(token.content);
    }
  }
  data.raw_matcher = AddedTokenMatcher(std::move(raw), raw_contents);
  data.normalized_matcher = AddedTokenMatcher(std::move(normalized), normalized_contents);
  std::sort(data.special_ids.begin(), data.special_ids.end());
  data.special.assign(static_cast<size_t>(data.vocab_size), false);
  for (const int32_t id : data.special_ids) data.special[static_cast<size_t>(id)] = true;
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  data.added = std::move(tokens);
  data.bpe.set_special(data.special_ids);
}

Result<std::shared_ptr<const TokenizerData>> parse(std::string_view tokenizer_json,
                                                   std::string_view config_json,
                                                   std::string_view special_map_json) {
  const simdjson::padded_string padded(tokenizer_json);
  ondemand::parser parser;
  MX8_JSON(ondemand::document document, parser.iterate(padded).get(document), "not valid JSON");
  MX8_JSON(ondemand::object root, document.get_object().get(root), "top level");
  Fields fields;
  std::optional<Model> model;
  MX8_RETURN_IF_ERROR(read_fields(root, fields, model));
  if (document.current_location().error() == simdjson::SUCCESS) {
    return corrupt("something follows the JSON object");
  }
  if (!model) return corrupt("\"model\" is missing");

  MX8_TRY(auto pre_tokenizer, parse_pre_tokenizer(field_or_null(fields, "pre_tokenizer")));
  model->options.byte_level = pre_tokenizer.pieces_are_bytes();
  MX8_TRY(Bpe bpe, build_model(std::move(*model)));
  auto data = std::make_shared<TokenizerData>(std::move(bpe));
  data->pre_tokenizer = std::move(pre_tokenizer);
  MX8_TRY(data->normalizer, parse_normalizer(field_or_null(fields, "normalizer")));
  MX8_TRY(data->decoder, parse_decoder(field_or_null(fields, "decoder")));
  MX8_TRY(data->post, parse_post_processor(field_or_null(fields, "post_processor")));

  AddedTokenList added(data->bpe.vocab());
  MX8_RETURN_IF_ERROR(read_added_tokens(field_or_null(fields, "added_tokens"), added));
  MX8_RETURN_IF_ERROR(read_side_files(config_json, special_map_json, added, data->roles));
  finish_added(*data, added.take());
  MX8_RETURN_IF_ERROR(check_ids(data->post.prefix, *data));
  MX8_RETURN_IF_ERROR(check_ids(data->post.suffix, *data));
  return std::shared_ptr<const TokenizerData>(std::move(data));
}

}  // namespace

Result<std::shared_ptr<const TokenizerData>> parse_tokenizer(std::string_view tokenizer_json,
                                                             std::string_view config_json,
                                                             std::string_view special_map_json,
                                                             const std::string& name) {
  try {
    auto data = parse(tokenizer_json, config_json, special_map_json);
    if (data) return data;
    // Messages about the side files name them; the rest are about tokenizer.json.
    const std::string& message = data.error().message;
    const bool names_file = message.rfind("tokenizer_config.json", 0) == 0 ||
                            message.rfind("special_tokens_map.json", 0) == 0;
    return Error{data.error().code, names_file ? message : str_cat(name, ": ", message)};
  } catch (const std::exception& e) {  // nlohmann or simdjson; none is expected
    return corrupt(str_cat(name, ": ", e.what()));
  }
}

}  // namespace mx8::text
