// Methods of str, list, tuple and dict.
#include <algorithm>

#include "base/strings.h"
#include "text/jinja_convert.h"
#include "text/jinja_interpreter.h"

namespace mx8::jinja {

Text checked_replace(Heap& heap, const Text& s, const Text& from, const Text& to,
                     int64_t max_count) {
  heap.work(s.size());
  if (to.size() > from.size()) {
    int64_t n = count_occurrences(s.bytes(), from.bytes());
    if (max_count >= 0) n = std::min(n, max_count);
    auto growth = static_cast<size_t>(n) * (to.size() - from.size());
    if (n > 0 && growth / static_cast<size_t>(n) != to.size() - from.size()) growth = SIZE_MAX / 2;
    heap.check_text(s.size() + growth);
    heap.work(growth);
  }
  return replace(s, from, to, max_count);
}

std::string spaces(Heap& heap, int64_t count) {
  if (count <= 0) return {};
  heap.check_text(static_cast<size_t>(count));
  return std::string(static_cast<size_t>(count), ' ');
}

namespace {

const Text& self_text(const Value& v) { return v.text(); }

// ---- str

template <Side kSide>
Value s_strip(Interpreter& in, const Value& self, Call& call) {
  Args args("strip", call, {"chars"});
  in.heap().work(self.text().size());
  const std::string* chars = args.given(0) ? &args.text(0).bytes() : nullptr;
  return like(in.heap(), self, strip(self_text(self), kSide, chars));
}

template <bool kFromRight>
Value s_split(Interpreter& in, const Value& self, Call& call) {
  Args args("split", call, {"sep", "maxsplit"});
  Heap& heap = in.heap();
  heap.work(self.text().size());
  const std::string* separator = args.given(0) ? &args.text(0).bytes() : nullptr;
  if (separator != nullptr && separator->empty()) fail("split: empty separator");
  int64_t most = args.integer(1, -1);
  // An estimate before the pieces exist: no more of them than separators.
  if (separator != nullptr) {
    auto n = static_cast<size_t>(count_occurrences(self.text().bytes(), *separator));
    heap.charge(n * sizeof(Text));
  } else {
    heap.charge(self.text().size() / 2 * sizeof(Text));
  }
  std::vector<Value> out;
  for (Text& piece : split(self_text(self), separator, most, kFromRight)) {
    out.push_back(like(heap, self, std::move(piece)));
  }
  return heap.list(std::move(out));
}

Value s_splitlines(Interpreter& in, const Value& self, Call& call) {
  Args args("splitlines", call, {"keepends"});
  Heap& heap = in.heap();
  heap.work(self.text().size());
  std::vector<Value> out;
  for (Text& line : split_lines(self_text(self), args.flag(0, false))) {
    out.push_back(like(heap, self, std::move(line)));
  }
  return heap.list(std::move(out));
}

// [begin, end) in bytes of the code points that Python's optional start and end select; false when
// start lies behind the end of the string.
bool select(Interpreter& in, const Value& self, const Args& args, size_t first, size_t& begin,
            size_t& end) {
  const std::string& s = self.text().bytes();
  begin = 0;
  end = s.size();
  if (!args.given(first) && !args.given(first + 1)) return true;
  int64_t length = length_of(in.heap(), self);
  auto bound = [&](size_t i, int64_t fallback) {
    if (!args.given(i)) return fallback;
    int64_t v = args.integer(i, 0);
    return v < 0 ? std::max<int64_t>(v < -length ? 0 : v + length, 0) : v;
  };
  int64_t from = bound(first, 0), to = std::min(bound(first + 1, length), length);
  if (from > length || from > to) return false;
  begin = offset_of(s, static_cast<size_t>(from));
  end = offset_of(s, static_cast<size_t>(to));
  return true;
}

template <bool kEnd>
Value s_affix(Interpreter& in, const Value& self, Call& call) {
  Args args(kEnd ? "endswith" : "startswith", call, {"prefix", "start", "end"}, 1);
  size_t begin = 0, end = 0;
  if (!select(in, self, args, 1, begin, end)) return Value::boolean(false);
  std::string_view s = std::string_view(self.text().bytes()).substr(begin, end - begin);
  auto matches = [&](const Value& v) {
    if (!v.is_string()) {
      fail(str_cat("startswith and endswith take strings, not ", type_name(v)));
    }
    const std::string& what = v.text().bytes();
    return kEnd ? s.ends_with(what) : s.starts_with(what);
  };
  if (!args[0].is(Kind::kTuple)) return Value::boolean(matches(args[0]));
  return Value::boolean(std::any_of(args[0].items().begin(), args[0].items().end(), matches));
}

template <bool kFromRight, bool kMustExist>
Value s_find(Interpreter& in, const Value& self, Call& call) {
  Args args("find", call, {"sub", "start", "end"}, 1);
  const std::string& what = args.text(0).bytes();
  in.heap().work(self.text().size());
  size_t begin = 0, end = 0, at = std::string::npos;
  if (select(in, self, args, 1, begin, end)) {
    std::string_view s = std::string_view(self.text().bytes()).substr(begin, end - begin);
    at = kFromRight ? s.rfind(what) : s.find(what);
  }
  if (at == std::string::npos) {
    if (kMustExist) fail("substring not found");
    return Value::integer(-1);
  }
  std::string_view before = std::string_view(self.text().bytes()).substr(0, begin + at);
  return Value::integer(static_cast<int64_t>(code_points(before)));
}

Value s_count(Interpreter& in, const Value& self, Call& call) {
  Args args("count", call, {"sub", "start", "end"}, 1);
  in.heap().work(self.text().size());
  size_t begin = 0, end = 0;
  if (!select(in, self, args, 1, begin, end)) return Value::integer(0);
  std::string_view s = std::string_view(self.text().bytes()).substr(begin, end - begin);
  return Value::integer(count_occurrences(s, args.text(0).bytes()));
}

Value s_replace(Interpreter& in, const Value& self, Call& call) {
  Args args("replace", call, {"old", "new", "count"}, 2);
  return like(
      in.heap(), self,
      checked_replace(in.heap(), self_text(self), args.text(0), args.text(1), args.integer(2, -1)));
}

template <Text (*F)(const Text&)>
Value s_map(Interpreter& in, const Value& self, Call& call) {
  Args("the method", call, {});
  in.heap().work(self.text().size());
  return like(in.heap(), self, F(self_text(self)));
}

Text python_title(const Text& s) { return title(s, false); }

template <CharTest kTest>
Value s_is(Interpreter& in, const Value& self, Call& call) {
  Args("the method", call, {});
  in.heap().work(self.text().size());
  return Value::boolean(all_of(self.text().bytes(), kTest));
}

Value s_join(Interpreter& in, const Value& self, Call& call) {
  Args args("join", call, {"iterable"}, 1);
  Heap& heap = in.heap();
  Text out;
  bool first = true;
  for (const Value& item : iterate(heap, args[0])) {
    if (!item.is_string()) fail(str_cat("join: expected strings, got ", type_name(item)));
    heap.check_text(out.size() + item.text().size() + self.text().size());
    if (!first) out.append(self.text());
    first = false;
    out.append(item.text());
  }
  return like(heap, self, std::move(out));
}

Value s_format(Interpreter& in, const Value& self, Call& call) {
  return like(in.heap(), self, brace_format(in, self.text(), call));
}

enum class Pad { kLeft, kRight, kCenter };
template <Pad kPad>
Value s_pad(Interpreter& in, const Value& self, Call& call) {
  Args args("the method", call, {"width", "fillchar"}, 1);
  Heap& heap = in.heap();
  Text fill = args.has(1) ? args.text(1) : Text(" ");
  if (code_points(fill.bytes()) != 1) fail("the fill character must be one character");
  int64_t width = args.integer(0, 0), missing = width - length_of(heap, self);
  if (missing <= 0) return self;
  heap.check_text(static_cast<size_t>(missing));
  // Python's centring puts the odd one left when the width is odd.
  int64_t left = kPad == Pad::kRight    ? missing
                 : kPad == Pad::kCenter ? missing / 2 + (missing & width & 1)
                                        : 0;
  Text out;
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(self.text());
  for (int64_t i = left; i < missing; ++i) out.append(fill);
  return like(heap, self, std::move(out));
}

Value s_zfill(Interpreter& in, const Value& self, Call& call) {
  Args args("zfill", call, {"width"}, 1);
  int64_t missing = args.integer(0, 0) - length_of(in.heap(), self);
  if (missing <= 0) return self;
  in.heap().check_text(static_cast<size_t>(missing));
  const Text& s = self.text();
  size_t sign = !s.empty() && (s.bytes()[0] == '-' || s.bytes()[0] == '+') ? 1 : 0;
  Text out = s.part(0, sign);
  out.append(std::string(static_cast<size_t>(missing), '0'), false);
  out.append_part(s, sign, s.size());
  return like(in.heap(), self, std::move(out));
}

template <bool kEnd>
Value s_remove(Interpreter& in, const Value& self, Call& call) {
  Args args("the method", call, {"affix"}, 1);
  const Text& s = self.text();
  const std::string& affix = args.text(0).bytes();
  if (kEnd && !affix.empty() && s.bytes().ends_with(affix)) {
    return like(in.heap(), self, s.part(0, s.size() - affix.size()));
  }
  if (!kEnd && s.bytes().starts_with(affix)) return like(in.heap(), self, s.part(affix.size()));
  return self;
}

template <bool kFromRight>
Value s_partition(Interpreter& in, const Value& self, Call& call) {
  Args args("partition", call, {"sep"}, 1);
  const Text& s = self.text();
  const std::string& separator = args.text(0).bytes();
  if (separator.empty()) fail("partition: empty separator");
  size_t at = kFromRight ? s.bytes().rfind(separator) : s.bytes().find(separator);
  Heap& heap = in.heap();
  auto value = [&](Text t) { return like(heap, self, std::move(t)); };
  if (at == std::string::npos) {
    if (kFromRight) return heap.tuple({value(Text()), value(Text()), self});
    return heap.tuple({self, value(Text()), value(Text())});
  }
  return heap.tuple({value(s.part(0, at)), value(s.part(at, separator.size())),
                     value(s.part(at + separator.size()))});
}

Value unsupported_method(Interpreter&, const Value& self, Call&) {
  fail(str_cat("this method of '", type_name(self), "' is not supported"));
}

using Method = std::pair<std::string_view, Native>;

constexpr Method kStringMethods[] = {
    {"strip", s_strip<Side::kBoth>},
    {"lstrip", s_strip<Side::kLeft>},
    {"rstrip", s_strip<Side::kRight>},
    {"split", s_split<false>},
    {"rsplit", s_split<true>},
    {"splitlines", s_splitlines},
    {"startswith", s_affix<false>},
    {"endswith", s_affix<true>},
    {"replace", s_replace},
    {"upper", s_map<upper>},
    {"lower", s_map<lower>},
    {"capitalize", s_map<capitalize>},
    {"title", s_map<python_title>},
    {"find", s_find<false, false>},
    {"rfind", s_find<true, false>},
    {"index", s_find<false, true>},
    {"rindex", s_find<true, true>},
    {"count", s_count},
    {"join", s_join},
    {"format", s_format},
    {"ljust", s_pad<Pad::kLeft>},
    {"rjust", s_pad<Pad::kRight>},
    {"center", s_pad<Pad::kCenter>},
    {"zfill", s_zfill},
    {"removeprefix", s_remove<false>},
    {"removesuffix", s_remove<true>},
    {"partition", s_partition<false>},
    {"rpartition", s_partition<true>},
    {"isalpha", s_is<CharTest::kAlpha>},
    {"isdigit", s_is<CharTest::kDigit>},
    {"isdecimal", s_is<CharTest::kDecimal>},
    {"isnumeric", s_is<CharTest::kNumeric>},
    {"isalnum", s_is<CharTest::kAlnum>},
    {"isspace", s_is<CharTest::kSpace>},
    {"isupper", s_is<CharTest::kUpper>},
    {"islower", s_is<CharTest::kLower>},
    // Python has these; a call of one is refused.
    {"casefold", unsupported_method},
    {"encode", unsupported_method},
    {"expandtabs", unsupported_method},
    {"format_map", unsupported_method},
    {"isascii", unsupported_method},
    {"isidentifier", unsupported_method},
    {"isprintable", unsupported_method},
    {"istitle", unsupported_method},
    {"maketrans", unsupported_method},
    {"swapcase", unsupported_method},
    {"translate", unsupported_method},
};

// ---- list, tuple, range

Value l_count(Interpreter& in, const Value& self, Call& call) {
  Args args("count", call, {"value"}, 1);
  int64_t n = 0;
  for (const Value& v : iterate(in.heap(), self)) n += equal(in.heap(), v, args[0]);
  return Value::integer(n);
}

Value l_index(Interpreter& in, const Value& self, Call& call) {
  Args args("index", call, {"value"}, 1);
  std::vector<Value> items = iterate(in.heap(), self);
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(in.heap(), items[i], args[0])) return Value::integer(static_cast<int64_t>(i));
  }
  fail("index: the value is not in the list");
}

