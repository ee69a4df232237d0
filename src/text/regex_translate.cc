// Oniguruma (Ruby syntax, Unicode) to PCRE2. The two agree on \p{L}, \p{N} and the other general
// categories; they differ in \s (U+180E), \w, \p{Han} and other scripts (PCRE2 reads script
// extensions), \h, \v, (?m), nested classes and a few more. Each difference is either rewritten
// here or refused.
#include <algorithm>
#include <array>
#include <sstream>

#include "base/strings.h"
#include "text/regex.h"
#include "text/unicode_tables.h"

namespace mx8::text {

namespace {

constexpr std::string_view kSpace = "\\p{White_Space}";
constexpr std::string_view kNotSpace = "\\P{White_Space}";
// Oniguruma also counts the superscripts and fractions of Latin-1.
constexpr std::string_view kWord =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }
bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

// Long names of general categories, lower case without separators.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kCategories = {{
    {"letter", "L"},
    {"mark", "M"},
    {"number", "N"},
    {"punctuation", "P"},
    {"symbol", "S"},
    {"separator", "Z"},
    {"other", "C"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"decimalnumber", "Nd"},
    {"nonspacingmark", "Mn"},
}};

// The newer code points whose category starts with `category`, as the inside of a class.
std::string newer_in(std::string_view category) {
  std::ostringstream out;
  out << std::hex;
  for (const CategoryRange& r : newer_code_points()) {
    if (std::string_view(r.category).substr(0, category.size()) != category) continue;
    out << "\\x{" << r.first << "}";
    if (r.last != r.first) out << "-\\x{" << r.last << "}";
  }
  return out.str();
}

