#include "text/jinja_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace mx8::jinja {

void fail(std::string message) { throw Failure{std::move(message)}; }

const Text& Value::text() const { return as<StringObject>()->text; }
std::vector<Value>& Value::items() const { return as<ListObject>()->items; }
DictObject& Value::dict() const { return *as<DictObject>(); }

// ---- Heap

void Heap::charge(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > limits_.heap_bytes) {
    fail(str_cat("needs more than ", format_bytes(limits_.heap_bytes), " of memory"));
  }
}

void Heap::step(int64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps) fail(str_cat("takes more than ", limits_.steps, " steps"));
}

void Heap::check_text(size_t bytes) const {
  if (bytes > limits_.text_bytes) {
    fail(str_cat("makes a string of more than ", format_bytes(limits_.text_bytes)));
  }
}

void Heap::too_deep() { fail("nests too deeply"); }

Value Heap::string(Text text, bool markup) {
  check_text(text.size());
  auto* s = make<StringObject>(text.size());
  work(text.size());
  s->text = std::move(text);
  s->markup = markup;
  return Value::object(Kind::kString, s);
}

Value Heap::sequence(Kind kind, std::vector<Value> items, const char* name) {
  auto* list = make<ListObject>(items.size() * sizeof(Value));
  step(1 + static_cast<int64_t>(items.size() / 8));
  list->items = std::move(items);
  list->name = name;
  return Value::object(kind, list);
}

Value Heap::undefined(std::string reason) {
  auto* u = make<UndefinedObject>(reason.size());
  u->reason = std::move(reason);
  return Value::object(Kind::kUndefined, u);
}

Value Heap::range(int64_t start, int64_t stop, int64_t step) {
  auto* r = make<RangeObject>();
  r->start = start;
  r->stop = stop;
  r->step = step;
  int64_t span = step > 0 ? stop - start : start - stop;
  int64_t stride = step > 0 ? step : -step;
  r->length = span <= 0 ? 0 : (span - 1) / stride + 1;
  return Value::object(Kind::kRange, r);
}

// ---- DictObject

namespace {

constexpr size_t kIndexFrom = 12;

// Equality of dict keys; none of them nests deeply (tuples of scalars, mostly).
bool same_key(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kString:
      return a.text().bytes() == b.text().bytes();
    case Kind::kTuple: {
      if (a.items().size() != b.items().size()) return false;
      for (size_t i = 0; i < a.items().size(); ++i) {
        if (!same_key(a.items()[i], b.items()[i])) return false;
      }
      return true;
    }
    default:
      return a.as_object() == b.as_object();
  }
}

}  // namespace

const Value* DictObject::find(std::string_view key) const {
  if (!index_.empty()) {
    auto it = index_.find(key);
    return it == index_.end() ? nullptr : &entries[it->second].second;
  }
  for (const auto& [k, v] : entries) {
    if (k.is_string() && k.text().bytes() == key) return &v;
  }
  return nullptr;
}

const Value* DictObject::find(const Value& key) const {
  if (key.is_string()) return find(std::string_view(key.text().bytes()));
  if (!other_keys_) return nullptr;
  for (const auto& [k, v] : entries) {
    if (same_key(k, key)) return &v;
  }
  return nullptr;
}

void DictObject::set(const Value& key, const Value& value) {
  if (const Value* found = find(key)) {
    *const_cast<Value*>(found) = value;
    return;
  }
  entries.emplace_back(key, value);
  if (!key.is_string()) {
    other_keys_ = true;
  } else if (!index_.empty()) {
    index_.emplace(key.text().bytes(), entries.size() - 1);
  } else if (entries.size() >= kIndexFrom) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].first.is_string()) index_.emplace(entries[i].first.text().bytes(), i);
    }
  }
}

void require_hashable(const Value& key) {
  if (key.is(Kind::kList) || key.is(Kind::kDict) || key.is(Kind::kView)) {
    fail(str_cat("unhashable type: '", type_name(key), "'"));
  }
  if (key.is(Kind::kTuple)) {
    for (const Value& v : key.items()) require_hashable(v);
  }
}

// ---- Python's view of a value

