// The filters.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "text/jinja_convert.h"
#include "text/jinja_interpreter.h"

namespace mx8::jinja {

// ---- arguments

Args::Args(std::string_view what, const Call& call, std::initializer_list<std::string_view> names,
           size_t required)
    : what_(what), values_(names.size()) {
  if (call.positional.size() > names.size()) {
    fail(str_cat(what, " takes at most ", names.size(), " argument(s), got ",
                 call.positional.size()));
  }
  for (size_t i = 0; i < call.positional.size(); ++i) values_[i] = call.positional[i];
  for (const auto& [name, value] : call.keywords) {
    auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) fail(str_cat(what, " has no argument '", name, "'"));
    auto& slot = values_[static_cast<size_t>(it - names.begin())];
    if (slot.has_value()) fail(str_cat(what, ": argument '", name, "' is given twice"));
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i].has_value())
      fail(str_cat(what, " needs argument '", *(names.begin() + i), "'"));
  }
}

int64_t Args::integer(size_t i, int64_t fallback) const {
  if (!has(i)) return fallback;
  if (!values_[i]->is_integral()) {
    fail(str_cat(what_, ": expected an integer, got ", type_name(*values_[i])));
  }
  return values_[i]->as_int();
}

bool Args::flag(size_t i, bool fallback) const { return has(i) ? truthy(*values_[i]) : fallback; }

const Text& Args::text(size_t i) const {
  if (!values_[i]->is_string()) {
    fail(str_cat(what_, ": expected a string, got ", type_name(*values_[i])));
  }
  return values_[i]->text();
}

Text soft_text(Heap& heap, const Value& v) { return to_text(heap, v); }

Value like(Heap& heap, const Value& self, Text text) {
  return heap.string(std::move(text), self.is_string() && self.as<StringObject>()->markup);
}

namespace {

constexpr std::initializer_list<std::string_view> kNoNames = {};

void no_arguments(std::string_view what, const Call& call) { Args(what, call, kNoNames); }

// ---- text

template <Text (*F)(const Text&)>
Value text_filter(Interpreter& in, const Value& v, Call& call) {
  no_arguments("the filter", call);
  return like(in.heap(), v, F(soft_text(in.heap(), v)));
}

Text jinja_title(const Text& s) { return title(s, true); }

Value f_trim(Interpreter& in, const Value& v, Call& call) {
  Args args("trim", call, {"chars"});
  const std::string* chars = args.given(0) ? &args.text(0).bytes() : nullptr;
  return like(in.heap(), v, strip(soft_text(in.heap(), v), Side::kBoth, chars));
}

Value f_string(Interpreter& in, const Value& v, Call& call) {
  no_arguments("string", call);
  return to_string(in.heap(), v);
}

Value f_safe(Interpreter& in, const Value& v, Call& call) {
  no_arguments("safe", call);
  return in.heap().string(soft_text(in.heap(), v), true);
}

Value f_escape(Interpreter& in, const Value& v, Call& call) {
  no_arguments("escape", call);
  if (v.is_string() && v.as<StringObject>()->markup) return v;
  return in.heap().string(html_escape(soft_text(in.heap(), v)), true);
}

Value f_forceescape(Interpreter& in, const Value& v, Call& call) {
  no_arguments("forceescape", call);
  return in.heap().string(html_escape(soft_text(in.heap(), v)), true);
}

Value f_replace(Interpreter& in, const Value& v, Call& call) {
  Args args("replace", call, {"old", "new", "count"}, 2);
  Heap& heap = in.heap();
  Text s = soft_text(heap, v), from = soft_text(heap, args[0]), to = soft_text(heap, args[1]);
  int64_t count = args.given(2) ? args.integer(2, -1) : -1;
  return heap.string(checked_replace(heap, s, from, to, count));
}

Value f_indent(Interpreter& in, const Value& v, Call& call) {
  Args args("indent", call, {"width", "first", "blank"});
  in.require_defined(v);
  if (!v.is_string()) fail(str_cat("indent: expected a string, got ", type_name(v)));
  Heap& heap = in.heap();
  Text indention;
  if (args.has(0) && args[0].is_string()) {
    indention = args[0].text();
  } else {
    indention = Text(spaces(heap, args.integer(0, 4)));
  }
  bool first = args.flag(1, false), blank = args.flag(2, false);
  Text with_end = v.text();
  with_end.append("\n", false);
  std::vector<Text> lines = split_lines(with_end, false);
  heap.check_text(v.text().size() + lines.size() * (indention.size() + 1));
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out.append("\n", false);
    if (i == 0 ? first : blank || !lines[i].empty()) out.append(indention);
    out.append(lines[i]);
  }
  return like(heap, v, std::move(out));
}

