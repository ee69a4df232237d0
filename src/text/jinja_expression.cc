// Expressions: operators, attributes, subscripts, calls.
#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "text/jinja_interpreter.h"

namespace mx8::jinja {

Value Interpreter::eval(const Expr& e) {
  Heap::Nest nest(heap_);
  heap_.step();
  line_ = e.line;
  return eval_node(e);
}

Value Interpreter::eval_node(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kConstant:
      return e.value;
    case ExprKind::kName:
      return lookup(e.name);
    case ExprKind::kTuple:
    case ExprKind::kList:
      return eval_sequence(e);
    case ExprKind::kDict:
      return eval_dict(e);
    case ExprKind::kNot:
      return Value::boolean(!truthy(eval(*e.kids[0])));
    case ExprKind::kNegate:
    case ExprKind::kPlus: {
      Value v = eval(*e.kids[0]);
      require_defined(v);
      if (!v.is_number())
        fail(str_cat("bad operand type for unary operator: '", type_name(v), "'"));
      Op op = e.kind == ExprKind::kPlus ? Op::kAdd : Op::kSub;
      if (op == Op::kSub && v.is(Kind::kFloat)) return Value::real(-v.as_double());
      return arithmetic(op, Value::integer(0), v);
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value v;
      for (const ExprPtr& kid : e.kids) {
        v = eval(*kid);
        if (truthy(v) == (e.kind == ExprKind::kOr)) break;
      }
      return v;
    }
    case ExprKind::kCondition: {
      if (truthy(eval(*e.kids[0]))) return eval(*e.kids[1]);
      if (e.kids[2]) return eval(*e.kids[2]);
      return heap_.undefined("the inline if-expression evaluated to false and no else is there");
    }
    case ExprKind::kBinary:
      return eval_binary(e);
    case ExprKind::kConcat:
      return eval_concat(e);
    case ExprKind::kCompare:
      return eval_compare(e);
    case ExprKind::kAttribute:
      return attribute(eval(*e.kids[0]), e.name);
    case ExprKind::kItem:
      return eval_item(e);
    case ExprKind::kSlice:
      fail("a slice outside a subscript");
    case ExprKind::kCall:
      return eval_call(e);
    case ExprKind::kFilter:
      return eval_filter(e);
    case ExprKind::kTest:
      return eval_test(e);
  }
  fail("unknown expression");
}

Value Interpreter::eval_sequence(const Expr& e) {
  std::vector<Value> items;
  items.reserve(e.kids.size());
  for (const ExprPtr& kid : e.kids) items.push_back(eval(*kid));
  return e.kind == ExprKind::kList ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
}

Value Interpreter::eval_dict(const Expr& e) {
  auto* dict = heap_.make<DictObject>(e.kids.size() * sizeof(Value));
  for (size_t i = 0; i < e.kids.size(); i += 2) {
    Value key = eval(*e.kids[i]);
    require_hashable(key);
    dict->set(key, eval(*e.kids[i + 1]));
  }
  return Value::object(Kind::kDict, dict);
}

// ---- operators

Value Interpreter::repeat(const Value& sequence, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (sequence.is_string()) {
    const Text& unit = sequence.text();
    if (unit.empty() || times == 0) return like(heap_, sequence, Text());
    if (times > static_cast<int64_t>(heap_.limits().text_bytes)) heap_.check_text(SIZE_MAX);
    heap_.check_text(unit.size() * static_cast<size_t>(times));
    Text out;
    for (int64_t i = 0; i < times; ++i) out.append(unit);
    return like(heap_, sequence, std::move(out));
  }
  const std::vector<Value>& unit = sequence.items();
  std::vector<Value> out;
  if (!unit.empty()) {
    auto most = static_cast<int64_t>(heap_.limits().heap_bytes / sizeof(Value));
    if (times > most) heap_.charge(heap_.limits().heap_bytes);
    heap_.step(times);
    heap_.charge(unit.size() * static_cast<size_t>(times));
    for (int64_t i = 0; i < times; ++i) out.insert(out.end(), unit.begin(), unit.end());
  }
  return sequence.is(Kind::kList) ? heap_.list(std::move(out)) : heap_.tuple(std::move(out));
}

Value Interpreter::multiply(const Value& a, const Value& b) {
  if ((a.is_string() || a.is_sequence()) && b.is_integral()) return repeat(a, b.as_int());
  return repeat(b, a.as_int());
}

Value Interpreter::add(const Value& a, const Value& b) {
  if (a.is_string()) {
    bool markup = a.as<StringObject>()->markup || b.as<StringObject>()->markup;
    auto part = [&](const Value& v) {
      return markup && !v.as<StringObject>()->markup ? html_escape(v.text()) : v.text();
    };
    heap_.check_text(a.text().size() + b.text().size());
    Text out = part(a);
    out.append(part(b));
    return heap_.string(std::move(out), markup);
  }
  heap_.charge((a.items().size() + b.items().size()) * sizeof(Value));
  std::vector<Value> out = a.items();
  out.insert(out.end(), b.items().begin(), b.items().end());
  return a.is(Kind::kList) ? heap_.list(std::move(out)) : heap_.tuple(std::move(out));
}