std::string type_name(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return v.as<StringObject>()->markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kRange:
      return "range";
    case Kind::kView:
    case Kind::kGenerator:
      return v.as<ListObject>()->name;
    case Kind::kFunction:
      return "function";
    case Kind::kMacro:
      return "Macro";
    case Kind::kLoop:
      return "LoopContext";
  }
  return "object";
}

bool truthy(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return v.as_int() != 0;
    case Kind::kFloat:
      return v.as_double() != 0;
    case Kind::kString:
      return !v.text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return !v.items().empty();
    case Kind::kDict:
      return !v.dict().entries.empty();
    case Kind::kRange:
      return v.as<RangeObject>()->length != 0;
    default:
      return true;
  }
}

bool equal(Heap& heap, const Value& a, const Value& b) {
  heap.step();
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.kind() != b.kind()) return false;
  Heap::Nest nest(heap);
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      if (a.text().size() == b.text().size()) heap.work(a.text().size());
      return a.text().bytes() == b.text().bytes();
    case Kind::kList:
    case Kind::kTuple: {
      const auto &x = a.items(), &y = b.items();
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i) {
        if (!equal(heap, x[i], y[i])) return false;
      }
      return true;
    }
    case Kind::kDict: {
      if (a.dict().entries.size() != b.dict().entries.size()) return false;
      for (const auto& [key, value] : a.dict().entries) {
        const Value* other = b.dict().find(key);
        if (other == nullptr || !equal(heap, value, *other)) return false;
      }
      return true;
    }
    case Kind::kRange: {
      auto *x = a.as<RangeObject>(), *y = b.as<RangeObject>();
      return x->length == y->length && (x->length == 0 || x->start == y->start) &&
             (x->length < 2 || x->step == y->step);
    }
    default:
      return a.as_object() == b.as_object();
  }
}

bool less(Heap& heap, const Value& a, const Value& b) {
  heap.step();
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int();
    return a.as_double() < b.as_double();
  }
  if (a.is_undefined()) fail(a.as<UndefinedObject>()->reason);
  if (b.is_undefined()) fail(b.as<UndefinedObject>()->reason);
  if (a.is_string() && b.is_string()) {
    heap.work(std::min(a.text().size(), b.text().size()));
    return a.text().bytes() < b.text().bytes();
  }
  if (a.kind() == b.kind() && a.is_sequence()) {
    Heap::Nest nest(heap);
    const auto &x = a.items(), &y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(heap, x[i], y[i])) return less(heap, x[i], y[i]);
    }
    return x.size() < y.size();
  }
  fail(str_cat("values of types '", type_name(a), "' and '", type_name(b), "' have no order"));
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) {
        fail(str_cat("'in <string>' requires a string on the left, not ", type_name(item)));
      }
      heap.work(container.text().size());
      return container.text().bytes().find(item.text().bytes()) != std::string::npos;
    case Kind::kDict:
      require_hashable(item);
      return container.dict().find(item) != nullptr;
    default:
      break;
  }
  if (!is_iterable(container)) {
    fail(str_cat("a value of type '", type_name(container), "' cannot be searched with 'in'"));
  }
  for (const Value& v : iterate(heap, container)) {
    if (equal(heap, v, item)) return true;
  }
  return false;
}

// Python's repr: the shortest digits that read back, plain between 1e-4 and 1e16.
std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  std::string s(buffer, end);
  std::string out(s[0] == '-' ? 1 : 0, '-');
  s.erase(0, out.size());
  const size_t e = s.find('e');
  const int exponent = std::stoi(s.substr(e + 1));
  std::string digits = s.substr(0, e);
  std::erase(digits, '.');
  auto n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::snprintf(buffer, sizeof buffer, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    out += digits[0];
    if (n > 1) out.append(".").append(digits, 1);
    return out.append(buffer);
  }
  if (exponent < 0) {
    return out.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  }
  if (n <= exponent + 1) {
    return out.append(digits).append(static_cast<size_t>(exponent + 1 - n), '0').append(".0");
  }
  const auto point = static_cast<size_t>(exponent) + 1;
  return out.append(digits, 0, point).append(".").append(digits, point);
}

Text to_text(Heap& heap, const Value& v) {
  if (v.is_string()) return v.text();
  if (v.is_undefined()) return Text();
  return repr(heap, v);
}

Value to_string(Heap& heap, const Value& v) {
  return v.is_string() ? v : heap.string(to_text(heap, v));
}

