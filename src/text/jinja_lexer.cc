#include "text/jinja_lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/strings.h"
#include "text/jinja_text.h"
#include "text/jinja_value.h"

namespace mx8::jinja {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

// "\r\n" and "\r" become "\n"; one newline at the very end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)), s_(source_) {}

  std::vector<Token> run() {
    while (at_ < s_.size()) {
      size_t open = find_open();
      if (open == s_.npos) {
        data(s_.substr(at_));
        at_ = s_.size();
        break;
      }
      tag(open);
    }
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void stop(const std::string& message) const { throw Failure{message, line_}; }

  void add(TokenKind kind, std::string text) {
    Token t;
    t.kind = kind;
    t.line = line_;
    t.text = std::move(text);
    tokens_.push_back(std::move(t));
  }

  void data(std::string_view text) {
    if (!text.empty()) add(TokenKind::kData, std::string(text));
  }

  size_t find_open() const {
    for (size_t i = at_; (i = s_.find('{', i)) != s_.npos; ++i) {
      if (i + 1 < s_.size() && (s_[i + 1] == '{' || s_[i + 1] == '%' || s_[i + 1] == '#')) return i;
    }
    return s_.npos;
  }

  bool starts(size_t at, std::string_view what) const { return s_.substr(at, what.size()) == what; }

  size_t skip_space(size_t at) const {
    while (at < s_.size()) {
      size_t next = at;
      if (!is_space(next_code_point(s_, next))) break;
      at = next;
    }
    return at;
  }

  // Moves to `to` and counts the lines on the way.
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(s_.begin() + static_cast<ptrdiff_t>(at_),
                                         s_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    if (to > at_) line_start_ = s_[to - 1] == '\n';
    at_ = to;
  }

  // The text before a tag, less what the tag's marker or lstrip_blocks strips.
  void data_before(size_t open, char marker, bool expression) {
    std::string_view text = s_.substr(at_, open - at_);
    if (marker == '-') {
      text = text.substr(0, rstrip_offset(text));
    } else if (marker != '+' && !expression) {
      size_t line = text.rfind('\n');
      size_t begin = line == text.npos ? 0 : line + 1;
      if ((begin > 0 || line_start_) && rstrip_offset(text.substr(begin)) == 0) {
        text = text.substr(0, begin);
      }
    }
    data(text);
    advance(open);
  }

  char marker_at(size_t at) const {
    return at < s_.size() && (s_[at] == '-' || s_[at] == '+') ? s_[at] : '\0';
  }

  void tag(size_t open) {
    char type = s_[open + 1];
    char marker = marker_at(open + 2);
    size_t inside = open + 2 + (marker != '\0');
    if (type == '%') {
      if (std::optional<size_t> body = raw_begin(inside)) return raw(open, marker, *body);
    }
    data_before(open, marker, type == '{');
    if (type == '#') return comment(inside);
    add(type == '{' ? TokenKind::kExpressionBegin : TokenKind::kTagBegin, "");
    advance(inside);
    code(type == '{');
  }

  // Where the body of a raw block begins, if the tag whose inside begins at `at` opens one.
  std::optional<size_t> raw_begin(size_t at) const {
    at = skip_space(at);
    if (!starts(at, "raw")) return std::nullopt;
    at = skip_space(at + 3);
    if (starts(at, "-%}")) return skip_space(at + 3);
    if (starts(at, "%}")) return at + 2;
    return std::nullopt;
  }

  // The end of a "%}" or "#}" (with its marker) at `at`, white space that it eats included.
  std::optional<size_t> closing(size_t at, std::string_view end) const {
    if (starts(at, end)) {
      at += end.size();
      return at < s_.size() && s_[at] == '\n' ? at + 1 : at;
    }
    if (at < s_.size() && starts(at + 1, end)) {
      if (s_[at] == '+') return at + 1 + end.size();
      if (s_[at] == '-') return skip_space(at + 1 + end.size());
    }
    return std::nullopt;
  }

  void raw(size_t open, char marker, size_t body) {
    data_before(open, marker, false);
    advance(body);
    for (size_t i = body; (i = s_.find("{%", i)) != s_.npos; ++i) {
      char inner = marker_at(i + 2);
      size_t word = skip_space(i + 2 + (inner != '\0'));
      if (!starts(word, "endraw")) continue;
      std::optional<size_t> end = closing(skip_space(word + 6), "%}");
      if (!end) continue;
      data_before(i, inner, false);
      advance(*end);
      return;
    }
    stop("missing end of raw block");
  }

  void comment(size_t inside) {
    advance(inside);
    for (size_t i = inside; (i = s_.find("#}", i)) != s_.npos; ++i) {
      size_t from = i > inside && (s_[i - 1] == '-' || s_[i - 1] == '+') ? i - 1 : i;
      return advance(*closing(from, "#}"));
    }
    stop("missing end of comment");
  }

  // Tokens up to the end of the tag.
  void code(bool expression) {
    std::string open_brackets;
    while (at_ < s_.size()) {
      if (open_brackets.empty() && end_tag(expression)) return;
      size_t next = skip_space(at_);
      if (next > at_) {
        advance(next);
      } else if (!number() && !name() && !string()) {
        operator_token(open_brackets);
      }
    }
    stop(expression ? "missing '}}'" : "missing '%}'");
  }

  bool end_tag(bool expression) {
    std::optional<size_t> end;
    if (!expression) {
      end = closing(at_, "%}");
    } else if (starts(at_, "}}")) {
      end = at_ + 2;
    } else if (starts(at_, "-}}")) {
      end = skip_space(at_ + 3);
    }
    if (!end) return false;
    add(expression ? TokenKind::kExpressionEnd : TokenKind::kTagEnd, "");
    advance(*end);
    return true;
  }

  // Digits with single underscores between them; returns the end, or `at` when there are none.
  size_t digits(size_t at) const {
    size_t end = at;
    while (end < s_.size() && (digit(s_[end]) || (end > at && s_[end] == '_' &&
                                                  end + 1 < s_.size() && digit(s_[end + 1])))) {
      ++end;
    }
    return end;
  }

  bool number() { return real_number() || integer(); }

  bool real_number() {
    if (at_ > 0 && s_[at_ - 1] == '.') return false;
    size_t end = digits(at_);
    if (end == at_) return false;
    bool real = false;
    if (end < s_.size() && s_[end] == '.' && digits(end + 1) > end + 1) {
      end = digits(end + 1);
      real = true;
    }
    if (end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < s_.size() && (s_[exponent] == '+' || s_[exponent] == '-')) ++exponent;
      if (digits(exponent) > exponent) {
        end = digits(exponent);
        real = true;
      }
    }
    if (!real) return false;
    std::string clean = without_underscores(end);
    add(TokenKind::kFloat, clean);
    std::from_chars(clean.data(), clean.data() + clean.size(), tokens_.back().real);
    advance(end);
    return true;
  }