Value Interpreter::eval_binary(const Expr& e) {
  Value a = eval(*e.kids[0]);
  Value b = eval(*e.kids[1]);
  line_ = e.line;
  if (e.op == Op::kMod && a.is_string()) {
    return like(heap_, a, percent_format(heap_, a.text(), b));
  }
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) return arithmetic(e.op, a, b);
  bool same = a.kind() == b.kind() && (a.is_string() || a.is_sequence());
  if (e.op == Op::kAdd && same) return add(a, b);
  auto repeats = [](const Value& s, const Value& n) {
    return (s.is_string() || s.is_sequence()) && n.is_integral();
  };
  if (e.op == Op::kMul && (repeats(a, b) || repeats(b, a))) return multiply(a, b);
  static constexpr const char* kNames[] = {"+", "-", "*", "/", "//", "%", "**"};
  fail(str_cat("unsupported operand types for ", kNames[static_cast<int>(e.op)], ": '",
               type_name(a), "' and '", type_name(b), "'"));
}

Value Interpreter::eval_concat(const Expr& e) {
  Text out;
  for (const ExprPtr& kid : e.kids) {
    Value v = eval(*kid);
    if (v.is_string()) {
      heap_.check_text(out.size() + v.text().size());
      out.append(v.text());
    } else {
      Text text = to_text(heap_, v);
      heap_.check_text(out.size() + text.size());
      out.append(text);
    }
  }
  return heap_.string(std::move(out));
}

Value Interpreter::eval_compare(const Expr& e) {
  Value left = eval(*e.kids[0]);
  for (size_t i = 0; i < e.compare.size(); ++i) {
    Value right = eval(*e.kids[i + 1]);
    bool result = false;
    switch (e.compare[i]) {
      case Op::kEq:
        result = equal(heap_, left, right);
        break;
      case Op::kNe:
        result = !equal(heap_, left, right);
        break;
      case Op::kLt:
        result = less(heap_, left, right);
        break;
      case Op::kGt:
        result = less(heap_, right, left);
        break;
      // With NaN neither is less, yet <= is false.
      case Op::kLe:
        result = less(heap_, left, right) || equal(heap_, left, right);
        break;
      case Op::kGe:
        result = less(heap_, right, left) || equal(heap_, left, right);
        break;
      case Op::kIn:
        result = contains(heap_, right, left);
        break;
      default:
        result = !contains(heap_, right, left);
        break;
    }
    if (!result) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

// ---- attributes and subscripts

Value Interpreter::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) undefined_error(object);
  if (object.is(Kind::kLoop)) return loop_attribute(object, name);
  if (std::optional<Value> method = find_method(*this, object, name)) return *method;
  if (object.is(Kind::kDict) || object.is(Kind::kNamespace)) {
    if (const Value* v = object.dict().find(name)) return *v;
  }
  std::string type = object.is(Kind::kNone) ? "None" : type_name(object) + " object";
  return heap_.undefined(str_cat("'", type, "' has no attribute '", name, "'"));
}

namespace {

// The element at a Python index, or nothing when out of range.
std::optional<size_t> element(int64_t index, int64_t length) {
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<size_t>(index);
}

}  // namespace

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) undefined_error(object);
  if (object.is(Kind::kDict)) {
    if (!key.is(Kind::kList) && !key.is(Kind::kDict)) {
      if (const Value* v = object.dict().find(key)) return *v;
    }
  } else if (key.is_integral() && object.is_sequence()) {
    auto at = element(key.as_int(), static_cast<int64_t>(object.items().size()));
    if (at) return object.items()[*at];
  } else if (key.is_integral() && object.is_string()) {
    const Text& s = object.text();
    auto at = element(key.as_int(), length_of(heap_, object));
    if (at) {
      size_t begin = offset_of(s.bytes(), *at), end = begin;
      next_code_point(s.bytes(), end);
      return like(heap_, object, s.part(begin, end - begin));
    }
  } else if (key.is_integral() && object.is(Kind::kRange)) {
    auto* r = object.as<RangeObject>();
    auto at = element(key.as_int(), r->length);
    if (at) return Value::integer(r->start + static_cast<int64_t>(*at) * r->step);
  }
  if (key.is_string()) {
    const std::string& name = key.text().bytes();
    if (object.is(Kind::kDict)) {
      if (std::optional<Value> method = find_method(*this, object, name)) return *method;
      return heap_.undefined(str_cat("'dict object' has no attribute '", name, "'"));
    }
    return attribute(object, name);
  }
  return heap_.undefined(
      str_cat(type_name(object), " object has no element ", repr(heap_, key).bytes()));
}

