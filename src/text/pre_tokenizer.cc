#include "text/pre_tokenizer.h"

#include <algorithm>
#include <string_view>

#include "text/byte_level.h"
#include "text/utf8.h"

namespace mx8::text {

namespace {

struct Part {
  size_t begin, end;
  bool is_match;
};

// Covers [0, size) with the matches and the gaps between them.
void cover(const std::vector<Match>& matches, size_t size, bool invert, std::vector<Part>& parts) {
  parts.clear();
  size_t at = 0;
  for (const Match& m : matches) {
    if (at != m.begin) parts.push_back({at, m.begin, invert});
    parts.push_back({m.begin, m.end, !invert});
    at = m.end;
  }
  if (at != size) parts.push_back({at, size, invert});
}

// Appends the pieces that `behavior` makes of `parts`; empty ones are left out.
void join_parts(const std::vector<Part>& parts, SplitBehavior behavior, size_t base,
                std::vector<Match>& out) {
  const auto add = [&](size_t begin, size_t end) {
    if (begin < end) out.push_back({base + begin, base + end});
  };
  const size_t n = parts.size();
  // [i, j) becomes one piece; `joins` says whether part j belongs to the piece of part j - 1.
  const auto group = [&](auto joins) {
    for (size_t i = 0; i < n;) {
      size_t j = i + 1;
      while (j < n && joins(j)) ++j;
      add(parts[i].begin, parts[j - 1].end);
      i = j;
    }
  };
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const Part& p : parts) {
        if (!p.is_match) add(p.begin, p.end);
      }
      return;
    case SplitBehavior::kIsolated:
      for (const Part& p : parts) add(p.begin, p.end);
      return;
    case SplitBehavior::kContiguous:
      return group([&](size_t j) { return parts[j].is_match == parts[j - 1].is_match; });
    case SplitBehavior::kMergedWithPrevious:
      return group([&](size_t j) { return parts[j].is_match && !parts[j - 1].is_match; });
    case SplitBehavior::kMergedWithNext:
      return group([&](size_t j) { return parts[j - 1].is_match && !parts[j].is_match; });
  }
}

class Cutter {
 public:
  explicit Cutter(Pieces& pieces) : pieces_(pieces) {}

  // `find(text, matches)` lists the matches inside one piece.
  template <class Find>
  void split(SplitBehavior behavior, bool invert, Find find) {
    next_.clear();
    const std::string_view text = pieces_.text;
    for (const Match& range : pieces_.ranges) {
      const std::string_view piece = text.substr(range.begin, range.end - range.begin);
      matches_.clear();
      find(piece, matches_);
      cover(matches_, piece.size(), invert, parts_);
      join_parts(parts_, behavior, range.begin, next_);
    }
    pieces_.ranges.swap(next_);
  }

  template <class Is>
  void split_code_points(SplitBehavior behavior, Is is) {
    split(behavior, false, [&](std::string_view piece, std::vector<Match>& out) {
      for (size_t at = 0; at < piece.size();) {
        const CodePoint c = decode_valid(piece.data() + at);
        if (is(c.value)) out.push_back({at, at + c.size});
        at += c.size;
      }
    });
  }

  void split_string(std::string_view pattern, SplitBehavior behavior, bool invert) {
    split(behavior, invert, [&](std::string_view piece, std::vector<Match>& out) {
      for (size_t at = piece.find(pattern); at != std::string_view::npos;
           at = piece.find(pattern, at + pattern.size())) {
        out.push_back({at, at + pattern.size()});
      }
    });
  }

  void split_regex(const Regex& regex, SplitBehavior behavior, bool invert) {
    split(behavior, invert,
          [&](std::string_view piece, std::vector<Match>& out) { regex.find_all(piece, out); });
  }

  // Rebuilds the text; `write(piece, is_first, out)` appends what a piece becomes.
  template <class Write>
  void rewrite(Write write) {
    std::string out;
    out.reserve(pieces_.text.size() + pieces_.text.size() / 4);
    const std::string_view text = pieces_.text;
    // A first piece that begins later must not move to 0 and pass for the start of the input.
    const bool starts_at_zero = !pieces_.ranges.empty() && pieces_.ranges.front().begin == 0;
    for (Match& range : pieces_.ranges) {
      const size_t begin = out.size();
      const bool first = range.begin == 0 && pieces_.at_start;
      write(text.substr(range.begin, range.end - range.begin), first, out);
      range = {begin, out.size()};
    }
    pieces_.text.swap(out);
    pieces_.at_start = pieces_.at_start && starts_at_zero;
  }

 private:
  Pieces& pieces_;
  std::vector<Match> matches_;
  std::vector<Match> next_;
  std::vector<Part> parts_;
};

void byte_level(const PreTokenizerNode& node, bool is_last, Pieces& pieces, Cutter& cutter) {
  if (node.add_prefix_space) {
    cutter.rewrite([](std::string_view piece, bool, std::string& out) {
      if (piece.front() != ' ') out += ' ';
      out += piece;
    });
  }
  if (node.use_regex) cutter.split_regex(node.regex, SplitBehavior::kIsolated, false);
  if (is_last) return;
  cutter.rewrite(
      [](std::string_view piece, bool, std::string& out) { out += byte_level_encode(piece); });
}

void metaspace(const PreTokenizerNode& node, Cutter& cutter) {
  cutter.rewrite([&](std::string_view piece, bool first, std::string& out) {
    const bool starts_with =
        piece.front() == ' ' || piece.substr(0, node.pattern.size()) == node.pattern;
    const bool wanted =
        node.prepend == PrependScheme::kAlways || (node.prepend == PrependScheme::kFirst && first);
    if (wanted && !starts_with) out += node.pattern;
    for (const char c : piece) {
      if (c == ' ') {
        out += node.pattern;
      } else {
        out += c;
      }
    }
  });
  if (node.split) cutter.split_string(node.pattern, SplitBehavior::kMergedWithNext, false);
}

}  // namespace

void PreTokenizer::apply(Pieces& pieces) const {
  Cutter cutter(pieces);
  for (const PreTokenizerNode& node : nodes_) {
    switch (node.kind) {
      case PreTokenizerNode::kByteLevel:
        byte_level(node, &node == &nodes_.back(), pieces, cutter);
        break;
      case PreTokenizerNode::kSplitString:
        cutter.split_string(node.pattern, node.behavior, node.invert);
        break;
      case PreTokenizerNode::kSplitRegex:
        cutter.split_regex(node.regex, node.behavior, node.invert);
        break;
      case PreTokenizerNode::kDigits:
        cutter.split_code_points(node.behavior, is_numeric);
        break;
      case PreTokenizerNode::kMetaspace:
        metaspace(node, cutter);
        break;
      case PreTokenizerNode::kWhitespace:
        // Runs of word characters, and runs of neither word characters nor white space.
        cutter.split_code_points(SplitBehavior::kRemoved, is_white_space);
        cutter.split_code_points(SplitBehavior::kContiguous, is_word);
        break;
      case PreTokenizerNode::kWhitespaceSplit:
        cutter.split_code_points(SplitBehavior::kRemoved, is_white_space);
        break;
      case PreTokenizerNode::kPunctuation:
        cutter.split_code_points(node.behavior, is_punctuation);
        break;
    }
  }
}

}  // namespace mx8::text