  std::string without_underscores(size_t end) const {
    std::string clean(s_.substr(at_, end - at_));
    std::erase(clean, '_');
    return clean;
  }

  bool integer() {
    if (!digit(s_[at_])) return false;
    int base = 10;
    size_t begin = at_, end;
    if (s_[at_] == '0' && at_ + 2 < s_.size()) {
      char x = static_cast<char>(s_[at_ + 1] | 0x20);
      base = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 10;
    }
    auto in_base = [&](char c) {
      int v = digit(c)                                 ? c - '0'
              : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                       : 99;
      return v < base;
    };
    if (base != 10 && in_base(s_[at_ + 2])) {
      begin = end = at_ + 2;
      while (end < s_.size() && (in_base(s_[end]) || s_[end] == '_')) ++end;
    } else {
      base = 10;
      end = digits(at_);
      // Python has no decimal numbers with leading zeros: "007" is read as 0, then 7.
      if (s_[at_] == '0') end = std::min(end, s_.find_first_not_of('0', at_));
    }
    std::string clean(s_.substr(begin, end - begin));
    std::erase(clean, '_');
    int64_t value = 0;
    auto parsed = std::from_chars(clean.data(), clean.data() + clean.size(), value, base);
    if (parsed.ec != std::errc()) stop(str_cat("integer ", clean, " needs more than 64 bits"));
    add(TokenKind::kInteger, clean);
    tokens_.back().integer = value;
    advance(end);
    return true;
  }

