#include "text/tokenizer_nodes.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "text/utf8.h"

namespace mx8::text {

namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// One node of the file and where it stands, for messages.
struct Node {
  const json& value;
  std::string where;

  Error error(std::string_view what) const { return corrupt(str_cat(where, ": ", what)); }

  std::string type() const {
    if (!value.is_object()) return {};
    const auto it = value.find("type");
    return it != value.end() && it->is_string() ? it->get<std::string>() : std::string();
  }

  Result<bool> flag(const char* key, bool fallback) const {
    const auto it = value.find(key);
    if (it == value.end() || it->is_null()) return fallback;
    if (!it->is_boolean()) return error(str_cat("\"", key, "\" is not true or false"));
    return it->get<bool>();
  }

  Result<std::string> text(const char* key) const {
    const auto it = value.find(key);
    if (it == value.end()) return error(str_cat("\"", key, "\" is missing"));
    if (!it->is_string()) return error(str_cat("\"", key, "\" is not a string"));
    return it->get<std::string>();
  }

  Result<std::string> text(const char* key, const char* fallback) const {
    const auto it = value.find(key);
    if (it == value.end() || it->is_null()) return std::string(fallback);
    return text(key);
  }

  Result<size_t> count(const char* key) const {
    const auto it = value.find(key);
    if (it == value.end() || !it->is_number_unsigned()) {
      return error(str_cat("\"", key, "\" is not a whole number"));
    }
    return it->get<size_t>();
  }