Value Interpreter::eval_item(const Expr& e) {
  Value object = eval(*e.kids[0]);
  const Expr& key = *e.kids[1];
  if (key.kind != ExprKind::kSlice) {
    Value k = eval(key);
    line_ = e.line;
    return item(object, k);
  }
  auto part = [&](size_t i) { return key.kids[i] ? eval(*key.kids[i]) : Value::none(); };
  Value start = part(0), stop = part(1), step = part(2);
  line_ = e.line;
  return slice(object, start, stop, step);
}

Value Interpreter::slice(const Value& object, const Value& start, const Value& stop,
                         const Value& step_value) {
  if (object.is_undefined()) undefined_error(object);
  if (!object.is_string() && !object.is_sequence() && !object.is(Kind::kRange)) {
    return heap_.undefined(str_cat(type_name(object), " object has no slices"));
  }
  for (const Value* v : {&start, &stop, &step_value}) {
    if (v->is(Kind::kNone)) continue;
    // jinja2 turns the TypeError of a wrong index into an undefined value.
    if (!v->is_integral()) return heap_.undefined("slice indices must be integers or None");
  }
  int64_t step = step_value.is(Kind::kNone) ? 1 : step_value.as_int();
  if (step == 0) fail("slice step cannot be zero");
  int64_t length = length_of(heap_, object);
  auto clamp = [&](const Value& v, int64_t fallback) {
    if (v.is(Kind::kNone)) return fallback;
    int64_t i = v.as_int();
    if (i < 0) i = i < -length ? -1 - (step > 0 ? -1 : 0) : i + length;
    return std::min(i, step > 0 ? length : length - 1);
  };
  int64_t begin = clamp(start, step > 0 ? 0 : length - 1);
  int64_t end = clamp(stop, step > 0 ? length : -1);
  if (object.is_string() && step == 1) {
    const std::string& bytes = object.text().bytes();
    heap_.work(bytes.size());
    if (end <= begin) return like(heap_, object, Text());
    size_t from = offset_of(bytes, static_cast<size_t>(begin));
    size_t count =
        offset_of(std::string_view(bytes).substr(from), static_cast<size_t>(end - begin));
    return like(heap_, object, object.text().part(from, count));
  }
  step = std::clamp<int64_t>(step, -length - 1, length + 1);
  if (object.is(Kind::kRange)) {
    auto* r = object.as<RangeObject>();
    int64_t stride = 0;
    if (__builtin_mul_overflow(r->step, step, &stride) || std::abs(stride) >= int64_t{1} << 61) {
      fail("the step of a range is too large");
    }
    return heap_.range(r->start + begin * r->step, r->start + end * r->step, stride);
  }
  std::vector<Value> items = iterate(heap_, object), out;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    out.push_back(items[static_cast<size_t>(i)]);
  }
  heap_.charge(out.size() * sizeof(Value));
  if (object.is(Kind::kList)) return heap_.list(std::move(out));
  if (object.is(Kind::kTuple)) return heap_.tuple(std::move(out));
  Text text;
  for (const Value& v : out) text.append(v.text());
  return like(heap_, object, std::move(text));
}

// ---- calls

Call Interpreter::eval_args(const CallArgs& args) {
  Call call;
  call.positional.reserve(args.positional.size());
  for (const ExprPtr& a : args.positional) call.positional.push_back(eval(*a));
  for (const auto& [name, a] : args.keywords) call.keywords.emplace_back(name, eval(*a));
  if (args.star) {
    for (const Value& v : iterate(heap_, eval(*args.star))) call.positional.push_back(v);
  }
  if (args.double_star) {
    Value more = eval(*args.double_star);
    if (!more.is(Kind::kDict)) fail("the argument after ** must be a mapping");
    for (const auto& [key, value] : more.dict().entries) {
      if (!key.is_string()) fail("keywords must be strings");
      for (const auto& given : call.keywords) {
        if (given.first == key.text().bytes()) {
          fail(str_cat("argument '", given.first, "' is given twice"));
        }
      }
      call.keywords.emplace_back(key.text().bytes(), value);
    }
  }
  return call;
}

Value Interpreter::eval_call(const Expr& e) {
  Value callee = eval(*e.kids[0]);
  Call arguments = eval_args(e.args);
  line_ = e.line;
  return call(callee, arguments);
}

Value Interpreter::eval_filter(const Expr& e) {
  if (e.native == nullptr) fail(str_cat("filter '", e.name, "' is not supported"));
  Value subject = e.kids[0] ? eval(*e.kids[0]) : block_text_;
  Call arguments = eval_args(e.args);
  line_ = e.line;
  return e.native(*this, subject, arguments);
}

Value Interpreter::eval_test(const Expr& e) {
  if (e.native == nullptr) fail(str_cat("test '", e.name, "' is not supported"));
  Value subject = eval(*e.kids[0]);
  Call arguments = eval_args(e.args);
  line_ = e.line;
  return e.native(*this, subject, arguments);
}

}  // namespace mx8::jinja
