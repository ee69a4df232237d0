#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace mx8::text {

namespace {

// Writes a new text out of ranges of an old one, carrying trust and the start along.
class Rewriter {
 public:
  explicit Rewriter(const TracedText& in) : in_(in) {
    out_.bytes.reserve(in.bytes.size());
    out_.uniform_trust = in.uniform_trust;
    out_.at_start = in.at_start;
  }

  void copy(size_t begin, size_t end) {
    out_.bytes.append(in_.bytes, begin, end - begin);
    if (!in_.trust.empty()) {
      out_.trust.insert(out_.trust.end(), in_.trust.begin() + static_cast<ptrdiff_t>(begin),
                        in_.trust.begin() + static_cast<ptrdiff_t>(end));
    }
  }

  // `text` stands for the input's [begin, end): trusted only if all of that is.
  void emit(std::string_view text, size_t begin, size_t end) {
    if (text.empty() && out_.bytes.empty() && end > begin) out_.at_start = false;
    out_.bytes += text;
    if (!in_.trust.empty()) {
      out_.trust.resize(out_.bytes.size(), in_.trusted(begin, end) ? uint8_t{1} : uint8_t{0});
    }
  }

  TracedText finish() { return std::move(out_); }

 private:
  const TracedText& in_;
  TracedText out_;
};

void replace(TracedText& text, const std::vector<Match>& matches, std::string_view content) {
  if (matches.empty()) return;
  Rewriter out(text);
  size_t at = 0;
  for (const Match& m : matches) {
    out.copy(at, m.begin);
    out.emit(content, m.begin, m.end);
    at = m.end;
  }
  out.copy(at, text.bytes.size());
  text = out.finish();
}

void replace_string(TracedText& text, std::string_view pattern, std::string_view content) {
  std::vector<Match> matches;
  for (size_t at = text.bytes.find(pattern); at != std::string::npos;
       at = text.bytes.find(pattern, at + pattern.size())) {
    matches.push_back({at, at + pattern.size()});
  }
  replace(text, matches, content);
}

void strip(TracedText& text, bool left, bool right) {
  size_t begin = 0, end = text.bytes.size();
  if (left) begin = leading_white_space(text.bytes);
  if (right) end = std::max(begin, end - trailing_white_space(text.bytes));
  if (begin > 0 || end < text.bytes.size()) text = text.slice(begin, end);
}

// Sorts each run of combining marks by class. utf8proc does this with a bubble sort, whose time is
// quadratic in the run, so the runs are handed to it sorted.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto combining = [](utf8proc_int32_t c) -> int {
    const int value = utf8proc_get_property(c)->combining_class;
    return value == 0 || is_opaque_to_normalizer(static_cast<uint32_t>(c)) ? 0 : value;
  };
  for (size_t i = 0; i < points.size(); ++i) {
    if (combining(points[i]) == 0) continue;
    size_t end = i + 1;
    while (end < points.size() && combining(points[end]) != 0) ++end;
    if (end - i > 1) {
      std::stable_sort(points.begin() + static_cast<ptrdiff_t>(i),
                       points.begin() + static_cast<ptrdiff_t>(end),
                       [&](auto a, auto b) { return combining(a) < combining(b); });
    }
    i = end - 1;
  }
}

class UnicodeForm {
 public:
  UnicodeForm(bool compose, bool compat) : compose_(compose), compat_(compat) {}

  std::string_view convert(std::string_view segment) {
    points_.clear();
    const auto options =
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compat_ ? UTF8PROC_COMPAT : 0));
    for (size_t at = 0; at < segment.size();) {
      const CodePoint c = decode_valid(segment.data() + at);
      at += c.size;
      if (is_opaque_to_normalizer(c.value)) {
        points_.push_back(static_cast<utf8proc_int32_t>(c.value));
        continue;
      }
      utf8proc_int32_t parts[32];
      const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts, 32,
                                             options, nullptr);
      MX8_CHECK(n >= 0 && n <= 32, n, c.value);
      points_.insert(points_.end(), parts, parts + n);
    }
    order_marks(points_);
    auto length = static_cast<utf8proc_ssize_t>(points_.size());
    if (compose_) {
      const auto flags = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
      length = utf8proc_normalize_utf32(points_.data(), length, flags);
    }
    out_.clear();
    for (utf8proc_ssize_t i = 0; i < length; ++i) {
      append_utf8(out_, static_cast<uint32_t>(points_[static_cast<size_t>(i)]));
    }
    return out_;
  }

 private:
  bool compose_, compat_;
  std::vector<utf8proc_int32_t> points_;
  std::string out_;
};