// CJK extensions H and I and one ideograph more: \p{Han} beyond Unicode 14.
constexpr std::string_view kNewerHan = "\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        MX8_RETURN_IF_ERROR(escape(false));
      } else if (c == '[') {
        MX8_RETURN_IF_ERROR(char_class());
      } else if (c == '(') {
        MX8_RETURN_IF_ERROR(group());
      } else if (c == '{') {
        MX8_RETURN_IF_ERROR(interval());
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  Error refuse(std::string_view what) const {
    return unsupported(str_cat("regular expression /", in_, "/: ", what, " is not supported"));
  }

  Result<void> property(bool in_class) {  // at "\p" or "\P"
    bool negated = in_[at_ + 1] == 'P';
    const size_t close = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || close == std::string_view::npos) {
      return refuse("a property without braces");
    }
    std::string name(in_.substr(at_ + 3, close - at_ - 3));
    at_ = close + 1;
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.erase(0, 1);
    }
    std::string key;
    for (const char c : name) {
      if (c != '_' && c != ' ' && c != '-') key += static_cast<char>(is_letter(c) ? c | 0x20 : c);
    }
    const auto* long_name = std::find_if(kCategories.begin(), kCategories.end(),
                                         [&](const auto& entry) { return entry.first == key; });
    std::string translated, newer;
    if (long_name != kCategories.end()) {
      translated = long_name->second;
    } else if (name.size() <= 2) {
      translated = name;
    } else if (key == "alphabetic" || key == "whitespace" || key == "uppercase" ||
               key == "lowercase") {
      translated = name;
    } else {
      // Others can only be scripts: Oniguruma's POSIX brackets as properties differ between
      // engines.
      for (const std::string_view posix :
           {"alpha", "alnum", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
            "space", "upper", "xdigit", "word", "ascii", "any", "assigned"}) {
        if (key == posix) return refuse(str_cat("\\p{", name, "}"));
      }
      translated = "sc:" + name;
      if (key == "han") newer = kNewerHan;
    }
    if (translated.size() <= 2) newer = newer_in(translated);
    const std::string_view letter = negated ? "\\P{" : "\\p{";
    if (newer.empty()) {
      out_ += str_cat(letter, translated, "}");
    } else if (!in_class) {
      out_ += str_cat(negated ? "[^" : "[", "\\p{", translated, "}", newer, "]");
    } else if (!negated) {
      out_ += str_cat("\\p{", translated, "}", newer);
    } else {
      return refuse("a negated property in a class");
    }
    return {};
  }

  static std::string word() {
    std::string out(kWord);
    for (const char* category : {"L", "M", "Nd", "Nl", "Pc"}) out += newer_in(category);
    return out;
  }

  Result<void> hex_escape() {  // at "\x" or "\u"
    const bool is_u = in_[at_ + 1] == 'u';
    size_t begin = at_ + 2, end = begin;
    if (!is_u && begin < in_.size() && in_[begin] == '{') {
      ++begin;
      end = in_.find('}', begin);
      if (end == std::string_view::npos) return refuse("an unclosed \\x{");
      at_ = end + 1;
    } else {
      const size_t digits = is_u ? 4 : 2;
      while (end < in_.size() && end - begin < digits && is_hex(in_[end])) ++end;
      if (end - begin != digits) return refuse("a short \\x or \\u");
      // Two digits name a byte, not a code point, in Oniguruma.
      if (!is_u && in_[begin] > '7') return refuse("\\x80 and above");
      at_ = end;
    }
    out_ += str_cat("\\x{", in_.substr(begin, end - begin), "}");
    return {};
  }

  Result<void> escape(bool in_class) {
    if (at_ + 1 >= in_.size()) return refuse("a trailing backslash");
    const char c = in_[at_ + 1];
    const auto emit = [this](std::string_view text) {
      out_ += text;
      at_ += 2;
      return Result<void>();
    };
    switch (c) {
      case 'p':
      case 'P':
        return property(in_class);
      case 'x':
      case 'u':
        return hex_escape();
      case 's':
        return emit(kSpace);
      case 'S':
        return emit(kNotSpace);
      case 'd':
        return emit(in_class ? "\\p{Nd}" + newer_in("Nd") : "[\\p{Nd}" + newer_in("Nd") + "]");
      case 'D':
        if (in_class) return refuse("\\D in a class");
        return emit("[^\\p{Nd}" + newer_in("Nd") + "]");
      case 'w':
        return emit(in_class ? word() : str_cat("[", word(), "]"));
      case 'W':
        if (in_class) return refuse("\\W in a class");
        return emit(str_cat("[^", word(), "]"));
      case 'h':
        return emit(in_class ? "0-9a-fA-F" : "[0-9a-fA-F]");
      case 'v':
        return emit("\\x0b");
      case 't':
      case 'n':
      case 'r':
      case 'f':
      case 'a':
      case 'e':
        return emit(in_.substr(at_, 2));
      case 'A':
      case 'z':
      case 'Z':
        if (in_class) return refuse(str_cat("\\", std::string(1, c), " in a class"));
        return emit(in_.substr(at_, 2));
      default:
        break;
    }
    if (is_letter(c) || is_digit(c)) return refuse(str_cat("\\", std::string(1, c)));
    if (static_cast<unsigned char>(c) >= 0x80) {  // an escaped letter beyond ASCII is itself
      ++at_;
      return {};
    }
    return emit(in_.substr(at_, 2));
  }

  Result<void> char_class() {
    out_ += '[';
    ++at_;
    if (at_ < in_.size() && in_[at_] == '^') {
      out_ += '^';
      ++at_;
    }
    if (at_ < in_.size() && in_[at_] == ']') return refuse("an empty class");
    while (at_ < in_.size() && in_[at_] != ']') {
      const char c = in_[at_];
      if (c == '[') return refuse("a class inside a class, or a POSIX bracket");
      if (c == '&' && at_ + 1 < in_.size() && in_[at_ + 1] == '&') return refuse("&& in a class");
      if (c == '\\') {
        MX8_RETURN_IF_ERROR(escape(true));
      } else {
        out_ += c;
        ++at_;
      }
    }
    if (at_ >= in_.size()) return refuse("an unclosed class");
    out_ += ']';
    ++at_;
    return {};
  }

  Result<void> group() {  // at "("
    const bool at_start = at_ == 0;
    out_ += '(';
    ++at_;
    if (at_ >= in_.size() || in_[at_] != '?') return {};
    const std::string_view rest = in_.substr(at_);
    for (const std::string_view plain : {"?:", "?=", "?!", "?>", "?<=", "?<!"}) {
      if (rest.substr(0, plain.size()) == plain) {
        out_ += plain;
        at_ += plain.size();
        return {};
      }
    }
    // Options, on or off, for a group, or at the very start for the whole pattern.
    size_t end = 1;
    std::string options;
    while (end < rest.size() && (rest[end] == 'i' || rest[end] == 'm' || rest[end] == '-')) {
      options += rest[end] == 'm' ? 's' : rest[end];  // Ruby's m lets . match a newline
      ++end;
    }
    const bool whole = end < rest.size() && rest[end] == ')' && at_start;
    if (options.empty() || end >= rest.size() || !(rest[end] == ':' || whole)) {
      return refuse(str_cat("the group (", rest.substr(0, 4)));
    }
    out_ += str_cat("?", options, std::string(1, rest[end]));
    at_ += end + 1;
    return {};
  }

  Result<void> interval() {  // at "{"
    size_t end = at_ + 1;
    while (end < in_.size() && (is_digit(in_[end]) || in_[end] == ',')) ++end;
    const std::string_view body = in_.substr(at_ + 1, end - at_ - 1);
    if (end >= in_.size() || in_[end] != '}' || body.empty() || body == ",") {
      out_ += "\\{";  // a literal brace
      ++at_;
      return {};
    }
    out_ += str_cat("{", body[0] == ',' ? "0" : "", body, "}");
    at_ = end + 1;
    if (at_ < in_.size() && in_[at_] == '+') return refuse("{n,m}+");
    return {};
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> translate_oniguruma(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace mx8::text
