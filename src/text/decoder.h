// The decoder nodes of tokenizer.json, as one pipeline that works token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace mx8::text {

struct DecoderNode {
  enum Kind {
    kByteLevel,
    kByteFallback,
    kFuse,
    kReplaceString,
    kReplaceRegex,
    kMetaspace,
    kStrip,
    kJoinWithSpace,  // what a file without a decoder means
  } kind;
  std::string pattern;  // kReplaceString; kMetaspace and kStrip: the character
  std::string content;  // kReplace*
  Regex regex;
  bool strips_first = false;   // kMetaspace: the first token loses its replacement characters
  size_t start = 0, stop = 0;  // kStrip
};

// True when `node` may stand after a node that makes one text of all tokens. Only what can be done
// to a text in pieces may.
bool works_on_fused_text(DecoderNode::Kind kind);

// Feeds tokens through the nodes. Everything certain comes out at once; what a later token can
// still change is held back.
class StreamDecoder {
 public:
  class Stage;

  explicit StreamDecoder(const std::vector<DecoderNode>& nodes);  // keeps a reference
  ~StreamDecoder();

  // Appends text to `out`: always whole characters.
  void push(std::string_view token, std::string& out);
  void flush(std::string& out);

 private:
  void reset();
  const std::vector<DecoderNode>& nodes_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

}  // namespace mx8::text
