// printf-style formatting, str.format, and numbers read from text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "text/jinja_convert.h"
#include "text/jinja_interpreter.h"

namespace mx8::jinja {
namespace {

// The text without white space at its ends and without single underscores between digits, digits of
// other scripts as ASCII; nothing when an underscore stands elsewhere.
std::optional<std::string> number_text(std::string_view text) {
  const Text stripped = strip(Text(text), Side::kBoth, nullptr);
  const std::string& s = stripped.bytes();
  auto alnum = [&](size_t i) { return i < s.size() && (s[i] & 0x80 || std::isalnum(s[i])); };
  std::string out;
  for (size_t i = 0; i < s.size();) {
    size_t begin = i;
    char32_t c = next_code_point(s, i);
    if (c != '_') {
      int digit = decimal_value(c);
      digit >= 0 ? out += static_cast<char>('0' + digit) : out.append(s, begin, i - begin);
    } else if (begin == 0 || !alnum(begin - 1) || !alnum(i)) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text, int base) {
  if (base != 0 && (base < 2 || base > 36)) fail("int: base must be 0 or 2 to 36");
  std::optional<std::string> clean = number_text(text);
  if (!clean) return std::nullopt;
  std::string_view s = *clean;
  bool negative = s.starts_with('-');
  if (negative || s.starts_with('+')) s.remove_prefix(1);
  int prefix_base = 0;
  if (s.size() > 2 && s[0] == '0') {
    char c = static_cast<char>(s[1] | 0x20);
    prefix_base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
  }
  if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
    base = prefix_base;
    s.remove_prefix(2);
  }
  if (base == 0) base = 10;
  if (s.empty() || s[0] == '-' || s[0] == '+') return std::nullopt;
  std::string digits(negative ? 1 : 0, '-');
  digits.append(s);
  int64_t value = 0;
  auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (parsed.ec == std::errc::result_out_of_range) fail("int: the number needs more than 64 bits");
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  std::optional<std::string> clean = number_text(text);
  if (!clean) return std::nullopt;
  std::string_view s = *clean;
  if (s.starts_with('+')) s.remove_prefix(1);
  if (s.empty() || s.starts_with('+') || s.starts_with("-+")) return std::nullopt;
  std::string lowered(s);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lowered.find("nan(") != std::string::npos) return std::nullopt;
  double value = 0;
  auto parsed = std::from_chars(lowered.data(), lowered.data() + lowered.size(), value);
  if (parsed.ptr != lowered.data() + lowered.size()) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) {
    // Too large or too small; the exponent's sign says which.
    bool small = lowered.find("e-") != std::string::npos;
    value = small ? 0 : HUGE_VAL;
    return lowered[0] == '-' ? -value : value;
  }
  return parsed.ec == std::errc() ? std::optional<double>(value) : std::nullopt;
}

namespace {

struct Spec {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '='
  char sign = 0;   // '+', ' '
  bool alternate = false, zero = false, comma = false;
  int64_t width = 0, precision = -1;
  char type = 0;
};

constexpr int64_t kMaxWidth = 100'000;

void pad_to(Text& out, const Text& body, const Spec& spec, char fallback_align) {
  int64_t missing = spec.width - static_cast<int64_t>(code_points(body.bytes()));
  char align = spec.align != 0 ? spec.align : fallback_align;
  int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  for (int64_t i = 0; i < left; ++i) out.append(spec.fill, false);
  out.append(body);
  for (int64_t i = std::max<int64_t>(left, 0); i < missing; ++i) out.append(spec.fill, false);
}

std::string group_thousands(const std::string& digits) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// "-", "+", " " or nothing, a prefix such as 0x, and the digits, padded.
void put_number(Text& out, bool negative, std::string prefix, std::string digits,
                const Spec& spec) {
  std::string head(negative ? 1 : 0, '-');
  if (!negative && spec.sign != 0) head += spec.sign;
  head += prefix;
  if (spec.comma) {
    size_t whole = digits.find_first_not_of("0123456789");
    if (whole == std::string::npos) whole = digits.size();
    digits = group_thousands(digits.substr(0, whole)) + digits.substr(whole);
  }
  auto have = static_cast<int64_t>(head.size() + digits.size());
  bool inside = spec.align == '=' || (spec.zero && spec.align == 0);
  if (inside && have < spec.width) {
    const std::string fill = spec.zero && spec.align == 0 ? std::string(1, '0') : spec.fill;
    std::string pad;
    for (int64_t i = have; i < spec.width; ++i) pad += fill;
    out.append(head + pad + digits, false);
    return;
  }
  pad_to(out, Text(head + digits), spec, '>');
}

std::string radix(uint64_t v, int base) {
  char buffer[72];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v, base).ptr;
  return std::string(buffer, end);
}