namespace {

void append_checked(Heap& heap, Text& out, const Text& more) {
  heap.check_text(out.size() + more.size());
  out.append(more);
}

Text repr_items(Heap& heap, const std::vector<Value>& items, const char* open, const char* close) {
  Text out{std::string_view(open)};
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out.append(", ", false);
    append_checked(heap, out, repr(heap, items[i]));
  }
  out.append(close, false);
  return out;
}

Text repr_dict(Heap& heap, const DictObject& dict) {
  Text out("{");
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i != 0) out.append(", ", false);
    append_checked(heap, out, repr(heap, dict.entries[i].first));
    out.append(": ", false);
    append_checked(heap, out, repr(heap, dict.entries[i].second));
  }
  out.append("}", false);
  return out;
}

std::string repr_range(const RangeObject& r) {
  std::string out = str_cat("range(", r.start, ", ", r.stop);
  return r.step == 1 ? out + ")" : str_cat(out, ", ", r.step, ")");
}

}  // namespace

Text repr(Heap& heap, const Value& v) {
  Heap::Nest nest(heap);
  heap.step();
  switch (v.kind()) {
    case Kind::kUndefined:
      return Text("Undefined");
    case Kind::kNone:
      return Text("None");
    case Kind::kBool:
      return Text(v.as_int() != 0 ? "True" : "False");
    case Kind::kInt:
      return Text(std::to_string(v.as_int()));
    case Kind::kFloat:
      return Text(float_repr(v.as_double()));
    case Kind::kString: {
      heap.work(v.text().size());
      Text out = repr(v.text());
      if (!v.as<StringObject>()->markup) return out;
      Text wrapped("Markup(");
      wrapped.append(out);
      wrapped.append(")", false);
      return wrapped;
    }
    case Kind::kList:
      return repr_items(heap, v.items(), "[", "]");
    case Kind::kTuple:
      return repr_items(heap, v.items(), "(", v.items().size() == 1 ? ",)" : ")");
    case Kind::kDict:
      return repr_dict(heap, v.dict());
    case Kind::kNamespace: {
      Text out("<Namespace ");
      out.append(repr_dict(heap, v.dict()));
      out.append(">", false);
      return out;
    }
    case Kind::kRange:
      return Text(repr_range(*v.as<RangeObject>()));
    case Kind::kView: {
      std::string open = str_cat(v.as<ListObject>()->name, "([");
      return repr_items(heap, v.items(), open.c_str(), "])");
    }
    default:
      fail(str_cat("a value of type '", type_name(v), "' has no text form worth printing"));
  }
}

int64_t length_of(Heap& heap, const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      heap.work(v.text().size());
      return static_cast<int64_t>(code_points(v.text().bytes()));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return static_cast<int64_t>(v.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(v.dict().entries.size());
    case Kind::kRange:
      return v.as<RangeObject>()->length;
    default:
      return -1;
  }
}

bool is_iterable(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kRange:
    case Kind::kView:
    case Kind::kGenerator:
      return true;
    default:
      return false;
  }
}

std::vector<Value> iterate(Heap& heap, const Value& v) {
  std::vector<Value> out;
  switch (v.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kString: {
      const Text& s = v.text();
      for (size_t i = 0; i < s.size();) {
        size_t begin = i;
        next_code_point(s.bytes(), i);
        out.push_back(heap.string(s.part(begin, i - begin)));
      }
      break;
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      out = v.items();
      break;
    case Kind::kGenerator: {
      auto* g = v.as<ListObject>();
      out.assign(g->items.begin() + static_cast<ptrdiff_t>(g->consumed), g->items.end());
      g->consumed = g->items.size();
      break;
    }
    case Kind::kDict:
      for (const auto& [key, value] : v.dict().entries) out.push_back(key);
      break;
    case Kind::kRange: {
      auto* r = v.as<RangeObject>();
      for (int64_t i = 0; i < r->length; ++i) out.push_back(Value::integer(r->start + i * r->step));
      break;
    }
    default:
      fail(str_cat("a value of type '", type_name(v), "' cannot be iterated"));
  }
  heap.step(1 + static_cast<int64_t>(out.size() / 4));
  return out;
}

}  // namespace mx8::jinja
