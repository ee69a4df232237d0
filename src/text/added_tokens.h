// Tokens that are matched as text before the model sees it: special tokens and other added ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"

namespace mx8::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space after it along
  bool normalized = false;   // matched in the normalised text, after normalising itself
  bool special = false;
};

// Finds the tokens of one list in a text: the leftmost, of those the longest.
class AddedTokenMatcher {
 public:
  // `contents[i]` is what tokens[i] looks like in the text; of equal ones the first counts, empty
  // ones never match.
  AddedTokenMatcher(std::vector<AddedToken> tokens, const std::vector<std::string>& contents);
  AddedTokenMatcher() = default;

  struct Part {
    const AddedToken* token;  // null: plain text
    size_t begin, end;
  };
  // Parts in order. White space that lstrip or rstrip takes is in no plain part. A special token is
  // matched only where its text is trusted.
  void find(const TracedText& text, std::vector<Part>& parts) const;

  bool empty() const { return tokens_.empty(); }

 private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> children;
    int32_t token = -1;  // index
  };
  struct Found {
    std::optional<Part> part;
    // Set when the longest match is a special token that someone untrusted spelled out: as in the
    // Python package (encode_special_tokens), other tokens inside it are not looked for.
    size_t plain_until = 0;
  };
  Found match_at(const TracedText& text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::vector<uint8_t> first_bytes_;  // 256 flags
};

}  // namespace mx8::text
