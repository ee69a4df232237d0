// Global functions, and JSON into values.
#include <ctime>

#include "base/strings.h"
#include "text/jinja_convert.h"
#include "text/jinja_interpreter.h"

namespace mx8::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // jinja2's sandbox has the same

// dict(...) and namespace(...): a mapping or pairs, then keywords.
DictObject* collect(Interpreter& in, Call& call) {
  Heap& heap = in.heap();
  if (call.positional.size() > 1) fail("dict and namespace take at most one positional argument");
  auto* dict = heap.make<DictObject>((call.keywords.size() + 1) * 2 * sizeof(Value));
  if (!call.positional.empty()) {
    const Value& from = call.positional[0];
    if (from.is(Kind::kDict)) {
      heap.charge(from.dict().entries.size() * 2 * sizeof(Value));
      for (const auto& [key, value] : from.dict().entries) dict->set(key, value);
    } else {
      for (const Value& pair : iterate(heap, from)) {
        std::vector<Value> both = iterate(heap, pair);
        if (both.size() != 2) fail("dict: every item must be a pair");
        require_hashable(both[0]);
        dict->set(both[0], both[1]);
      }
    }
  }
  for (const auto& [name, value] : call.keywords) dict->set(heap.string(name), value);
  return dict;
}

Value g_dict(Interpreter& in, const Value&, Call& call) {
  return Value::object(Kind::kDict, collect(in, call));
}

Value g_namespace(Interpreter& in, const Value&, Call& call) {
  return Value::object(Kind::kNamespace, collect(in, call));
}

Value g_range(Interpreter& in, const Value&, Call& call) {
  Args args("range", call, {"start", "stop", "step"}, 1);
  for (size_t i = 0; i < 3; ++i) {
    if (args.has(i) && std::abs(args.integer(i, 0) / 2) > int64_t{1} << 40) {
      fail("range: a bound is too large");
    }
  }
  int64_t start = args.has(1) ? args.integer(0, 0) : 0;
  int64_t stop = args.has(1) ? args.integer(1, 0) : args.integer(0, 0);
  int64_t step = args.integer(2, 1);
  if (step == 0) fail("range: the step must not be zero");
  Value r = in.heap().range(start, stop, step);
  if (r.as<RangeObject>()->length > kMaxRange) {
    fail(str_cat("range: more than ", kMaxRange, " items"));
  }
  return r;
}

Value g_raise_exception(Interpreter& in, const Value&, Call& call) {
  Args args("raise_exception", call, {"message"}, 1);
  fail(str_cat("the template refuses the messages: ", to_text(in.heap(), args[0]).bytes()));
}

Value g_strftime_now(Interpreter& in, const Value&, Call& call) {
  Args args("strftime_now", call, {"format"}, 1);
  // A marker in front: strftime returns 0 for an empty result as well as for a full buffer.
  std::string format = str_cat(".", args.text(0).bytes());
  if (format.size() > 1000) fail("strftime_now: the format is too long");
  std::string buffer(format.size() * 64, '\0');
  size_t n = std::strftime(buffer.data(), buffer.size(), format.c_str(), &in.now());
  if (n == 0) fail("strftime_now: the format is not usable");
  return in.heap().string(Text(std::string_view(buffer).substr(1, n - 1)));
}

constexpr std::pair<std::string_view, Native> kGlobals[] = {{"dict", g_dict},
                                                            {"namespace", g_namespace},
                                                            {"raise_exception", g_raise_exception},
                                                            {"range", g_range},
                                                            {"strftime_now", g_strftime_now}};

}  // namespace

std::optional<Value> find_global(Interpreter& in, std::string_view name) {
  for (const auto& [key, native] : kGlobals) {
    if (key != name) continue;
    auto* f = in.heap().make<FunctionObject>();
    f->name = key;
    f->native = native;
    return Value::object(Kind::kFunction, f);
  }
  return std::nullopt;
}

Value from_json(Heap& heap, const nlohmann::ordered_json& json, bool marked) {
  using Type = nlohmann::ordered_json::value_t;
  Heap::Nest nest(heap);
  heap.step();
  switch (json.type()) {
    case Type::boolean:
      return Value::boolean(json.get<bool>());
    case Type::number_integer:
      return Value::integer(json.get<int64_t>());
    case Type::number_unsigned: {
      auto u = json.get<uint64_t>();
      if (u > static_cast<uint64_t>(INT64_MAX))
        fail(str_cat("integer ", u, " needs more than 64 bits"));
      return Value::integer(static_cast<int64_t>(u));
    }
    case Type::number_float:
      return Value::real(json.get<double>());
    case Type::string: {
      const auto& s = json.get_ref<const std::string&>();
      if (!valid_utf8(s)) fail("a string is not valid UTF-8");
      return heap.string(Text(s, marked));
    }
    case Type::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(heap, item, marked));
      return heap.list(std::move(items));
    }
    case Type::object: {
      auto* dict = heap.make<DictObject>(json.size() * 2 * sizeof(Value));
      for (const auto& [key, value] : json.items()) {
        if (!valid_utf8(key)) fail("a string is not valid UTF-8");
        dict->set(heap.string(Text(key, marked)), from_json(heap, value, marked));
      }
      return Value::object(Kind::kDict, dict);
    }
    default:
      return Value::none();
  }
}

}  // namespace mx8::jinja