  Result<std::string> character(const char* key) const {
    MX8_TRY(std::string c, text(key));
    if (c.empty() || decode_valid(c.data()).size != c.size()) {
      return error(str_cat("\"", key, "\" is not one character"));
    }
    return c;
  }
};

// "pattern": {"String": s} or {"Regex": r}; older files have a plain string.
struct Pattern {
  bool is_regex = false;
  std::string text;
  Regex regex;
};

Result<Pattern> read_pattern(const Node& node) {
  Pattern out;
  const auto it = node.value.find("pattern");
  if (it == node.value.end()) return node.error("\"pattern\" is missing");
  const json* text = &*it;
  if (it->is_object()) {
    const auto string = it->find("String"), regex = it->find("Regex");
    out.is_regex = regex != it->end();
    if ((string != it->end()) == out.is_regex || it->size() != 1) {
      return node.error("\"pattern\" has neither just \"String\" nor just \"Regex\"");
    }
    text = out.is_regex ? &*regex : &*string;
  }
  if (!text->is_string()) return node.error("\"pattern\" is not a string");
  out.text = text->get<std::string>();
  if (out.text.empty()) return node.error("\"pattern\" is empty");
  if (out.is_regex) {
    auto regex = Regex::compile(out.text);
    if (!regex) return Error{regex.error().code, str_cat(node.where, ": ", regex.error().message)};
    out.regex = *regex;
  }
  return out;
}

// Calls `read` for a node, or in order for each node that a Sequence holds under `list_key`.
Result<void> for_each_node(const Node& node, const char* list_key,
                           const std::function<Result<void>(const Node&)>& read) {
  if (!node.value.is_object()) return node.error("not an object");
  if (node.type().empty()) return node.error("\"type\" is missing");
  if (node.type() != "Sequence") return read(node);
  const auto it = node.value.find(list_key);
  if (it == node.value.end() || !it->is_array()) {
    return node.error(str_cat("\"", list_key, "\" is missing or not a list"));
  }
  for (size_t i = 0; i < it->size(); ++i) {
    const Node child{(*it)[i], str_cat(node.where, ".", list_key, "[", i, "]")};
    MX8_RETURN_IF_ERROR(for_each_node(child, list_key, read));
  }
  return {};
}

Result<void> read_tree(std::string_view text, const char* where, const char* list_key,
                       const std::function<Result<void>(const Node&)>& read) {
  const auto depth = check_depth(text);
  if (!depth) return corrupt(str_cat(where, ": ", depth.error().message));
  const json tree = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (tree.is_discarded()) return corrupt(str_cat(where, ": not valid JSON"));
  if (tree.is_null()) return {};
  return for_each_node({tree, where}, list_key, read);
}

Error unknown_node(const Node& node, std::string_view known) {
  return unsupported(
      str_cat(node.where, ": type \"", node.type(), "\" is not supported (known: ", known, ")"));
}

Result<NormalizerNode> read_normalizer_node(const Node& node) {
  const std::string type = node.type();
  NormalizerNode out;
  if (type == "NFC") {
    out.kind = NormalizerNode::kNfc;
  } else if (type == "NFD") {
    out.kind = NormalizerNode::kNfd;
  } else if (type == "NFKC") {
    out.kind = NormalizerNode::kNfkc;
  } else if (type == "NFKD") {
    out.kind = NormalizerNode::kNfkd;
  } else if (type == "Lowercase") {
    out.kind = NormalizerNode::kLowercase;
  } else if (type == "Strip") {
    out.kind = NormalizerNode::kStrip;
    MX8_TRY(out.left, node.flag("strip_left", true));
    MX8_TRY(out.right, node.flag("strip_right", true));
  } else if (type == "Prepend") {
    out.kind = NormalizerNode::kPrepend;
    MX8_TRY(out.content, node.text("prepend"));
  } else if (type == "Replace") {
    MX8_TRY(Pattern pattern, read_pattern(node));
    out.kind = pattern.is_regex ? NormalizerNode::kReplaceRegex : NormalizerNode::kReplaceString;
    out.pattern = pattern.text;
    out.regex = pattern.regex;
    MX8_TRY(out.content, node.text("content"));
    if (pattern.is_regex && out.content.find('$') != std::string::npos) {
      return unsupported(str_cat(node.where, ": \"content\" with group references"));
    }
  } else {
    return unknown_node(node,
                        "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, "
                        "Replace");
  }
  return out;
}

Result<SplitBehavior> read_behavior(const Node& node, const char* fallback) {
  MX8_TRY(const std::string name, node.text("behavior", fallback));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return node.error(str_cat("\"behavior\" is \"", name, "\""));
}

Result<void> read_metaspace(const Node& node, PreTokenizerNode& out) {
  out.kind = PreTokenizerNode::kMetaspace;
  MX8_TRY(out.pattern, node.character("replacement"));
  MX8_TRY(out.split, node.flag("split", true));
  MX8_TRY(const std::string scheme, node.text("prepend_scheme", "always"));
  MX8_TRY(const bool prefix, node.flag("add_prefix_space", true));
  if (scheme == "always") {
    out.prepend = prefix ? PrependScheme::kAlways : PrependScheme::kNever;
  } else if (scheme == "first" || scheme == "never") {
    out.prepend = scheme == "first" ? PrependScheme::kFirst : PrependScheme::kNever;
    if (!prefix && scheme == "first") {
      return node.error("\"add_prefix_space\": false contradicts \"prepend_scheme\": \"first\"");
    }
  } else {
    return node.error(str_cat("\"prepend_scheme\" is \"", scheme, "\""));
  }
  return {};
}

Result<PreTokenizerNode> read_pre_tokenizer_node(const Node& node) {
  const std::string type = node.type();
  PreTokenizerNode out;
  if (type == "ByteLevel") {
    out.kind = PreTokenizerNode::kByteLevel;
    MX8_TRY(out.add_prefix_space, node.flag("add_prefix_space", true));
    MX8_TRY(out.use_regex, node.flag("use_regex", true));
    MX8_TRY(out.regex, Regex::compile(kGpt2Pattern));
  } else if (type == "Split") {
    MX8_TRY(Pattern pattern, read_pattern(node));
    out.kind = pattern.is_regex ? PreTokenizerNode::kSplitRegex : PreTokenizerNode::kSplitString;
    out.pattern = pattern.text;
    out.regex = pattern.regex;
    MX8_TRY(out.behavior, read_behavior(node, "(none)"));
    MX8_TRY(out.invert, node.flag("invert", false));
  } else if (type == "Digits") {
    out.kind = PreTokenizerNode::kDigits;
    MX8_TRY(const bool individual, node.flag("individual_digits", false));
    out.behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  } else if (type == "Metaspace") {
    MX8_RETURN_IF_ERROR(read_metaspace(node, out));
  } else if (type == "Whitespace") {
    out.kind = PreTokenizerNode::kWhitespace;
  } else if (type == "WhitespaceSplit") {
    out.kind = PreTokenizerNode::kWhitespaceSplit;
  } else if (type == "Punctuation") {
    out.kind = PreTokenizerNode::kPunctuation;
    MX8_TRY(out.behavior, read_behavior(node, "Isolated"));
  } else {
    return unknown_node(node,
                        "Sequence, ByteLevel, Split, Digits, Metaspace, Whitespace, "
                        "WhitespaceSplit, Punctuation");
  }
  return out;
}

Result<std::vector<int32_t>> template_token_ids(const Node& node, const std::string& name) {
  const auto tokens = node.value.find("special_tokens");
  const json* entry = nullptr;
  if (tokens != node.value.end() && tokens->is_object() && tokens->contains(name)) {
    entry = &(*tokens)[name];
  }
  const json* ids =
      entry != nullptr && entry->is_object() && entry->contains("ids") ? &(*entry)["ids"] : nullptr;
  if (ids == nullptr || !ids->is_array()) {
    return node.error(str_cat("\"special_tokens\" has no \"ids\" for \"", name, "\""));
  }
  std::vector<int32_t> out;
  for (const json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > Vocab::kMaxId) {
      return node.error(str_cat("an id of special token \"", name, "\" is not a token id"));
    }
    out.push_back(id.get<int32_t>());
  }
  return out;
}