std::string shouted(std::string s) {
  for (char& c : s) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return s;
}

void put_integer(Text& out, int64_t v, const Spec& spec) {
  uint64_t magnitude = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  char type = spec.type;
  int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits = radix(magnitude, base);
  if (type == 'X') digits = shouted(digits);
  std::string prefix = spec.alternate && base != 10 ? std::string{'0', type} : std::string();
  put_number(out, v < 0, prefix, digits, spec);
}

void put_real(Text& out, double d, const Spec& spec) {
  char type = spec.type == '%' ? 'f' : spec.type;
  if (spec.type == '%') d *= 100;
  std::string body;
  if (!std::isfinite(d)) {
    body = std::isnan(d) ? "nan" : "inf";
    if (std::isupper(static_cast<unsigned char>(type))) body = shouted(body);
  } else {
    if (spec.precision > 500) fail("the precision of a format is too large");
    int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    std::string format = spec.alternate ? "%#.*" : "%.*";
    format += type;
    char buffer[1200];
    int n = std::snprintf(buffer, sizeof buffer, format.c_str(), precision, std::fabs(d));
    body.assign(buffer, static_cast<size_t>(n));
  }
  if (spec.type == '%') body += '%';
  put_number(out, std::signbit(d) && !std::isnan(d), "", body, spec);
}

// ---- "%s" % value

class PercentFormat {
 public:
  PercentFormat(Heap& heap, const Text& format, const Value& values)
      : heap_(heap), format_(format), s_(format.bytes()), values_(values) {
    if (values.is(Kind::kTuple)) {
      list_ = values.items();
    } else {
      list_ = {values};
    }
  }

  Text run() {
    Text out;
    size_t at = 0;
    for (size_t next; (next = s_.find('%', at)) != s_.npos;) {
      out.append_part(format_, at, next - at);
      at = next + 1;
      one(out, at);
      heap_.check_text(out.size());
    }
    out.append_part(format_, at, s_.size());
    bool mapping = values_.is(Kind::kDict) || values_.is(Kind::kList);
    if (used_ < list_.size() && !keyed_ && !(mapping && used_ == 0)) {
      fail("not all arguments converted during string formatting");
    }
    return out;
  }

 private:
  char take(size_t& at) {
    if (at >= s_.size()) fail("incomplete format");
    return s_[at++];
  }

  Value argument() {
    if (keyed_value_) {
      Value v = *keyed_value_;
      keyed_value_.reset();
      return v;
    }
    if (used_ >= list_.size()) fail("not enough arguments for format string");
    return list_[used_++];
  }

  int64_t number(size_t& at) {
    if (at < s_.size() && s_[at] == '*') {
      ++at;
      Value v = argument();
      if (!v.is_integral()) fail("* wants an integer");
      return std::clamp<int64_t>(v.as_int(), -kMaxWidth, kMaxWidth);
    }
    int64_t n = 0;
    while (at < s_.size() && s_[at] >= '0' && s_[at] <= '9') {
      n = n * 10 + (s_[at++] - '0');
      if (n > kMaxWidth) fail("the width of a format is too large");
    }
    return n;
  }

  void key(size_t& at) {
    size_t end = s_.find(')', at);
    if (end == s_.npos) fail("incomplete format key");
    if (!values_.is(Kind::kDict)) fail("format requires a mapping");
    const Value* v = values_.dict().find(s_.substr(at, end - at));
    if (v == nullptr) fail(str_cat("format: no key '", s_.substr(at, end - at), "'"));
    keyed_ = true;
    keyed_value_ = *v;
    at = end + 1;
  }

  void one(Text& out, size_t& at) {
    Spec spec;
    bool left = false;
    if (at < s_.size() && s_[at] == '(') key(++at);
    for (; at < s_.size() && std::string_view("-+ #0").find(s_[at]) != std::string_view::npos;
         ++at) {
      left = left || s_[at] == '-';
      spec.zero = spec.zero || s_[at] == '0';
      spec.alternate = spec.alternate || s_[at] == '#';
      if (s_[at] == '+' || (s_[at] == ' ' && spec.sign == 0)) spec.sign = s_[at];
    }
    spec.width = number(at);
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (at < s_.size() && s_[at] == '.') {
      ++at;
      spec.precision = std::max<int64_t>(number(at), 0);
    }
    while (at < s_.size() && (s_[at] == 'l' || s_[at] == 'h' || s_[at] == 'L')) ++at;
    spec.align = left ? '<' : 0;
    spec.type = take(at);
    if (spec.type == '%') return out.append("%", false);
    convert(out, argument(), spec);
  }

