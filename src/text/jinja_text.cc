#include "text/jinja_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace mx8::jinja {

void Text::append(std::string_view bytes, bool marked) {
  if (bytes.empty()) return;
  size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (!marked) return;
  if (!marks_.empty() && marks_.back().end == begin) {
    marks_.back().end = bytes_.size();
  } else {
    marks_.push_back({begin, bytes_.size()});
  }
}

void Text::append(const Text& other) { append_part(other, 0, other.size()); }

void Text::append_part(const Text& other, size_t offset, size_t length) {
  offset = std::min(offset, other.size());
  size_t end = offset + std::min(length, other.size() - offset);
  auto mark = std::lower_bound(other.marks_.begin(), other.marks_.end(), offset,
                               [](const Mark& m, size_t at) { return m.end <= at; });
  std::string_view from = other.bytes_;
  size_t at = offset;
  for (; mark != other.marks_.end() && mark->begin < end; ++mark) {
    size_t begin = std::max(mark->begin, offset), stop = std::min(mark->end, end);
    append(from.substr(at, begin - at), false);
    append(from.substr(begin, stop - begin), true);
    at = stop;
  }
  append(from.substr(at, end - at), false);
}

Text Text::part(size_t offset, size_t length) const {
  Text out;
  out.append_part(*this, offset, length);
  return out;
}

void Text::for_each_run(const std::function<void(std::string_view, bool)>& f) const {
  std::string_view all = bytes_;
  size_t at = 0;
  for (const Mark& m : marks_) {
    if (m.begin > at) f(all.substr(at, m.begin - at), false);
    f(all.substr(m.begin, m.end - m.begin), true);
    at = m.end;
  }
  if (at < all.size()) f(all.substr(at), false);
}

bool Text::Cursor::marked(size_t offset) {
  while (next_ < text_.marks_.size() && text_.marks_[next_].end <= offset) ++next_;
  return next_ < text_.marks_.size() && text_.marks_[next_].begin <= offset;
}

bool valid_utf8(std::string_view s) {
  auto data = reinterpret_cast<const utf8proc_uint8_t*>(s.data());
  for (size_t i = 0; i < s.size();) {
    utf8proc_int32_t c = 0;
    utf8proc_ssize_t n =
        utf8proc_iterate(data + i, static_cast<utf8proc_ssize_t>(s.size() - i), &c);
    if (n <= 0) return false;
    i += static_cast<size_t>(n);
  }
  return true;
}

namespace {
bool is_lead(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }
}  // namespace

size_t code_points(std::string_view s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), is_lead));
}

size_t offset_of(std::string_view s, size_t index) {
  size_t i = 0;
  for (; i < s.size(); ++i) {
    if (is_lead(s[i]) && index-- == 0) return i;
  }
  return s.size();
}

char32_t next_code_point(std::string_view s, size_t& offset) {
  auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(s[i])); };
  char32_t lead = byte(offset++);
  if (lead < 0x80) return lead;
  int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t c = lead & (0x3Fu >> more);
  for (; more > 0 && offset < s.size(); --more) c = c << 6 | (byte(offset++) & 0x3F);
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  utf8proc_uint8_t buffer[4];
  utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), buffer);
  out.append(reinterpret_cast<char*>(buffer), static_cast<size_t>(n));
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter(char32_t c) {
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

// Superscripts and the like are digits but not decimals; utf8proc has no digit values, so the
// blocks are listed.
bool is_digit(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND || c == 0xB2 || c == 0xB3 || c == 0xB9 ||
         (c >= 0x1369 && c <= 0x1371) || c == 0x19DA || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
         (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490) || c == 0x24EA || (c >= 0x24F5 && c <= 0x24FD) ||
         c == 0x24FF || (c >= 0x2776 && c <= 0x277E) || (c >= 0x2780 && c <= 0x2788) ||
         (c >= 0x278A && c <= 0x2792) || (c >= 0x10A40 && c <= 0x10A43) ||
         (c >= 0x10E60 && c <= 0x10E68) || (c >= 0x11052 && c <= 0x1105A) ||
         (c >= 0x1F100 && c <= 0x1F10A);
}

bool is_numeric(char32_t c) {
  utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

char32_t to_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t to_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
// Besides the letters, numerals such as U+2167 have case.
bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || (to_lower(c) != c && !is_title(c));
}
bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || (to_upper(c) != c && !is_title(c));
}
bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