Value l_copy(Interpreter& in, const Value& self, Call& call) {
  Args("copy", call, {});
  return in.heap().list(iterate(in.heap(), self));
}

// jinja2's immutable sandbox refuses append and pop; published templates use them all the same, and
// what they can change here ends with the rendering.
Value l_append(Interpreter& in, const Value& self, Call& call) {
  Args args("append", call, {"object"}, 1);
  in.heap().charge(sizeof(Value));
  self.items().push_back(args[0]);
  return Value::none();
}

Value l_pop(Interpreter& in, const Value& self, Call& call) {
  Args args("pop", call, {"index"});
  std::vector<Value>& items = self.items();
  auto length = static_cast<int64_t>(items.size());
  int64_t index = args.integer(0, -1);
  if (index < 0) index += length;
  if (index < 0 || index >= length) fail("pop: index out of range");
  in.heap().step(1 + length / 8);
  Value v = items[static_cast<size_t>(index)];
  items.erase(items.begin() + index);
  return v;
}

constexpr Method kListMethods[] = {
    {"append", l_append}, {"pop", l_pop}, {"count", l_count}, {"index", l_index}, {"copy", l_copy}};
constexpr std::string_view kListForbidden[] = {"clear",  "extend",  "insert",
                                               "remove", "reverse", "sort"};