Value f_center(Interpreter& in, const Value& v, Call& call) {
  Args args("center", call, {"width"});
  Value s = to_string(in.heap(), v);
  std::optional<Value> method = find_method(in, s, "center");
  Call inner;
  inner.positional.push_back(Value::integer(args.integer(0, 80)));
  return in.call(*method, inner);
}

Value f_truncate(Interpreter& in, const Value& v, Call& call) {
  Args args("truncate", call, {"length", "killwords", "end", "leeway"});
  if (!v.is_string()) fail(str_cat("truncate: expected a string, got ", type_name(v)));
  Heap& heap = in.heap();
  Text end = args.has(2) ? args.text(2) : Text("...");
  int64_t length = args.integer(0, 255), leeway = args.given(3) ? args.integer(3, 5) : 5;
  auto end_length = static_cast<int64_t>(code_points(end.bytes()));
  if (length < end_length || leeway < 0) fail("truncate: the length is too small");
  int64_t have = length_of(heap, v);
  if (have - leeway <= length) return v;
  Text out =
      v.text().part(0, offset_of(v.text().bytes(), static_cast<size_t>(length - end_length)));
  if (!args.flag(1, false)) {
    std::string space = " ";
    out = split(out, &space, 1, true)[0];
  }
  out.append(end);
  return like(heap, v, std::move(out));
}

Value f_wordcount(Interpreter& in, const Value& v, Call& call) {
  no_arguments("wordcount", call);
  Text s = soft_text(in.heap(), v);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < s.size();) {
    bool word = is_identifier_char(next_code_point(s.bytes(), i));
    words += word && !inside;
    inside = word;
  }
  return Value::integer(words);
}

Value f_format(Interpreter& in, const Value& v, Call& call) {
  Heap& heap = in.heap();
  if (!call.positional.empty() && !call.keywords.empty()) {
    fail("format: positional and keyword arguments cannot be mixed");
  }
  Value values;
  if (!call.keywords.empty()) {
    auto* dict = heap.make<DictObject>();
    for (const auto& [name, value] : call.keywords) dict->set(heap.string(name), value);
    values = Value::object(Kind::kDict, dict);
  } else {
    values = heap.tuple(call.positional);
  }
  return like(heap, v, percent_format(heap, soft_text(heap, v), values));
}