struct LongUpper {
  char32_t c;
  const char* upper;
};
// Characters whose upper case is several characters (SpecialCasing.txt, unconditional).
constexpr LongUpper kLongUpper[] = {{0xDF, "\x53\x53"},
                                    {0x149, "\xca\xbc\x4e"},
                                    {0x1F0, "\x4a\xcc\x8c"},
                                    {0x390, "\xce\x99\xcc\x88\xcc\x81"},
                                    {0x3B0, "\xce\xa5\xcc\x88\xcc\x81"},
                                    {0x587, "\xd4\xb5\xd5\x92"},
                                    {0x1E96, "\x48\xcc\xb1"},
                                    {0x1E97, "\x54\xcc\x88"},
                                    {0x1E98, "\x57\xcc\x8a"},
                                    {0x1E99, "\x59\xcc\x8a"},
                                    {0x1E9A, "\x41\xca\xbe"},
                                    {0x1F50, "\xce\xa5\xcc\x93"},
                                    {0x1F52, "\xce\xa5\xcc\x93\xcc\x80"},
                                    {0x1F54, "\xce\xa5\xcc\x93\xcc\x81"},
                                    {0x1F56, "\xce\xa5\xcc\x93\xcd\x82"},
                                    {0x1F80, "\xe1\xbc\x88\xce\x99"},
                                    {0x1F81, "\xe1\xbc\x89\xce\x99"},
                                    {0x1F82, "\xe1\xbc\x8a\xce\x99"},
                                    {0x1F83, "\xe1\xbc\x8b\xce\x99"},
                                    {0x1F84, "\xe1\xbc\x8c\xce\x99"},
                                    {0x1F85, "\xe1\xbc\x8d\xce\x99"},
                                    {0x1F86, "\xe1\xbc\x8e\xce\x99"},
                                    {0x1F87, "\xe1\xbc\x8f\xce\x99"},
                                    {0x1F88, "\xe1\xbc\x88\xce\x99"},
                                    {0x1F89, "\xe1\xbc\x89\xce\x99"},
                                    {0x1F8A, "\xe1\xbc\x8a\xce\x99"},
                                    {0x1F8B, "\xe1\xbc\x8b\xce\x99"},
                                    {0x1F8C, "\xe1\xbc\x8c\xce\x99"},
                                    {0x1F8D, "\xe1\xbc\x8d\xce\x99"},
                                    {0x1F8E, "\xe1\xbc\x8e\xce\x99"},
                                    {0x1F8F, "\xe1\xbc\x8f\xce\x99"},
                                    {0x1F90, "\xe1\xbc\xa8\xce\x99"},
                                    {0x1F91, "\xe1\xbc\xa9\xce\x99"},
                                    {0x1F92, "\xe1\xbc\xaa\xce\x99"},
                                    {0x1F93, "\xe1\xbc\xab\xce\x99"},
                                    {0x1F94, "\xe1\xbc\xac\xce\x99"},
                                    {0x1F95, "\xe1\xbc\xad\xce\x99"},
                                    {0x1F96, "\xe1\xbc\xae\xce\x99"},
                                    {0x1F97, "\xe1\xbc\xaf\xce\x99"},
                                    {0x1F98, "\xe1\xbc\xa8\xce\x99"},
                                    {0x1F99, "\xe1\xbc\xa9\xce\x99"},
                                    {0x1F9A, "\xe1\xbc\xaa\xce\x99"},
                                    {0x1F9B, "\xe1\xbc\xab\xce\x99"},
                                    {0x1F9C, "\xe1\xbc\xac\xce\x99"},
                                    {0x1F9D, "\xe1\xbc\xad\xce\x99"},
                                    {0x1F9E, "\xe1\xbc\xae\xce\x99"},
                                    {0x1F9F, "\xe1\xbc\xaf\xce\x99"},
                                    {0x1FA0, "\xe1\xbd\xa8\xce\x99"},
                                    {0x1FA1, "\xe1\xbd\xa9\xce\x99"},
                                    {0x1FA2, "\xe1\xbd\xaa\xce\x99"},
                                    {0x1FA3, "\xe1\xbd\xab\xce\x99"},
                                    {0x1FA4, "\xe1\xbd\xac\xce\x99"},
                                    {0x1FA5, "\xe1\xbd\xad\xce\x99"},
                                    {0x1FA6, "\xe1\xbd\xae\xce\x99"},
                                    {0x1FA7, "\xe1\xbd\xaf\xce\x99"},
                                    {0x1FA8, "\xe1\xbd\xa8\xce\x99"},
                                    {0x1FA9, "\xe1\xbd\xa9\xce\x99"},
                                    {0x1FAA, "\xe1\xbd\xaa\xce\x99"},
                                    {0x1FAB, "\xe1\xbd\xab\xce\x99"},
                                    {0x1FAC, "\xe1\xbd\xac\xce\x99"},
                                    {0x1FAD, "\xe1\xbd\xad\xce\x99"},
                                    {0x1FAE, "\xe1\xbd\xae\xce\x99"},
                                    {0x1FAF, "\xe1\xbd\xaf\xce\x99"},
                                    {0x1FB2, "\xe1\xbe\xba\xce\x99"},
                                    {0x1FB3, "\xce\x91\xce\x99"},
                                    {0x1FB4, "\xce\x86\xce\x99"},
                                    {0x1FB6, "\xce\x91\xcd\x82"},
                                    {0x1FB7, "\xce\x91\xcd\x82\xce\x99"},
                                    {0x1FBC, "\xce\x91\xce\x99"},
                                    {0x1FC2, "\xe1\xbf\x8a\xce\x99"},
                                    {0x1FC3, "\xce\x97\xce\x99"},
                                    {0x1FC4, "\xce\x89\xce\x99"},
                                    {0x1FC6, "\xce\x97\xcd\x82"},
                                    {0x1FC7, "\xce\x97\xcd\x82\xce\x99"},
                                    {0x1FCC, "\xce\x97\xce\x99"},
                                    {0x1FD2, "\xce\x99\xcc\x88\xcc\x80"},
                                    {0x1FD3, "\xce\x99\xcc\x88\xcc\x81"},
                                    {0x1FD6, "\xce\x99\xcd\x82"},
                                    {0x1FD7, "\xce\x99\xcc\x88\xcd\x82"},
                                    {0x1FE2, "\xce\xa5\xcc\x88\xcc\x80"},
                                    {0x1FE3, "\xce\xa5\xcc\x88\xcc\x81"},
                                    {0x1FE4, "\xce\xa1\xcc\x93"},
                                    {0x1FE6, "\xce\xa5\xcd\x82"},
                                    {0x1FE7, "\xce\xa5\xcc\x88\xcd\x82"},
                                    {0x1FF2, "\xe1\xbf\xba\xce\x99"},
                                    {0x1FF3, "\xce\xa9\xce\x99"},
                                    {0x1FF4, "\xce\x8f\xce\x99"},
                                    {0x1FF6, "\xce\xa9\xcd\x82"},
                                    {0x1FF7, "\xce\xa9\xcd\x82\xce\x99"},
                                    {0x1FFC, "\xce\xa9\xce\x99"},
                                    {0xFB00, "\x46\x46"},
                                    {0xFB01, "\x46\x49"},
                                    {0xFB02, "\x46\x4c"},
                                    {0xFB03, "\x46\x46\x49"},
                                    {0xFB04, "\x46\x46\x4c"},
                                    {0xFB05, "\x53\x54"},
                                    {0xFB06, "\x53\x54"},
                                    {0xFB13, "\xd5\x84\xd5\x86"},
                                    {0xFB14, "\xd5\x84\xd4\xb5"},
                                    {0xFB15, "\xd5\x84\xd4\xbb"},
                                    {0xFB16, "\xd5\x8e\xd5\x86"},
                                    {0xFB17, "\xd5\x84\xd4\xbd"}};