constexpr Method kTupleMethods[] = {{"count", l_count}, {"index", l_index}};

// ---- dict

Value d_get(Interpreter& in, const Value& self, Call& call) {
  Args args("get", call, {"key", "default"}, 1);
  require_hashable(args[0]);
  const Value* v = self.dict().find(args[0]);
  return v != nullptr ? *v : args.has(1) ? args[1] : Value::none();
}

enum class Part { kItems, kKeys, kValues };
template <Part kPart>
Value d_view(Interpreter& in, const Value& self, Call& call) {
  Args("the method", call, {});
  Heap& heap = in.heap();
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries) {
    out.push_back(kPart == Part::kItems  ? heap.tuple({key, value})
                  : kPart == Part::kKeys ? key
                                         : value);
  }
  const char* name = kPart == Part::kItems  ? "dict_items"
                     : kPart == Part::kKeys ? "dict_keys"
                                            : "dict_values";
  return heap.view(name, std::move(out));
}

Value d_copy(Interpreter& in, const Value& self, Call& call) {
  Args("copy", call, {});
  auto* copy = in.heap().make<DictObject>(self.dict().entries.size() * 2 * sizeof(Value));
  for (const auto& [key, value] : self.dict().entries) copy->set(key, value);
  return Value::object(Kind::kDict, copy);
}