Value f_tojson(Interpreter& in, const Value& v, Call& call) {
  Args args("tojson", call, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = args.flag(0, false);
  style.sort_keys = args.flag(3, false);
  if (args.given(1)) {
    style.pretty = true;
    style.item_separator = Text(",");
    style.indent =
        args[1].is_string() ? args[1].text() : Text(spaces(in.heap(), args.integer(1, 0)));
  }
  if (args.given(2)) {
    std::vector<Value> pair = iterate(in.heap(), args[2]);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      fail("tojson: separators must be two strings");
    }
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  return in.heap().string(to_json(in.heap(), v, style));
}

// Not in jinja2 itself; templates of several families count on an engine that has it.
Value f_from_json(Interpreter& in, const Value& v, Call& call) {
  no_arguments("from_json", call);
  if (!v.is_string()) fail(str_cat("from_json: expected a string, got ", type_name(v)));
  in.heap().work(v.text().size());
  auto json = nlohmann::ordered_json::parse(v.text().bytes(), nullptr, false);
  if (json.is_discarded()) fail("from_json: the text is not JSON");
  return from_json(in.heap(), json, v.text().any_marked());
}

// ---- numbers

Value f_abs(Interpreter& in, const Value& v, Call& call) {
  no_arguments("abs", call);
  in.require_defined(v);
  if (!v.is_number()) fail(str_cat("abs: expected a number, got ", type_name(v)));
  if (v.is(Kind::kFloat)) return Value::real(std::fabs(v.as_double()));
  return v.as_int() < 0 ? arithmetic(Op::kSub, Value::integer(0), v) : Value::integer(v.as_int());
}

std::optional<Value> truncated(double d) {
  if (std::isnan(d)) return std::nullopt;
  if (std::fabs(d) >= 9.2e18) fail("int: the number needs more than 64 bits");
  return Value::integer(static_cast<int64_t>(d));
}

Value f_int(Interpreter& in, const Value& v, Call& call) {
  Args args("int", call, {"default", "base"});
  in.require_defined(v);
  std::optional<Value> result;
  if (v.is_integral()) return Value::integer(v.as_int());
  if (v.is(Kind::kFloat)) result = truncated(v.as_double());
  if (v.is_string()) {
    const std::string& s = v.text().bytes();
    if (auto i = parse_int(s, static_cast<int>(args.integer(1, 10)))) return Value::integer(*i);
    if (auto d = parse_float(s)) result = truncated(*d);
  }
  return result ? *result : args.has(0) ? args[0] : Value::integer(0);
}

Value f_float(Interpreter& in, const Value& v, Call& call) {
  Args args("float", call, {"default"});
  in.require_defined(v);
  if (v.is_number()) return Value::real(v.as_double());
  if (v.is_string()) {
    if (auto d = parse_float(v.text().bytes())) return Value::real(*d);
  }
  return args.has(0) ? args[0] : Value::real(0);
}

Value f_round(Interpreter& in, const Value& v, Call& call) {
  Args args("round", call, {"precision", "method"});
  in.require_defined(v);
  if (!v.is_number()) fail(str_cat("round: expected a number, got ", type_name(v)));
  int64_t precision = args.integer(0, 0);
  std::string method = args.has(1) ? args.text(1).bytes() : "common";
  if (std::abs(precision) > 300) fail("round: the precision is out of range");
  double scale = std::pow(10.0, static_cast<double>(std::abs(precision)));
  if (method == "common") {
    if (v.is_integral() && precision >= 0) return Value::integer(v.as_int());
    if (precision >= 0) {
      char buffer[700];
      std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), v.as_double());
      return Value::real(std::strtod(buffer, nullptr));
    }
    double rounded = std::nearbyint(v.as_double() / scale) * scale;
    return v.is_integral() ? Value::integer(static_cast<int64_t>(rounded)) : Value::real(rounded);
  }
  if (method != "ceil" && method != "floor") fail("round: method must be common, ceil or floor");
  double scaled = precision >= 0 ? v.as_double() * scale : v.as_double() / scale;
  double rounded = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value::real(precision >= 0 ? rounded / scale : rounded * scale);
}

// ---- sequences

Value f_length(Interpreter& in, const Value& v, Call& call) {
  no_arguments("length", call);
  if (v.is(Kind::kLoop)) return in.attribute(v, "length");
  int64_t n = length_of(in.heap(), v);
  if (n < 0) fail(str_cat("a value of type '", type_name(v), "' has no length"));
  return Value::integer(n);
}

Value f_default(Interpreter& in, const Value& v, Call& call) {
  Args args("default", call, {"default_value", "boolean"});
  bool use = v.is_undefined() || (args.flag(1, false) && !truthy(v));
  if (!use) return v;
  return args.has(0) ? args[0] : in.heap().string("");
}

Value f_list(Interpreter& in, const Value& v, Call& call) {
  no_arguments("list", call);
  return in.heap().list(iterate(in.heap(), v));
}

Value f_first(Interpreter& in, const Value& v, Call& call) {
  no_arguments("first", call);
  if (v.is(Kind::kGenerator)) {
    auto* g = v.as<ListObject>();
    if (g->consumed < g->items.size()) return g->items[g->consumed++];
    return in.heap().undefined("No first item, sequence was empty.");
  }
  std::vector<Value> items = iterate(in.heap(), v);
  return items.empty() ? in.heap().undefined("No first item, sequence was empty.") : items.front();
}

Value f_last(Interpreter& in, const Value& v, Call& call) {
  no_arguments("last", call);
  if (v.is(Kind::kGenerator)) fail("last: a generator has no last item");
  std::vector<Value> items = iterate(in.heap(), v);
  return items.empty() ? in.heap().undefined("No last item, sequence was empty.") : items.back();
}

Value f_reverse(Interpreter& in, const Value& v, Call& call) {
  no_arguments("reverse", call);
  if (v.is_string()) return like(in.heap(), v, reverse(v.text()));
  std::vector<Value> items = iterate(in.heap(), v);
  std::reverse(items.begin(), items.end());
  if (v.is(Kind::kGenerator)) return in.heap().list(std::move(items));
  return in.heap().generator("reversed", std::move(items));
}