std::string upper_of(char32_t c) {
  auto it = std::lower_bound(std::begin(kLongUpper), std::end(kLongUpper), c,
                             [](const LongUpper& e, char32_t v) { return e.c < v; });
  if (it != std::end(kLongUpper) && it->c == c) return it->upper;
  std::string out;
  append_utf8(out, to_upper(c));
  return out;
}

// Capital sigma ends a word as the final form: a cased character before it and none behind.
bool final_sigma(std::string_view s, size_t begin, size_t end) {
  bool before = false;
  for (size_t i = begin; i > 0 && !before;) {
    do --i;
    while (i > 0 && !is_lead(s[i]));
    size_t at = i;
    char32_t c = next_code_point(s, at);
    if (is_cased(c)) before = true;
    if (!is_cased(c) && category(c) != UTF8PROC_CATEGORY_MN && c != '\'') break;
  }
  if (!before) return false;
  for (size_t i = end; i < s.size();) {
    char32_t c = next_code_point(s, i);
    if (is_cased(c)) return false;
    if (category(c) != UTF8PROC_CATEGORY_MN && c != '\'') break;
  }
  return true;
}

std::string lower_of(std::string_view s, size_t begin, size_t end, char32_t c) {
  std::string out;
  if (c == 0x130) {
    out = "i\xcc\x87";
  } else if (c == 0x3A3 && final_sigma(s, begin, end)) {
    append_utf8(out, 0x3C2);
  } else {
    append_utf8(out, to_lower(c));
  }
  return out;
}

