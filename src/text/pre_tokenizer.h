// The pre-tokeniser nodes of tokenizer.json: they cut a text into the pieces inside which BPE may
// merge.
#pragma once

#include <string>
#include <vector>

#include "text/regex.h"

namespace mx8::text {

// Byte ranges of `text`, in order; what lies in no range is dropped.
struct Pieces {
  std::string text;  // valid UTF-8
  std::vector<Match> ranges;
  bool at_start = false;  // the first character is the first of the whole input
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kAlways, kFirst, kNever };

struct PreTokenizerNode {
  enum Kind {
    kByteLevel,
    kSplitString,
    kSplitRegex,
    kDigits,
    kMetaspace,
    kWhitespace,
    kWhitespaceSplit,
    kPunctuation,
  } kind;
  bool add_prefix_space = false;  // kByteLevel
  bool use_regex = false;         // kByteLevel
  std::string pattern;            // kSplitString; kMetaspace: the replacement character
  Regex regex;                    // kSplitRegex, kByteLevel
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;                             // kSplit*
  PrependScheme prepend = PrependScheme::kAlways;  // kMetaspace
  bool split = true;                               // kMetaspace
};

class PreTokenizer {
 public:
  void add(PreTokenizerNode node) { nodes_.push_back(std::move(node)); }

  // The pieces are left as raw bytes, each of which stands for its character in the byte-level
  // alphabet. True when the last node is ByteLevel, so that text need not be widened for it.
  bool pieces_are_bytes() const {
    return !nodes_.empty() && nodes_.back().kind == PreTokenizerNode::kByteLevel;
  }

  // Cuts `pieces`, which hold one range over the whole text.
  void apply(Pieces& pieces) const;

 private:
  std::vector<PreTokenizerNode> nodes_;
};

}  // namespace mx8::text