  bool name() {
    size_t end = at_;
    while (end < s_.size()) {
      size_t next = end;
      if (!is_identifier_char(next_code_point(s_, next))) break;
      end = next;
    }
    if (end == at_) return false;
    add(TokenKind::kName, std::string(s_.substr(at_, end - at_)));
    advance(end);
    return true;
  }

  bool string() {
    char quote = s_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != quote) end += s_[end] == '\\' ? 2 : 1;
    if (end >= s_.size()) stop("missing end of string");
    add(TokenKind::kString, unescape(s_.substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
    return true;
  }

  std::string unescape(std::string_view raw) const {
    std::string out;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\' || i + 1 >= raw.size()) {
        out += raw[i];
        continue;
      }
      char c = raw[++i];
      static constexpr std::string_view kFrom = "abfnrtv\\'\"", kTo = "\a\b\f\n\r\t\v\\'\"";
      if (size_t k = kFrom.find(c); k != kFrom.npos) {
        out += kTo[k];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        append_hex(out, raw, i, c == 'x' ? 2 : c == 'u' ? 4 : 8);
      } else if (c >= '0' && c <= '7') {
        char32_t value = 0;
        for (int n = 0; n < 3 && i < raw.size() && raw[i] >= '0' && raw[i] <= '7'; ++n, ++i) {
          value = value * 8 + static_cast<char32_t>(raw[i] - '0');
        }
        --i;
        append_utf8(out, value);
      } else if (c == 'N') {
        stop("string escape '\\N{...}' is not supported");
      } else if (c != '\n') {  // a backslash at the end of a line joins the lines
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  // raw[i] is the letter of the escape; leaves i at the last digit.
  void append_hex(std::string& out, std::string_view raw, size_t& i, size_t count) const {
    uint32_t value = 0;
    const char* begin = raw.data() + i + 1;
    const char* end = begin + std::min(count, raw.size() - i - 1);
    auto parsed = std::from_chars(begin, end, value, 16);
    if (parsed.ptr != begin + count || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      stop(str_cat("string escape '\\", raw.substr(i, count + 1), "' names no character"));
    }
    append_utf8(out, value);
    i += count;
  }

  void operator_token(std::string& open_brackets) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    std::string_view op;
    for (std::string_view two : kTwo) {
      if (starts(at_, two)) op = two;
    }
    if (op.empty() && kOne.find(s_[at_]) != kOne.npos) op = s_.substr(at_, 1);
    if (op.empty()) {
      size_t next = at_;
      next_code_point(s_, next);
      stop(str_cat("unexpected character '", s_.substr(at_, next - at_), "'"));
    }
    match_brackets(op[0], open_brackets);
    add(TokenKind::kOperator, std::string(op));
    advance(at_ + op.size());
  }

  void match_brackets(char c, std::string& open_brackets) const {
    if (c == '(' || c == '[' || c == '{') open_brackets += c;
    if (c != ')' && c != ']' && c != '}') return;
    char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open_brackets.empty() || open_brackets.back() != opener) {
      stop(str_cat("unexpected '", c, "'"));
    }
    open_brackets.pop_back();
  }

  std::string source_;
  std::string_view s_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace mx8::jinja