constexpr Method kDictMethods[] = {{"get", d_get},
                                   {"items", d_view<Part::kItems>},
                                   {"keys", d_view<Part::kKeys>},
                                   {"values", d_view<Part::kValues>},
                                   {"copy", d_copy},
                                   {"fromkeys", unsupported_method}};
constexpr std::string_view kDictForbidden[] = {"clear", "pop", "popitem", "setdefault", "update"};

template <size_t kCount>
Native find_in(const Method (&table)[kCount], std::string_view name) {
  for (const auto& [key, native] : table) {
    if (key == name) return native;
  }
  return nullptr;
}

template <size_t kCount>
bool among(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

std::optional<Value> find_method(Interpreter& in, const Value& object, std::string_view name) {
  Native native = nullptr;
  bool forbidden = false;
  switch (object.kind()) {
    case Kind::kString:
      native = find_in(kStringMethods, name);
      break;
    case Kind::kTuple:
      native = find_in(kTupleMethods, name);
      break;
    case Kind::kRange:
      native = find_in(kTupleMethods, name);
      break;
    case Kind::kList:
      native = find_in(kListMethods, name);
      forbidden = among(kListForbidden, name);
      break;
    case Kind::kDict:
      native = find_in(kDictMethods, name);
      forbidden = among(kDictForbidden, name);
      break;
    default:
      break;
  }
  if (forbidden) {
    return in.heap().undefined(
        str_cat("access to attribute '", name, "' of '", type_name(object), "' object is unsafe."));
  }
  if (native == nullptr) return std::nullopt;
  auto* f = in.heap().make<FunctionObject>();
  f->name = name;
  f->self = object;
  f->native = native;
  return Value::object(Kind::kFunction, f);
}

}  // namespace mx8::jinja