Value f_items(Interpreter& in, const Value& v, Call& call) {
  no_arguments("items", call);
  std::vector<Value> out;
  if (!v.is_undefined()) {
    if (!v.is(Kind::kDict)) fail("items: can only get item pairs from a mapping");
    for (const auto& [key, value] : v.dict().entries) out.push_back(in.heap().tuple({key, value}));
  }
  return in.heap().generator("generator", std::move(out));
}

// "a.b.0" as the steps of a lookup.
std::vector<Value> attribute_parts(Heap& heap, const Value& attribute) {
  if (attribute.is(Kind::kNone)) return {};
  if (!attribute.is_string()) return {attribute};
  std::vector<Value> out;
  std::string dot = ".";
  for (const Text& part : split(attribute.text(), &dot, -1, false)) {
    std::optional<int64_t> index;
    if (all_of(part.bytes(), CharTest::kDigit)) index = parse_int(part.bytes(), 10);
    out.push_back(index ? Value::integer(*index) : heap.string(part));
  }
  return out;
}

Value get_attribute(Interpreter& in, Value v, const std::vector<Value>& parts,
                    const Value* fallback = nullptr) {
  for (const Value& part : parts) {
    v = in.item(v, part);
    if (fallback != nullptr && v.is_undefined()) v = *fallback;
  }
  return v;
}

Value ignore_case(Heap& heap, const Value& v) {
  return v.is_string() ? heap.string(lower(v.text())) : v;
}

Value f_join(Interpreter& in, const Value& v, Call& call) {
  Args args("join", call, {"d", "attribute"});
  Heap& heap = in.heap();
  Text separator = args.has(0) ? soft_text(heap, args[0]) : Text();
  std::vector<Value> parts;
  if (args.given(1)) parts = attribute_parts(heap, args[1]);
  Text out;
  bool first = true;
  for (const Value& item : iterate(heap, v)) {
    if (!first) out.append(separator);
    first = false;
    Text text = to_text(heap, get_attribute(in, item, parts));
    heap.check_text(out.size() + text.size() + separator.size());
    out.append(text);
  }
  return heap.string(std::move(out));
}

// Sorts pairs of (key, item) stably by key.
std::vector<Value> sorted(Heap& heap, std::vector<std::pair<Value, Value>> pairs, bool backwards) {
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return backwards ? less(heap, b.first, a.first) : less(heap, a.first, b.first);
  });
  std::vector<Value> out;
  out.reserve(pairs.size());
  for (const auto& [key, item] : pairs) out.push_back(item);
  return out;
}

Value f_sort(Interpreter& in, const Value& v, Call& call) {
  Args args("sort", call, {"reverse", "case_sensitive", "attribute"});
  Heap& heap = in.heap();
  std::vector<std::vector<Value>> attributes;
  if (args.given(2) && args[2].is_string()) {
    std::string comma = ",";
    for (const Text& a : split(args[2].text(), &comma, -1, false)) {
      attributes.push_back(attribute_parts(heap, heap.string(a)));
    }
  } else {
    attributes.push_back(attribute_parts(heap, args.has(2) ? args[2] : Value::none()));
  }
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value& item : iterate(heap, v)) {
    std::vector<Value> keys;
    for (const auto& parts : attributes) {
      Value key = get_attribute(in, item, parts);
      keys.push_back(args.flag(1, false) ? key : ignore_case(heap, key));
    }
    pairs.emplace_back(heap.list(std::move(keys)), item);
  }
  return heap.list(sorted(heap, std::move(pairs), args.flag(0, false)));
}

Value f_dictsort(Interpreter& in, const Value& v, Call& call) {
  Args args("dictsort", call, {"case_sensitive", "by", "reverse"});
  Heap& heap = in.heap();
  in.require_defined(v);
  if (!v.is(Kind::kDict)) fail(str_cat("dictsort: expected a mapping, got ", type_name(v)));
  std::string by = args.has(1) ? args.text(1).bytes() : "key";
  if (by != "key" && by != "value") fail("dictsort: can only sort by \"key\" or \"value\"");
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto& [key, value] : v.dict().entries) {
    const Value& sort_key = by == "key" ? key : value;
    pairs.emplace_back(args.flag(0, false) ? sort_key : ignore_case(heap, sort_key),
                       heap.tuple({key, value}));
  }
  return heap.list(sorted(heap, std::move(pairs), args.flag(2, false)));
}