// Maps each code point with f(code point, begin, end) -> bytes.
template <class F>
Text map_chars(const Text& s, F f) {
  Text out;
  Text::Cursor cursor(s);
  for (size_t i = 0; i < s.size();) {
    size_t begin = i;
    char32_t c = next_code_point(s.bytes(), i);
    out.append(f(c, begin, i), cursor.marked(begin));
  }
  return out;
}

bool in_set(char32_t c, const std::string* chars) {
  if (chars == nullptr) return is_space(c);
  for (size_t i = 0; i < chars->size();) {
    if (next_code_point(*chars, i) == c) return true;
  }
  return false;
}

size_t previous(std::string_view s, size_t offset) {
  do --offset;
  while (offset > 0 && !is_lead(s[offset]));
  return offset;
}

}  // namespace

int decimal_value(char32_t c) {
  if (category(c) != UTF8PROC_CATEGORY_ND) return -1;
  char32_t zero = c;
  while (category(zero - 1) == UTF8PROC_CATEGORY_ND) --zero;
  return static_cast<int>((c - zero) % 10);
}

bool is_identifier_char(char32_t c) {
  if (c < 0x80) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  utf8proc_category_t k = category(c);
  return is_letter(c) || k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC ||
         k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_PC;
}

bool is_printable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

size_t rstrip_offset(std::string_view s) {
  size_t end = s.size();
  while (end > 0) {
    size_t at = previous(s, end), i = at;
    if (!is_space(next_code_point(s, i))) break;
    end = at;
  }
  return end;
}

Text strip(const Text& s, Side side, const std::string* chars) {
  std::string_view b = s.bytes();
  size_t begin = 0, end = b.size();
  while (side != Side::kRight && begin < end) {
    size_t i = begin;
    if (!in_set(next_code_point(b, i), chars)) break;
    begin = i;
  }
  while (side != Side::kLeft && end > begin) {
    size_t at = previous(b, end), i = at;
    if (!in_set(next_code_point(b, i), chars)) break;
    end = at;
  }
  return s.part(begin, end - begin);
}

