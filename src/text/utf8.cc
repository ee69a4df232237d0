#include "text/utf8.h"

#include <simdjson.h>
#include <utf8proc.h>

#include "text/unicode_tables.h"

namespace mx8::text {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Step {
  size_t size;
  enum { kValid, kInvalid, kCutShort } kind;
};

// Length of the character, or of the maximal invalid part, at the start of `s` (not empty).
Step classify(std::string_view s) {
  const auto byte = [s](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, Step::kValid};
  if (lead < 0xC2 || lead > 0xF4) return {1, Step::kInvalid};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned char low = 0x80, high = 0xBF;  // range of the second byte
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < size; ++i) {
    if (i == s.size()) return {i, Step::kCutShort};
    if (byte(i) < low || byte(i) > high) return {i, Step::kInvalid};
    low = 0x80;
    high = 0xBF;
  }
  return {size, Step::kValid};
}

utf8proc_category_t category(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

// Lower case of the capitals that Unicode 16 added.
uint32_t newer_lowercase(uint32_t c) {
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c == 0x1C89 || c == 0xA7CC || c == 0xA7DA) return c + 1;
  if (c == 0xA7CB) return 0x264;
  if (c == 0xA7DC) return 0x19B;
  return c;
}

}  // namespace

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | c >> 6));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | c >> 12));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | c >> 18));
    out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

bool is_valid_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

size_t valid_utf8_prefix(std::string_view text) {
  if (is_valid_utf8(text)) return text.size();
  size_t at = 0;
  while (at < text.size()) {
    const Step step = classify(text.substr(at));
    if (step.kind != Step::kValid) break;
    at += step.size;
  }
  return at;
}

size_t append_lossy(std::string& out, std::string_view bytes, bool more_may_follow) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Step step = classify(bytes.substr(at));
    if (step.kind == Step::kValid) {
      out.append(bytes, at, step.size);
    } else {
      if (step.kind == Step::kCutShort && more_may_follow) return at;
      out += kReplacement;
    }
    at += step.size;
  }
  return at;
}

bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(uint32_t c) {
  if (c < 0x80)
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
  if (c == 0x200C || c == 0x200D) return true;
  if (c >= 0x24B6 && c <= 0x24E9) return true;  // circled letters: alphabetic symbols
  if ((c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
      (c >= 0x1F170 && c <= 0x1F189)) {
    return true;
  }
  if (const CategoryRange* newer = find_newer(c)) {
    const std::string_view name = newer->category;
    return name[0] == 'L' || name[0] == 'M' || name == "Nd" || name == "Nl" || name == "Pc";
  }
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

bool is_numeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  if (const CategoryRange* newer = find_newer(c)) return newer->category[0] == 'N';
  if ((c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6)) return true;  // Unicode 17
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(uint32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

void append_lowercase(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x130) {
    out += "i\xCC\x87";  // the only code point whose lower case is two
  } else if (find_newer(c) != nullptr) {
    append_utf8(out, newer_lowercase(c));
  } else {
    append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

size_t trailing_white_space(std::string_view text) {
  size_t at = text.size();
  while (at > 0) {
    size_t start = at - 1;
    while (start > 0 && is_continuation(text[start])) --start;
    if (!is_white_space(decode_valid(text.data() + start).value)) break;
    at = start;
  }
  return text.size() - at;
}

size_t leading_white_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = decode_valid(text.data() + at);
    if (!is_white_space(c.value)) break;
    at += c.size;
  }
  return at;
}

}  // namespace mx8::text