// utf8proc takes U+11A7, just before the trailing Hangul consonants, for one of them and loses it
// when composing. It never changes and joins nothing, so it need not be shown to utf8proc after a
// syllable.
constexpr uint32_t kBeforeTrailingConsonants = 0x11A7;

// Code points below these never change and never join what stands before them.
constexpr uint32_t kInertNfc = 0x300;
constexpr uint32_t kInertOthers = 0x80;

void unicode_form(TracedText& text, bool compose, bool compat) {
  const uint32_t inert = compose && !compat ? kInertNfc : kInertOthers;
  const std::string& in = text.bytes;
  const auto is_inert = [&](size_t i) {
    const uint32_t c = decode_valid(in.data() + i).value;
    return c < inert || c == kBeforeTrailingConsonants || is_opaque_to_normalizer(c);
  };
  size_t at = 0;
  while (at < in.size() && is_inert(at)) at += decode_valid(in.data() + at).size;
  if (at == in.size()) return;

  Rewriter out(text);
  UnicodeForm form(compose, compat);
  size_t done = 0;
  for (at = 0; at < in.size();) {
    // [done, at) is inert. A segment is the last inert character, which may take marks, and all
    // that follows up to the next inert one.
    size_t last = at;
    while (at < in.size() && is_inert(at)) {
      last = at;
      at += decode_valid(in.data() + at).size;
    }
    if (at == in.size()) break;
    while (at < in.size() && !is_inert(at)) at += decode_valid(in.data() + at).size;
    out.copy(done, last);
    out.emit(form.convert(std::string_view(in).substr(last, at - last)), last, at);
    done = at;
  }
  out.copy(done, in.size());
  text = out.finish();
}

template <class Append>
void map_code_points(TracedText& text, Append append) {
  Rewriter out(text);
  std::string piece;
  for (size_t at = 0; at < text.bytes.size();) {
    const CodePoint c = decode_valid(text.bytes.data() + at);
    piece.clear();
    append(piece, c.value);
    out.emit(piece, at, at + c.size);
    at += c.size;
  }
  text = out.finish();
}

void apply_node(const NormalizerNode& node, TracedText& text) {
  switch (node.kind) {
    case NormalizerNode::kNfc:
      return unicode_form(text, true, false);
    case NormalizerNode::kNfd:
      return unicode_form(text, false, false);
    case NormalizerNode::kNfkc:
      return unicode_form(text, true, true);
    case NormalizerNode::kNfkd:
      return unicode_form(text, false, true);
    case NormalizerNode::kLowercase:
      return map_code_points(text, append_lowercase);
    case NormalizerNode::kStrip:
      return strip(text, node.left, node.right);
    case NormalizerNode::kPrepend:
      if (!text.bytes.empty()) replace(text, {{0, 0}}, node.content);
      return;
    case NormalizerNode::kReplaceString:
      return replace_string(text, node.pattern, node.content);
    case NormalizerNode::kReplaceRegex: {
      std::vector<Match> matches;
      node.regex.find_all(text.bytes, matches);
      return replace(text, matches, node.content);
    }
  }
}

}  // namespace

bool TracedText::trusted(size_t begin, size_t end) const {
  if (trust.empty()) return uniform_trust;
  if (begin == end) return begin < trust.size() && trust[begin] != 0;
  return std::all_of(trust.begin() + static_cast<ptrdiff_t>(begin),
                     trust.begin() + static_cast<ptrdiff_t>(end), [](uint8_t t) { return t != 0; });
}

bool TracedText::untrusted(size_t begin, size_t end) const {
  if (trust.empty()) return !uniform_trust;
  return std::all_of(trust.begin() + static_cast<ptrdiff_t>(begin),
                     trust.begin() + static_cast<ptrdiff_t>(end), [](uint8_t t) { return t == 0; });
}

TracedText TracedText::slice(size_t begin, size_t end) const {
  TracedText out;
  out.bytes = bytes.substr(begin, end - begin);
  out.uniform_trust = uniform_trust;
  out.at_start = at_start && begin == 0;
  if (!trust.empty()) {
    out.trust.assign(trust.begin() + static_cast<ptrdiff_t>(begin),
                     trust.begin() + static_cast<ptrdiff_t>(end));
  }
  return out;
}

void Normalizer::apply(TracedText& text) const {
  for (const NormalizerNode& node : nodes_) apply_node(node, text);
}

}  // namespace mx8::text
