// The normaliser nodes of tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace mx8::text {

// Valid UTF-8 that still knows which of its bytes come from trusted input, and whether its first
// character is the first of the whole input.
struct TracedText {
  std::string bytes;
  std::vector<uint8_t> trust;  // one a byte; empty when all bytes are alike
  bool uniform_trust = false;  // what an empty `trust` means
  bool at_start = false;

  bool trusted(size_t begin, size_t end) const;    // every byte is
  bool untrusted(size_t begin, size_t end) const;  // no byte is trusted
  TracedText slice(size_t begin, size_t end) const;
};

struct NormalizerNode {
  enum Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStrip,
    kPrepend,
    kReplaceString,
    kReplaceRegex,
  } kind;
  std::string pattern;               // kReplaceString
  std::string content;               // kPrepend, kReplace*
  Regex regex;                       // kReplaceRegex
  bool left = false, right = false;  // kStrip
};

class Normalizer {
 public:
  void add(NormalizerNode node) { nodes_.push_back(std::move(node)); }
  bool empty() const { return nodes_.empty(); }
  void apply(TracedText& text) const;

 private:
  std::vector<NormalizerNode> nodes_;
};

}  // namespace mx8::text