  void convert(Text& out, const Value& v, Spec& spec) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': {
        Text text = spec.type == 's' ? to_text(heap_, v) : repr(heap_, v);
        if (spec.precision >= 0) {
          text = text.part(0, offset_of(text.bytes(), static_cast<size_t>(spec.precision)));
        }
        return pad_to(out, text, spec, '>');
      }
      case 'c': {
        if (v.is_string() && code_points(v.text().bytes()) == 1) {
          return pad_to(out, v.text(), spec, '>');
        }
        if (!v.is_integral() || v.as_int() < 0 || v.as_int() > 0x10FFFF ||
            (v.as_int() >= 0xD800 && v.as_int() < 0xE000)) {
          fail("%c requires an int or a character");
        }
        std::string c;
        append_utf8(c, static_cast<char32_t>(v.as_int()));
        return pad_to(out, Text(c), spec, '>');
      }
      case 'd':
      case 'i':
      case 'u': {
        if (!v.is_number()) fail(str_cat("%d format: a number is required, not ", type_name(v)));
        if (v.is(Kind::kFloat) && !(std::fabs(v.as_double()) < 9.2e18)) {
          fail("%d format: the number needs more than 64 bits");
        }
        int64_t i = v.is_integral() ? v.as_int() : static_cast<int64_t>(v.as_double());
        return integer(out, i, spec);
      }
      case 'x':
      case 'X':
      case 'o':
        if (!v.is_integral()) fail("%x and %o formats require an integer");
        return integer(out, v.as_int(), spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!v.is_number()) fail(str_cat("must be a real number, not ", type_name(v)));
        return put_real(out, v.as_double(), spec);
      default:
        fail(str_cat("unsupported format character '", std::string(1, spec.type), "'"));
    }
  }

  void integer(Text& out, int64_t v, Spec& spec) {
    if (spec.precision >= 0) fail("a precision for integers is not supported in a format");
    put_integer(out, v, spec);
  }

  Heap& heap_;
  const Text& format_;
  std::string_view s_;
  const Value& values_;
  std::vector<Value> list_;
  size_t used_ = 0;
  bool keyed_ = false;
  std::optional<Value> keyed_value_;
};

// ---- "{}".format(value)

Spec parse_spec(std::string_view s) {
  Spec spec;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  size_t first = 0;
  if (!s.empty()) next_code_point(s, first);
  if (first > 0 && first < s.size() && is_align(s[first])) {
    spec.fill = std::string(s.substr(0, first));
    spec.align = s[first];
    s.remove_prefix(first + 1);
  } else if (!s.empty() && is_align(s[0])) {
    spec.align = s[0];
    s.remove_prefix(1);
  }
  auto skip = [&](char c) {
    if (!s.starts_with(c)) return false;
    s.remove_prefix(1);
    return true;
  };
  if (skip('+')) spec.sign = '+';
  if (skip(' ')) spec.sign = ' ';
  skip('-');
  spec.alternate = skip('#');
  if (skip('0') && spec.align == 0) spec.zero = true;
  auto number = [&] {
    int64_t n = 0;
    while (!s.empty() && s[0] >= '0' && s[0] <= '9') {
      n = n * 10 + (s[0] - '0');
      if (n > kMaxWidth) fail("the width of a format is too large");
      s.remove_prefix(1);
    }
    return n;
  };
  spec.width = number();
  spec.comma = skip(',');
  if (skip('.')) spec.precision = number();
  if (!s.empty()) {
    spec.type = s[0];
    s.remove_prefix(1);
  }
  if (!s.empty()) fail("invalid format specifier");
  return spec;
}