namespace {

struct Piece {
  size_t begin, end;
};

// White space separates; runs of it count once and the ends are dropped.
std::vector<Piece> split_space(std::string_view b, int64_t max_splits) {
  std::vector<Piece> out;
  size_t i = 0;
  for (;;) {
    size_t begin = i;
    while (begin < b.size()) {
      size_t at = begin;
      if (!is_space(next_code_point(b, at))) break;
      begin = at;
    }
    if (begin >= b.size()) return out;
    if (max_splits >= 0 && static_cast<int64_t>(out.size()) >= max_splits) {
      out.push_back({begin, b.size()});  // the rest keeps its end, as in Python
      return out;
    }
    i = begin;
    size_t end = begin;
    while (i < b.size()) {
      char32_t c = next_code_point(b, i);
      if (is_space(c)) break;
      end = i;
    }
    out.push_back({begin, end});
  }
}

std::vector<Piece> rsplit_space(std::string_view b, int64_t max_splits) {
  std::vector<Piece> out;
  size_t end = b.size();
  for (;;) {
    end = rstrip_offset(b.substr(0, end));
    if (end == 0) break;
    if (max_splits >= 0 && static_cast<int64_t>(out.size()) >= max_splits) {
      out.push_back({0, end});
      break;
    }
    size_t begin = end;
    while (begin > 0) {
      size_t at = previous(b, begin), i = at;
      if (is_space(next_code_point(b, i))) break;
      begin = at;
    }
    out.push_back({begin, end});
    end = begin;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Piece> split_by(std::string_view b, std::string_view sep, int64_t max_splits,
                            bool from_right) {
  std::vector<Piece> out;
  auto more = [&] { return max_splits < 0 || static_cast<int64_t>(out.size()) < max_splits; };
  if (!from_right) {
    size_t begin = 0;
    for (size_t at; more() && (at = b.find(sep, begin)) != b.npos; begin = at + sep.size()) {
      out.push_back({begin, at});
    }
    out.push_back({begin, b.size()});
    return out;
  }
  size_t end = b.size();
  while (more()) {
    size_t at = b.substr(0, end).rfind(sep);
    if (at == b.npos) break;
    out.push_back({at + sep.size(), end});
    end = at;
  }
  out.push_back({0, end});
  std::reverse(out.begin(), out.end());
  return out;
}

bool is_line_end(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

std::vector<Text> split(const Text& s, const std::string* separator, int64_t max_splits,
                        bool from_right) {
  std::vector<Piece> pieces;
  if (separator != nullptr) {
    pieces = split_by(s.bytes(), *separator, max_splits, from_right);
  } else {
    pieces = from_right ? rsplit_space(s.bytes(), max_splits) : split_space(s.bytes(), max_splits);
  }
  std::vector<Text> out;
  out.reserve(pieces.size());
  for (const Piece& p : pieces) out.push_back(s.part(p.begin, p.end - p.begin));
  return out;
}

std::vector<Text> split_lines(const Text& s, bool keep_ends) {
  std::vector<Text> out;
  std::string_view b = s.bytes();
  size_t begin = 0;
  for (size_t i = 0; i < b.size();) {
    size_t at = i;
    char32_t c = next_code_point(b, i);
    if (!is_line_end(c)) continue;
    if (c == '\r' && i < b.size() && b[i] == '\n') ++i;
    out.push_back(s.part(begin, (keep_ends ? i : at) - begin));
    begin = i;
  }
  if (begin < b.size()) out.push_back(s.part(begin));
  return out;
}

int64_t count_occurrences(std::string_view s, std::string_view what) {
  if (what.empty()) return static_cast<int64_t>(code_points(s)) + 1;
  int64_t n = 0;
  for (size_t at = 0; (at = s.find(what, at)) != s.npos; at += what.size()) ++n;
  return n;
}

Text replace(const Text& s, const Text& from, const Text& to, int64_t max_count) {
  Text out;
  std::string_view b = s.bytes();
  auto more = [&] { return max_count < 0 || max_count-- > 0; };
  size_t begin = 0;
  if (from.empty()) {
    for (size_t i = 0;;) {
      if (!more()) break;
      out.append(to);
      if (i >= b.size()) return out;
      next_code_point(b, i);
      out.append_part(s, begin, i - begin);
      begin = i;
    }
  } else {
    for (size_t at; (at = b.find(from.bytes(), begin)) != b.npos; begin = at + from.size()) {
      if (!more()) break;
      out.append_part(s, begin, at - begin);
      out.append(to);
    }
  }
  out.append_part(s, begin, b.size() - begin);
  return out;
}

Text upper(const Text& s) {
  return map_chars(s, [](char32_t c, size_t, size_t) { return upper_of(c); });
}

Text lower(const Text& s) {
  std::string_view b = s.bytes();
  return map_chars(
      s, [b](char32_t c, size_t begin, size_t end) { return lower_of(b, begin, end, c); });
}

namespace {
// Title case differs from upper case for the digraphs, and sharp s becomes "Ss".
std::string title_of(char32_t c) {
  if (c == 0xDF) return "Ss";
  if (c >= 0xFB00 && c <= 0xFB06) {
    static const std::array<const char*, 7> kLigatures = {"Ff",  "Fi", "Fl", "Ffi",
                                                          "Ffl", "St", "St"};
    return kLigatures[c - 0xFB00];
  }
  std::string out;
  append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  return out;
}
}  // namespace

Text capitalize(const Text& s) {
  std::string_view b = s.bytes();
  return map_chars(s, [b](char32_t c, size_t begin, size_t end) {
    return begin == 0 ? title_of(c) : lower_of(b, begin, end, c);
  });
}

Text title(const Text& s, bool jinja_rules) {
  std::string_view b = s.bytes();
  bool word_begins = true;
  return map_chars(s, [b, jinja_rules, &word_begins](char32_t c, size_t begin, size_t end) {
    bool first = word_begins;
    if (jinja_rules) {
      word_begins = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
      return first && !word_begins ? upper_of(c) : lower_of(b, begin, end, c);
    }
    word_begins = !is_cased(c);
    return first ? title_of(c) : lower_of(b, begin, end, c);
  });
}

Text reverse(const Text& s) {
  Text out;
  std::string_view b = s.bytes();
  for (size_t end = b.size(); end > 0;) {
    size_t begin = previous(b, end);
    out.append_part(s, begin, end - begin);
    end = begin;
  }
  return out;
}

Text html_escape(const Text& s) {
  return map_chars(s, [&s](char32_t c, size_t begin, size_t end) -> std::string {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&#34;";
      case '\'':
        return "&#39;";
      default:
        return s.bytes().substr(begin, end - begin);
    }
  });
}

Text repr(const Text& s) {
  const std::string& b = s.bytes();
  bool double_quotes = b.find('\'') != b.npos && b.find('"') == b.npos;
  char quote = double_quotes ? '"' : '\'';
  auto hex = [](char32_t c) {
    char buffer[16];
    const char* format = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
    std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned>(c));
    return std::string(buffer);
  };
  Text out(std::string_view(&quote, 1));
  out.append(map_chars(s, [&](char32_t c, size_t begin, size_t end) -> std::string {
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (c == '\\') return "\\\\";
    if (c == static_cast<char32_t>(quote)) return std::string("\\") + quote;
    return is_printable(c) ? b.substr(begin, end - begin) : hex(c);
  }));
  out.append(std::string_view(&quote, 1), false);
  return out;
}

bool all_of(std::string_view s, CharTest test) {
  if (s.empty()) return false;
  bool cased = false;
  for (size_t i = 0; i < s.size();) {
    char32_t c = next_code_point(s, i);
    bool ok = true;
    switch (test) {
      case CharTest::kAlpha:
        ok = is_letter(c);
        break;
      case CharTest::kDigit:
        ok = is_digit(c);
        break;
      case CharTest::kDecimal:
        ok = category(c) == UTF8PROC_CATEGORY_ND;
        break;
      case CharTest::kNumeric:
        ok = is_numeric(c);
        break;
      case CharTest::kAlnum:
        ok = is_letter(c) || is_numeric(c);
        break;
      case CharTest::kSpace:
        ok = is_space(c);
        break;
      case CharTest::kUpper:
        ok = !is_lower(c) && !is_title(c);
        cased = cased || is_upper(c);
        break;
      case CharTest::kLower:
        ok = !is_upper(c) && !is_title(c);
        cased = cased || is_lower(c);
        break;
    }
    if (!ok) return false;
  }
  return cased || (test != CharTest::kUpper && test != CharTest::kLower);
}

}  // namespace mx8::jinja
