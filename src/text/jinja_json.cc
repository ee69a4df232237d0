// json.dumps as the `tojson` filter of chat templates calls it.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "text/jinja_value.h"

namespace mx8::jinja {
namespace {

class Writer {
 public:
  Writer(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}

  Text take() { return std::move(out_); }

  void write(const Value& v) {
    Heap::Nest nest(heap_);
    heap_.step();
    switch (v.kind()) {
      case Kind::kNone:
        put("null");
        break;
      case Kind::kBool:
        put(v.as_int() != 0 ? "true" : "false");
        break;
      case Kind::kInt:
        put(std::to_string(v.as_int()));
        break;
      case Kind::kFloat:
        put(number(v.as_double()));
        break;
      case Kind::kString:
        string(v.text());
        break;
      case Kind::kList:
      case Kind::kTuple:
        array(v.items());
        break;
      case Kind::kDict:
        object(v.dict());
        break;
      default:
        fail(str_cat("tojson: an object of type ", type_name(v), " is not JSON serializable"));
    }
  }

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_repr(d);
  }

  void put(std::string_view s, bool marked = false) {
    heap_.check_text(out_.size() + s.size());
    out_.append(s, marked);
  }

  void put(const Text& t) {
    heap_.check_text(out_.size() + t.size());
    out_.append(t);
  }

  void new_line() {
    if (!style_.pretty) return;
    put("\n");
    for (int i = 0; i < level_; ++i) put(style_.indent);
  }

  void array(const std::vector<Value>& items) {
    if (items.empty()) return put("[]");
    put("[");
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) put(style_.item_separator);
      new_line();
      write(items[i]);
    }
    --level_;
    new_line();
    put("]");
  }

  void object(const DictObject& dict) {
    if (dict.entries.empty()) return put("{}");
    auto entries = dict.entries;
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto& a, const auto& b) { return less(heap_, a.first, b.first); });
    }
    put("{");
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) put(style_.item_separator);
      new_line();
      key(entries[i].first);
      put(style_.key_separator);
      write(entries[i].second);
    }
    --level_;
    new_line();
    put("}");
  }

  void key(const Value& k) {
    if (k.is_string()) return string(k.text());
    if (!k.is_number() && !k.is(Kind::kNone)) {
      fail(str_cat("tojson: keys must be str, int, float, bool or None, not ", type_name(k)));
    }
    put("\"");
    write(k);
    put("\"");
  }

  void string(const Text& s) {
    heap_.work(s.size());
    put("\"");
    Text::Cursor cursor(s);
    for (size_t i = 0; i < s.size();) {
      size_t begin = i;
      char32_t c = next_code_point(s.bytes(), i);
      put(escape(c, std::string_view(s.bytes()).substr(begin, i - begin)), cursor.marked(begin));
    }
    put("\"");
  }

  std::string escape(char32_t c, std::string_view bytes) const {
    switch (c) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\f':
        return "\\f";
      case '\b':
        return "\\b";
      default:
        break;
    }
    if (c >= 0x20 && (c < 0x7F || !style_.ensure_ascii)) return std::string(bytes);
    if (c == 0x7F) return "\x7f";
    if (c < 0x10000) return unit(c);
    return unit(0xD800 + ((c - 0x10000) >> 10)) + unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  static std::string unit(char32_t c) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
    return buffer;
  }

  Heap& heap_;
  const JsonStyle& style_;
  Text out_;
  int level_ = 0;
};

}  // namespace

Text to_json(Heap& heap, const Value& v, const JsonStyle& style) {
  Writer writer(heap, style);
  writer.write(v);
  return writer.take();
}

}  // namespace mx8::jinja
