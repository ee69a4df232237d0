// Hugging Face tokenizers (tokenizer.json with a BPE model), without Python.
//
//   auto tokenizer = Tokenizer::load("SmolLM2-135M-Instruct");
//   std::vector<int32_t> ids = tokenizer->encode("Hello", {.add_special_tokens = true});
//   std::string text = tokenizer->decode(ids, /*skip_special=*/true);
//
// Results equal those of the Python package `tokenizers` on the same file. A node of the file that
// this reader does not know is refused by name at load; nothing is ignored. Token ids are row
// numbers of the embedding matrix. A loaded Tokenizer is immutable and may be used from several
// threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/text_span.h"

namespace mx8 {

namespace text {
struct TokenizerData;
class StreamDecoder;
}  // namespace text

struct EncodeOptions {
  // Adds what the file's post-processor adds (BOS, EOS...). Off for text that a chat template
  // rendered: such a template writes its own BOS.
  bool add_special_tokens = true;
  // Special-token text in the input becomes the special token. Off for text from a user, which is
  // then encoded as plain text whatever it spells.
  bool parse_special = false;
};

class Tokenizer {
 public:
  // Reads `folder`/tokenizer.json and, where present, tokenizer_config.json,
  // special_tokens_map.json. Errors: kNotFound (no tokenizer.json), kCorrupt (not JSON, wrong
  // types, contradictions), kUnsupported (a node or model we don't have, by name).
  static Result<Tokenizer> load(const std::string& folder);
  // The same from memory; `config_json` and `special_map_json` may be empty. `name` is what error
  // messages call the file.
  static Result<Tokenizer> from_json(std::string_view tokenizer_json, std::string_view config_json,
                                     std::string_view special_map_json = {},
                                     const std::string& name = "tokenizer.json");

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // `text` should be UTF-8; each invalid byte sequence is read as U+FFFD. An input of any content
  // takes time close to linear in its length.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // Encodes the concatenation of `spans`. Special tokens are recognised only where their text lies
  // wholly in trusted spans, so no caller text, alone or joined with its surroundings, becomes one.
  std::vector<int32_t> encode_segments(std::span<const TextSpan> spans,
                                       bool add_special_tokens = false) const;

  // Unknown ids decode to nothing. Invalid bytes become U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  // The token's text as the file spells it (byte-level alphabet, not decoded), or nothing.
  std::optional<std::string> id_to_token(int32_t id) const;
  std::optional<int32_t> token_to_id(std::string_view token) const;

  // One more than the largest id, added tokens included. Ids below it may be holes.
  int32_t vocab_size() const;
  bool is_special(int32_t id) const;
  // Ascending.
  const std::vector<int32_t>& special_ids() const;

  // From tokenizer_config.json, else special_tokens_map.json. Empty strings and no id where the
  // files name none.
  const std::string& bos_token() const;
  const std::string& eos_token() const;
  const std::string& unk_token() const;
  const std::string& pad_token() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> unk_id() const;
  std::optional<int32_t> pad_id() const;

  // True when the post-processor puts the BOS token first (encode with add_special_tokens).
  bool adds_bos() const;

 private:
  friend class Detokenizer;
  explicit Tokenizer(std::shared_ptr<const text::TokenizerData> data);
  std::shared_ptr<const text::TokenizerData> data_;
};

// Turns ids into text one at a time. The concatenation of everything push() and flush() return
// equals Tokenizer::decode of the same ids; no returned piece ends inside a character. Text is
// handed out as soon as no later token can change it. It keeps the tokenizer's tables alive; memory
// is bounded by the longest run of tokens that could still change.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true);
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;
  ~Detokenizer();

  // The text that became certain with this token: often empty or the token's text.
  std::string push(int32_t id);
  // The rest; afterwards the object is as new.
  std::string flush();

 private:
  std::shared_ptr<const text::TokenizerData> data_;
  std::unique_ptr<text::StreamDecoder> decoder_;
  bool skip_special_;
};

}  // namespace mx8