Result<TemplateIds> read_template(const Node& node) {
  const auto single = node.value.find("single");
  if (single == node.value.end() || !single->is_array()) {
    return node.error("\"single\" is missing or not a list");
  }
  TemplateIds out;
  bool seen_text = false;
  for (const json& piece : *single) {
    const bool is_text = piece.is_object() && piece.contains("Sequence");
    const json* body = nullptr;
    if (piece.is_object() && piece.size() == 1) body = &piece.begin().value();
    const bool has_name =
        body != nullptr && body->is_object() && body->contains("id") && (*body)["id"].is_string();
    if (!has_name || !(is_text || piece.contains("SpecialToken"))) {
      return node.error("\"single\" has a piece that is neither Sequence nor SpecialToken");
    }
    const auto name = (*body)["id"].get<std::string>();
    if (is_text) {
      if (seen_text || name != "A") return node.error("\"single\" needs Sequence A exactly once");
      seen_text = true;
      continue;
    }
    MX8_TRY(const auto ids, template_token_ids(node, name));
    auto& side = seen_text ? out.suffix : out.prefix;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!seen_text) return node.error("\"single\" needs Sequence A exactly once");
  return out;
}

Result<DecoderNode> read_decoder_node(const Node& node) {
  const std::string type = node.type();
  DecoderNode out;
  if (type == "ByteLevel") {
    out.kind = DecoderNode::kByteLevel;
  } else if (type == "ByteFallback") {
    out.kind = DecoderNode::kByteFallback;
  } else if (type == "Fuse") {
    out.kind = DecoderNode::kFuse;
  } else if (type == "Replace") {
    MX8_TRY(Pattern pattern, read_pattern(node));
    out.kind = pattern.is_regex ? DecoderNode::kReplaceRegex : DecoderNode::kReplaceString;
    out.pattern = pattern.text;
    out.regex = pattern.regex;
    MX8_TRY(out.content, node.text("content"));
    if (pattern.is_regex && out.content.find('$') != std::string::npos) {
      return unsupported(str_cat(node.where, ": \"content\" with group references"));
    }
  } else if (type == "Metaspace") {
    PreTokenizerNode metaspace;
    MX8_RETURN_IF_ERROR(read_metaspace(node, metaspace));
    out.kind = DecoderNode::kMetaspace;
    out.pattern = metaspace.pattern;
    out.strips_first = metaspace.prepend != PrependScheme::kNever;
  } else if (type == "Strip") {
    out.kind = DecoderNode::kStrip;
    MX8_TRY(out.pattern, node.character("content"));
    MX8_TRY(out.start, node.count("start"));
    MX8_TRY(out.stop, node.count("stop"));
  } else {
    return unknown_node(node, "Sequence, ByteLevel, ByteFallback, Fuse, Replace, Metaspace, Strip");
  }
  return out;
}

}  // namespace

Result<void> check_depth(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return corrupt(str_cat("nested deeper than ", kMaxDepth));
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return {};
}

Result<Normalizer> parse_normalizer(std::string_view text) {
  Normalizer out;
  MX8_RETURN_IF_ERROR(
      read_tree(text, "normalizer", "normalizers", [&](const Node& node) -> Result<void> {
        MX8_TRY(auto parsed, read_normalizer_node(node));
        out.add(std::move(parsed));
        return {};
      }));
  return out;
}

Result<PreTokenizer> parse_pre_tokenizer(std::string_view text) {
  PreTokenizer out;
  MX8_RETURN_IF_ERROR(
      read_tree(text, "pre_tokenizer", "pretokenizers", [&](const Node& node) -> Result<void> {
        MX8_TRY(auto parsed, read_pre_tokenizer_node(node));
        out.add(std::move(parsed));
        return {};
      }));
  return out;
}

Result<TemplateIds> parse_post_processor(std::string_view text) {
  TemplateIds out;
  MX8_RETURN_IF_ERROR(
      read_tree(text, "post_processor", "processors", [&](const Node& node) -> Result<void> {
        if (node.type() == "ByteLevel") return {};  // it moves offsets only
        if (node.type() != "TemplateProcessing") {
          return unknown_node(node, "Sequence, ByteLevel, TemplateProcessing");
        }
        MX8_TRY(const TemplateIds ids, read_template(node));
        out.prefix.insert(out.prefix.begin(), ids.prefix.begin(), ids.prefix.end());
        out.suffix.insert(out.suffix.end(), ids.suffix.begin(), ids.suffix.end());
        return {};
      }));
  return out;
}

Result<std::vector<DecoderNode>> parse_decoder(std::string_view text) {
  std::vector<DecoderNode> out;
  bool fused = false;
  MX8_RETURN_IF_ERROR(read_tree(text, "decoder", "decoders", [&](const Node& node) -> Result<void> {
    MX8_TRY(auto parsed, read_decoder_node(node));
    if (fused && !works_on_fused_text(parsed.kind)) {
      return unsupported(str_cat(node.where, ": ", node.type(),
                                 " after a node that joins all tokens (only Strip may follow)"));
    }
    fused = fused || parsed.kind == DecoderNode::kFuse || parsed.kind == DecoderNode::kByteLevel;
    out.push_back(std::move(parsed));
    return {};
  }));
  if (out.empty()) {
    out.emplace_back();
    out.back().kind = DecoderNode::kJoinWithSpace;
  }
  return out;
}

}  // namespace mx8::text
