#include "text/tokenizer.h"

#include <algorithm>

#include "base/strings.h"
#include "base/text_file.h"
#include "text/tokenizer_data.h"
#include "text/utf8.h"

namespace mx8 {

namespace {

using text::TokenizerData;
using text::TracedText;

// More would overflow the 32-bit positions of the merge queue.
constexpr size_t kMaxText = size_t{1} << 31;

// Far above the largest known vocabularies (35 MiB).
constexpr uint64_t kMaxTokenizerFile = uint64_t{1} << 30;

// The file's text, or an empty string where there is no such file.
Result<std::string> read_optional_file(const std::string& path) {
  if (!file_exists(path)) return std::string();
  return read_text_file(path, kMaxTokenizerFile);
}

void append_valid(std::string& out, std::string_view input) {
  if (text::is_valid_utf8(input)) {
    out += input;
  } else {
    text::append_lossy(out, input, /*more_may_follow=*/false);
  }
}

class Encoder {
 public:
  Encoder(const TokenizerData& data, bool allow_special, std::vector<int32_t>& out)
      : data_(data), allow_special_(allow_special), out_(out), scratch_(data.scratch.take()) {}
  ~Encoder() { data_.scratch.give_back(std::move(scratch_)); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  void run(const TracedText& input) {
    std::vector<text::AddedTokenMatcher::Part> parts;
    data_.raw_matcher.find(input, parts);
    for (const auto& part : parts) {
      if (part.token != nullptr) {
        out_.push_back(part.token->id);
      } else {
        TracedText piece = input.slice(part.begin, part.end);
        data_.normalizer.apply(piece);
        normalized(piece);
      }
    }
  }

 private:
  void normalized(const TracedText& input) {
    std::vector<text::AddedTokenMatcher::Part> parts;
    data_.normalized_matcher.find(input, parts);
    for (const auto& part : parts) {
      if (part.token != nullptr) {
        out_.push_back(part.token->id);
      } else {
        plain(input.slice(part.begin, part.end));
      }
    }
  }

  void plain(TracedText input) {
    if (input.bytes.empty()) return;
    text::Pieces pieces;
    pieces.at_start = input.at_start;
    pieces.ranges.push_back({0, input.bytes.size()});
    pieces.text = std::move(input.bytes);
    data_.pre_tokenizer.apply(pieces);
    const std::string_view all = pieces.text;
    for (const text::Match& range : pieces.ranges) {
      data_.bpe.encode(all.substr(range.begin, range.end - range.begin), allow_special_, *scratch_,
                       out_);
    }
  }

  const TokenizerData& data_;
  bool allow_special_;
  std::vector<int32_t>& out_;
  std::unique_ptr<text::BpeScratch> scratch_;
};

std::vector<int32_t> encode_traced(const TokenizerData& data, const TracedText& input,
                                   bool allow_special, bool add_special_tokens) {
  MX8_CHECK(input.bytes.size() < kMaxText, input.bytes.size());
  std::vector<int32_t> ids;
  ids.reserve(input.bytes.size() / 3 + 8);
  if (add_special_tokens) ids = data.post.prefix;
  Encoder(data, allow_special, ids).run(input);
  if (add_special_tokens) {
    ids.insert(ids.end(), data.post.suffix.begin(), data.post.suffix.end());
  }
  return ids;
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerData> data) : data_(std::move(data)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  MX8_TRY(const std::string json, read_text_file(path, kMaxTokenizerFile));
  MX8_TRY(const std::string config, read_optional_file(folder + "/tokenizer_config.json"));
  MX8_TRY(const std::string special_map, read_optional_file(folder + "/special_tokens_map.json"));
  return from_json(json, config, special_map, path);
}

Result<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json,
                                       std::string_view config_json,
                                       std::string_view special_map_json, const std::string& name) {
  MX8_TRY(auto data, text::parse_tokenizer(tokenizer_json, config_json, special_map_json, name));
  return Tokenizer(std::move(data));
}

std::vector<int32_t> Tokenizer::encode(std::string_view input, EncodeOptions options) const {
  TracedText traced;
  traced.at_start = true;
  traced.uniform_trust = options.parse_special;
  append_valid(traced.bytes, input);
  return encode_traced(*data_, traced, options.parse_special, options.add_special_tokens);
}

std::vector<int32_t> Tokenizer::encode_segments(std::span<const TextSpan> spans,
                                                bool add_special_tokens) const {
  TracedText traced;
  traced.at_start = true;
  for (const TextSpan& span : spans) {
    append_valid(traced.bytes, span.text);
    traced.trust.resize(traced.bytes.size(), span.trusted ? uint8_t{1} : uint8_t{0});
  }
  return encode_traced(*data_, traced, /*allow_special=*/false, add_special_tokens);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  text::StreamDecoder decoder(data_->decoder);
  std::string out;
  for (const int32_t id : ids) {
    if (!data_->has(id) || (skip_special && data_->is_special(id))) continue;
    decoder.push(data_->token_text(id), out);
  }
  decoder.flush(out);
  return out;
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  if (!data_->has(id)) return std::nullopt;
  return std::string(data_->token_text(id));
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const int32_t id = data_->find(token);
  return id == text::kNoToken ? std::nullopt : std::optional<int32_t>(id);
}

int32_t Tokenizer::vocab_size() const { return data_->vocab_size; }
bool Tokenizer::is_special(int32_t id) const { return data_->is_special(id); }
const std::vector<int32_t>& Tokenizer::special_ids() const { return data_->special_ids; }
const std::string& Tokenizer::bos_token() const { return data_->roles[text::kBos].text; }
const std::string& Tokenizer::eos_token() const { return data_->roles[text::kEos].text; }
const std::string& Tokenizer::unk_token() const { return data_->roles[text::kUnk].text; }
const std::string& Tokenizer::pad_token() const { return data_->roles[text::kPad].text; }
std::optional<int32_t> Tokenizer::bos_id() const { return data_->roles[text::kBos].id; }
std::optional<int32_t> Tokenizer::eos_id() const { return data_->roles[text::kEos].id; }
std::optional<int32_t> Tokenizer::unk_id() const { return data_->roles[text::kUnk].id; }
std::optional<int32_t> Tokenizer::pad_id() const { return data_->roles[text::kPad].id; }

bool Tokenizer::adds_bos() const {
  const auto& prefix = data_->post.prefix;
  return !prefix.empty() && bos_id() == prefix.front();
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special)
    : data_(tokenizer.data_),
      decoder_(std::make_unique<text::StreamDecoder>(data_->decoder)),
      skip_special_(skip_special) {}
Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;
Detokenizer::~Detokenizer() = default;

std::string Detokenizer::push(int32_t id) {
  std::string out;
  if (data_->has(id) && !(skip_special_ && data_->is_special(id))) {
    decoder_->push(data_->token_text(id), out);
  }
  return out;
}

std::string Detokenizer::flush() {
  std::string out;
  decoder_->flush(out);
  return out;
}

namespace text {

std::unique_ptr<BpeScratch> ScratchPool::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<BpeScratch>();
  auto scratch = std::move(idle_.back());
  idle_.pop_back();
  return scratch;
}

void ScratchPool::give_back(std::unique_ptr<BpeScratch> scratch) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

bool TokenizerData::has(int32_t id) const {
  if (bpe.vocab().has(id)) return true;
  const auto it = std::lower_bound(added.begin(), added.end(), id,
                                   [](const AddedToken& t, int32_t i) { return t.id < i; });
  return it != added.end() && it->id == id;
}

std::string_view TokenizerData::token_text(int32_t id) const {
  if (bpe.vocab().has(id)) return bpe.vocab().text(id);
  const auto it = std::lower_bound(added.begin(), added.end(), id,
                                   [](const AddedToken& t, int32_t i) { return t.id < i; });
  return it != added.end() && it->id == id ? std::string_view(it->content) : std::string_view();
}

int32_t TokenizerData::find(std::string_view token) const {
  const int32_t id = bpe.vocab().find(token);
  if (id != kNoToken) return id;
  const auto it = std::find_if(added.begin(), added.end(),
                               [&](const AddedToken& t) { return t.content == token; });
  return it == added.end() ? kNoToken : it->id;
}

}  // namespace text

}  // namespace mx8