Value f_unique(Interpreter& in, const Value& v, Call& call) {
  Args args("unique", call, {"case_sensitive", "attribute"});
  Heap& heap = in.heap();
  std::vector<Value> parts = attribute_parts(heap, args.has(1) ? args[1] : Value::none());
  auto* seen = heap.make<DictObject>();
  std::vector<Value> out;
  for (const Value& item : iterate(heap, v)) {
    Value key = get_attribute(in, item, parts);
    if (!args.flag(0, false)) key = ignore_case(heap, key);
    require_hashable(key);
    heap.step(key.is_string() ? 1 : 1 + static_cast<int64_t>(seen->entries.size()));
    if (seen->find(key) != nullptr) continue;
    seen->set(key, Value::none());
    out.push_back(item);
  }
  return heap.generator("generator", std::move(out));
}

Value extreme(Interpreter& in, const Value& v, Call& call, bool largest) {
  Args args(largest ? "max" : "min", call, {"case_sensitive", "attribute"});
  Heap& heap = in.heap();
  std::vector<Value> parts = attribute_parts(heap, args.has(1) ? args[1] : Value::none());
  std::optional<Value> best, best_key;
  for (const Value& item : iterate(heap, v)) {
    Value key = get_attribute(in, item, parts);
    if (!args.flag(0, false)) key = ignore_case(heap, key);
    bool better = !best || (largest ? less(heap, *best_key, key) : less(heap, key, *best_key));
    if (!better) continue;
    best = item;
    best_key = key;
  }
  return best ? *best : heap.undefined("No aggregated item, sequence was empty.");
}

Value f_min(Interpreter& in, const Value& v, Call& call) { return extreme(in, v, call, false); }
Value f_max(Interpreter& in, const Value& v, Call& call) { return extreme(in, v, call, true); }

Value f_sum(Interpreter& in, const Value& v, Call& call) {
  Args args("sum", call, {"attribute", "start"});
  std::vector<Value> parts = attribute_parts(in.heap(), args.has(0) ? args[0] : Value::none());
  Value total = args.has(1) ? args[1] : Value::integer(0);
  for (const Value& item : iterate(in.heap(), v)) {
    Value x = get_attribute(in, item, parts);
    in.require_defined(x);
    if (!x.is_number() || !total.is_number()) fail("sum: only numbers can be added");
    total = arithmetic(Op::kAdd, total, x);
  }
  return total;
}