void put_formatted(Heap& heap, Text& out, const Value& v, const Spec& spec) {
  bool real_type =
      spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  bool integer_type =
      spec.type == 0 || std::string_view("dxXob").find(spec.type) != std::string_view::npos;
  if (v.is(Kind::kInt) || (v.is(Kind::kBool) && spec.type != 0)) {
    if (real_type) return put_real(out, v.as_double(), spec);
    if (integer_type && spec.precision < 0) return put_integer(out, v.as_int(), spec);
  } else if (v.is(Kind::kFloat)) {
    if (real_type) return put_real(out, v.as_double(), spec);
    if (spec.type == 0 && spec.precision < 0) {
      std::string s = float_repr(std::fabs(v.as_double()));
      return put_number(out, std::signbit(v.as_double()), "", s, spec);
    }
  } else if (v.is_string() && (spec.type == 0 || spec.type == 's') && spec.align != '=') {
    Text text = v.text();
    if (spec.precision >= 0) {
      text = text.part(0, offset_of(text.bytes(), static_cast<size_t>(spec.precision)));
    }
    Spec padded = spec;
    if (spec.zero) padded.fill.assign(1, '0');
    return pad_to(out, text, padded, '<');
  }
  fail(str_cat("this format specifier is not supported for '", type_name(v), "'"));
}

class BraceFormat {
 public:
  BraceFormat(Interpreter& in, const Text& format, const Call& call)
      : in_(in), format_(format), s_(format.bytes()), call_(call) {}

  Text run() {
    Text out;
    for (size_t at = 0; at < s_.size();) {
      size_t next = s_.find_first_of("{}", at);
      out.append_part(format_, at, next - at);
      if (next == s_.npos) break;
      if (next + 1 < s_.size() && s_[next + 1] == s_[next]) {
        out.append_part(format_, next, 1);
        at = next + 2;
        continue;
      }
      if (s_[next] == '}') fail("single '}' encountered in format string");
      size_t end = s_.find_first_of("{}", next + 1);
      if (end == s_.npos || s_[end] == '{') {
        fail("expected '}' before end of string, or a nested format (not supported)");
      }
      field(out, s_.substr(next + 1, end - next - 1));
      in_.heap().check_text(out.size());
      at = end + 1;
    }
    return out;
  }

 private:
  void field(Text& out, std::string_view field) {
    size_t colon = field.find(':');
    std::string_view spec = colon == field.npos ? "" : field.substr(colon + 1);
    std::string_view head = field.substr(0, colon);
    size_t bang = head.find('!');
    std::string_view conversion = bang == head.npos ? "" : head.substr(bang + 1);
    Value v = lookup(head.substr(0, bang));
    Heap& heap = in_.heap();
    if (conversion == "r") {
      v = heap.string(repr(heap, v));
    } else if (conversion == "s") {
      v = to_string(heap, v);
    } else if (!conversion.empty()) {
      fail("unknown conversion in format string");
    }
    if (spec.empty()) return out.append(to_text(heap, v));
    put_formatted(heap, out, v, parse_spec(spec));
  }

  Value lookup(std::string_view path) {
    size_t end = std::min(path.find_first_of(".["), path.size());
    Value v = first(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      bool dot = path[0] == '.';
      size_t stop = dot ? std::min(path.find_first_of(".[", 1), path.size()) : path.find(']');
      if (stop == path.npos || stop == 1) fail("empty attribute in format string");
      std::string_view name = path.substr(1, stop - 1);
      if (dot) {
        v = in_.attribute(v, name);
      } else {
        std::optional<int64_t> index;
        if (all_of(name, CharTest::kDigit)) index = parse_int(name, 10);
        v = in_.item(v, index ? Value::integer(*index) : in_.heap().string(name));
      }
      path.remove_prefix(dot ? stop : stop + 1);
    }
    return v;
  }

  Value first(std::string_view name) {
    if (name.empty()) {
      if (next_ < 0) fail("cannot mix automatic and numbered fields in a format string");
      return positional(next_++);
    }
    if (all_of(name, CharTest::kDigit)) {
      if (next_ > 0) fail("cannot mix automatic and numbered fields in a format string");
      next_ = -1;
      return positional(parse_int(name, 10).value_or(-1));
    }
    for (const auto& [key, value] : call_.keywords) {
      if (key == name) return value;
    }
    fail(str_cat("format: no argument '", name, "'"));
  }

  Value positional(int64_t index) {
    if (index < 0 || index >= static_cast<int64_t>(call_.positional.size())) {
      fail("format: too few arguments");
    }
    return call_.positional[static_cast<size_t>(index)];
  }

  Interpreter& in_;
  const Text& format_;
  std::string_view s_;
  const Call& call_;
  int64_t next_ = 0;  // the next automatic field; -1 once fields are numbered
};

}  // namespace

Text percent_format(Heap& heap, const Text& format, const Value& values) {
  return PercentFormat(heap, format, values).run();
}

Text brace_format(Interpreter& in, const Text& format, const Call& call) {
  return BraceFormat(in, format, call).run();
}

}  // namespace mx8::jinja
