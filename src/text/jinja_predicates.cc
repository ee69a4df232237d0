// The tests of templates: what may stand after `is`.
#include <algorithm>

#include "base/strings.h"
#include "text/jinja_interpreter.h"

namespace mx8::jinja {
namespace {

template <bool (*F)(const Value&)>
Value kind_test(Interpreter&, const Value& v, Call& call) {
  Args("the test", call, {});
  return Value::boolean(F(v));
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is(Kind::kNone); }
bool is_boolean(const Value& v) { return v.is(Kind::kBool); }
bool is_true(const Value& v) { return v.is(Kind::kBool) && v.as_int() != 0; }
bool is_false(const Value& v) { return v.is(Kind::kBool) && v.as_int() == 0; }
bool is_integer(const Value& v) { return v.is(Kind::kInt); }
bool is_float(const Value& v) { return v.is(Kind::kFloat); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.is(Kind::kDict); }
bool is_iterable_value(const Value& v) { return is_iterable(v) || v.is(Kind::kLoop); }
bool is_sequence(const Value& v) {
  return is_iterable(v) && !v.is(Kind::kView) && !v.is(Kind::kGenerator);
}
bool is_callable(const Value& v) {
  return v.is(Kind::kFunction) || v.is(Kind::kMacro) || v.is(Kind::kLoop) || v.is_undefined();
}
bool is_escaped(const Value& v) { return v.is_string() && v.as<StringObject>()->markup; }

Value integer_of(Interpreter& in, std::string_view what, const Value& v) {
  in.require_defined(v);
  if (!v.is_number()) fail(str_cat(what, ": expected a number, got ", type_name(v)));
  return v;
}

bool remainder_is(Interpreter& in, std::string_view what, const Value& v, const Value& by,
                  int64_t wanted) {
  Value r = arithmetic(Op::kMod, integer_of(in, what, v), integer_of(in, what, by));
  return r.as_double() == static_cast<double>(wanted);
}

Value t_odd(Interpreter& in, const Value& v, Call& call) {
  Args("odd", call, {});
  return Value::boolean(remainder_is(in, "odd", v, Value::integer(2), 1));
}
Value t_even(Interpreter& in, const Value& v, Call& call) {
  Args("even", call, {});
  return Value::boolean(remainder_is(in, "even", v, Value::integer(2), 0));
}
Value t_divisibleby(Interpreter& in, const Value& v, Call& call) {
  Args args("divisibleby", call, {"num"}, 1);
  return Value::boolean(remainder_is(in, "divisibleby", v, args[0], 0));
}

template <CharTest kTest>
Value t_case(Interpreter& in, const Value& v, Call& call) {
  Args("the test", call, {});
  return Value::boolean(all_of(soft_text(in.heap(), v).bytes(), kTest));
}

Value t_filter(Interpreter& in, const Value& v, Call& call) {
  Args("filter", call, {});
  return Value::boolean(v.is_string() && find_filter(v.text().bytes()) != nullptr);
}
Value t_test(Interpreter& in, const Value& v, Call& call) {
  Args("test", call, {});
  return Value::boolean(v.is_string() && find_test(v.text().bytes()) != nullptr);
}

Value t_sameas(Interpreter& in, const Value& v, Call& call) {
  Args args("sameas", call, {"other"}, 1);
  const Value& other = args[0];
  if (v.kind() != other.kind()) return Value::boolean(false);
  bool scalar = v.is_number() || v.is(Kind::kNone) || v.is_string();
  return Value::boolean(scalar ? equal(in.heap(), v, other) : v.as_object() == other.as_object());
}

Value t_in(Interpreter& in, const Value& v, Call& call) {
  Args args("in", call, {"seq"}, 1);
  return Value::boolean(contains(in.heap(), args[0], v));
}

template <Op kOp>
Value t_compare(Interpreter& in, const Value& v, Call& call) {
  Args args("the comparison", call, {"other"}, 1);
  Heap& heap = in.heap();
  switch (kOp) {
    case Op::kEq:
      return Value::boolean(equal(heap, v, args[0]));
    case Op::kNe:
      return Value::boolean(!equal(heap, v, args[0]));
    case Op::kLt:
      return Value::boolean(less(heap, v, args[0]));
    case Op::kGt:
      return Value::boolean(less(heap, args[0], v));
    case Op::kLe:
      return Value::boolean(less(heap, v, args[0]) || equal(heap, v, args[0]));
    default:
      return Value::boolean(less(heap, args[0], v) || equal(heap, v, args[0]));
  }
}

constexpr std::pair<std::string_view, Native> kTests[] = {
    {"!=", t_compare<Op::kNe>},
    {"<", t_compare<Op::kLt>},
    {"<=", t_compare<Op::kLe>},
    {"==", t_compare<Op::kEq>},
    {">", t_compare<Op::kGt>},
    {">=", t_compare<Op::kGe>},
    {"boolean", kind_test<is_boolean>},
    {"callable", kind_test<is_callable>},
    {"defined", kind_test<is_defined>},
    {"divisibleby", t_divisibleby},
    {"eq", t_compare<Op::kEq>},
    {"equalto", t_compare<Op::kEq>},
    {"escaped", kind_test<is_escaped>},
    {"even", t_even},
    {"false", kind_test<is_false>},
    {"filter", t_filter},
    {"float", kind_test<is_float>},
    {"ge", t_compare<Op::kGe>},
    {"greaterthan", t_compare<Op::kGt>},
    {"gt", t_compare<Op::kGt>},
    {"in", t_in},
    {"integer", kind_test<is_integer>},
    {"iterable", kind_test<is_iterable_value>},
    {"le", t_compare<Op::kLe>},
    {"lessthan", t_compare<Op::kLt>},
    {"lower", t_case<CharTest::kLower>},
    {"lt", t_compare<Op::kLt>},
    {"mapping", kind_test<is_mapping>},
    {"ne", t_compare<Op::kNe>},
    {"none", kind_test<is_none>},
    {"number", kind_test<is_number>},
    {"odd", t_odd},
    {"sameas", t_sameas},
    {"sequence", kind_test<is_sequence>},
    {"string", kind_test<is_string>},
    {"test", t_test},
    {"true", kind_test<is_true>},
    {"undefined", kind_test<is_undefined>},
    {"upper", t_case<CharTest::kUpper>},
};

}  // namespace

Native find_test(std::string_view name) {
  for (const auto& [key, native] : kTests) {
    if (key == name) return native;
  }
  return nullptr;
}

}  // namespace mx8::jinja