Value f_batch(Interpreter& in, const Value& v, Call& call) {
  Args args("batch", call, {"linecount", "fill_with"}, 1);
  Heap& heap = in.heap();
  int64_t size = args.integer(0, 1);
  std::vector<Value> out, row;
  for (const Value& item : iterate(heap, v)) {
    if (static_cast<int64_t>(row.size()) == size) {
      out.push_back(heap.list(std::move(row)));
      row = {};
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    while (args.given(1) && static_cast<int64_t>(row.size()) < size) {
      heap.charge(sizeof(Value));
      row.push_back(args[1]);
    }
    out.push_back(heap.list(std::move(row)));
  }
  return heap.generator("generator", std::move(out));
}

Value f_slice(Interpreter& in, const Value& v, Call& call) {
  Args args("slice", call, {"slices", "fill_with"}, 1);
  Heap& heap = in.heap();
  std::vector<Value> items = iterate(heap, v), out;
  int64_t slices = args.integer(0, 1), length = static_cast<int64_t>(items.size());
  if (slices == 0) fail("slice: integer division or modulo by zero");
  int64_t extra = slices > 0 ? length % slices : 0, each = slices > 0 ? length / slices : 0;
  int64_t at = 0;
  for (int64_t i = 0; i < slices; ++i) {
    heap.step();
    int64_t end = at + each + (i < extra ? 1 : 0);
    std::vector<Value> part(items.begin() + at, items.begin() + end);
    if (args.given(1) && i >= extra) part.push_back(args[1]);
    out.push_back(heap.list(std::move(part)));
    at = end;
  }
  return heap.generator("generator", std::move(out));
}

Value f_attr(Interpreter& in, const Value& v, Call& call) {
  Args args("attr", call, {"name"}, 1);
  if (v.is(Kind::kDict)) {
    std::optional<Value> method = find_method(in, v, args.text(0).bytes());
    if (method) return *method;
    return in.heap().undefined(
        str_cat("'dict object' has no attribute '", args.text(0).bytes(), "'"));
  }
  return in.attribute(v, args.text(0).bytes());
}

Value f_map(Interpreter& in, const Value& v, Call& call) {
  Heap& heap = in.heap();
  std::vector<Value> out;
  if (!truthy(v)) return heap.generator("generator", {});
  if (call.positional.empty() && !call.keywords.empty()) {
    Args args("map", call, {"attribute", "default"});
    if (!args.has(0)) fail("map requires a filter or an attribute");
    std::vector<Value> parts = attribute_parts(heap, args[0]);
    const Value* fallback = args.given(1) ? &args[1] : nullptr;
    for (const Value& item : iterate(heap, v)) {
      out.push_back(get_attribute(in, item, parts, fallback));
    }
  } else {
    if (call.positional.empty() || !call.positional[0].is_string()) {
      fail("map requires the name of a filter");
    }
    const std::string name = call.positional[0].text().bytes();
    Native filter = find_filter(name);
    if (filter == nullptr) fail(str_cat("filter '", name, "' is not supported"));
    Heap::Nest nest(heap);
    Call inner = call;
    inner.positional.erase(inner.positional.begin());
    for (const Value& item : iterate(heap, v)) {
      Call each = inner;
      out.push_back(filter(in, item, each));
    }
  }
  return heap.generator("generator", std::move(out));
}

Value choose(Interpreter& in, const Value& v, Call& call, bool keep, bool by_attribute) {
  Heap& heap = in.heap();
  if (!truthy(v)) return heap.generator("generator", {});
  std::vector<Value> parts;
  Call rest = call;
  auto take = [&] {
    Value first = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return first;
  };
  if (by_attribute) {
    if (rest.positional.empty()) fail("the name of an attribute is missing");
    parts = attribute_parts(heap, take());
  }
  Native test = nullptr;
  if (!rest.positional.empty()) {
    Value name = take();
    if (name.is_string()) test = find_test(name.text().bytes());
    if (test == nullptr) fail(str_cat("test '", to_text(heap, name).bytes(), "' is not supported"));
  }
  std::vector<Value> out;
  for (const Value& item : iterate(heap, v)) {
    Value subject = get_attribute(in, item, parts);
    Call each = rest;
    if (truthy(test != nullptr ? test(in, subject, each) : subject) == keep) out.push_back(item);
  }
  return heap.generator("generator", std::move(out));
}

Value f_select(Interpreter& in, const Value& v, Call& c) { return choose(in, v, c, true, false); }
Value f_reject(Interpreter& in, const Value& v, Call& c) { return choose(in, v, c, false, false); }
Value f_selectattr(Interpreter& in, const Value& v, Call& c) {
  return choose(in, v, c, true, true);
}
Value f_rejectattr(Interpreter& in, const Value& v, Call& c) {
  return choose(in, v, c, false, true);
}

constexpr std::pair<std::string_view, Native> kFilters[] = {
    {"abs", f_abs},
    {"attr", f_attr},
    {"batch", f_batch},
    {"capitalize", text_filter<capitalize>},
    {"center", f_center},
    {"count", f_length},
    {"d", f_default},
    {"default", f_default},
    {"dictsort", f_dictsort},
    {"e", f_escape},
    {"escape", f_escape},
    {"first", f_first},
    {"float", f_float},
    {"forceescape", f_forceescape},
    {"format", f_format},
    {"from_json", f_from_json},
    {"indent", f_indent},
    {"int", f_int},
    {"items", f_items},
    {"join", f_join},
    {"last", f_last},
    {"length", f_length},
    {"list", f_list},
    {"lower", text_filter<lower>},
    {"map", f_map},
    {"max", f_max},
    {"min", f_min},
    {"reject", f_reject},
    {"rejectattr", f_rejectattr},
    {"replace", f_replace},
    {"reverse", f_reverse},
    {"round", f_round},
    {"safe", f_safe},
    {"select", f_select},
    {"selectattr", f_selectattr},
    {"slice", f_slice},
    {"sort", f_sort},
    {"string", f_string},
    {"sum", f_sum},
    {"title", text_filter<jinja_title>},
    {"tojson", f_tojson},
    {"trim", f_trim},
    {"truncate", f_truncate},
    {"unique", f_unique},
    {"upper", text_filter<upper>},
    {"wordcount", f_wordcount},
};

}  // namespace

Native find_filter(std::string_view name) {
  for (const auto& [key, native] : kFilters) {
    if (key == name) return native;
  }
  return nullptr;
}

bool is_unsupported_filter(std::string_view name) {
  static constexpr std::string_view kKnown[] = {"filesizeformat", "groupby",   "pprint",
                                                "random",         "striptags", "urlencode",
                                                "urlize",         "wordwrap",  "xmlattr"};
  return std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown);
}

}  // namespace mx8::jinja
