// What templates can call: filters, tests, methods of str, list and dict, global functions.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace mx8::jinja {

// The evaluated arguments of one call.
struct Call {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

// Binds a call to parameter names: args[i] is what was given for the i-th name, or nothing. Fails
// on too many arguments and unknown keywords; `required` names must be given.
class Args {
 public:
  Args(std::string_view what, const Call& call, std::initializer_list<std::string_view> names,
       size_t required = 0);
  bool has(size_t i) const { return values_[i].has_value(); }
  bool given(size_t i) const { return has(i) && !values_[i]->is(Kind::kNone); }  // and not None
  const Value& operator[](size_t i) const { return *values_[i]; }
  int64_t integer(size_t i, int64_t fallback) const;
  bool flag(size_t i, bool fallback) const;
  const Text& text(size_t i) const;

 private:
  std::string what_;
  std::vector<std::optional<Value>> values_;
};

struct FunctionObject : Object {
  std::string name;
  Value self;
  Native native = nullptr;
};

// Null when there is none.
Native find_filter(std::string_view name);
Native find_test(std::string_view name);
// A filter of jinja2 that this engine leaves out.
bool is_unsupported_filter(std::string_view name);

// The attribute that Python finds on the object itself (a method), or nothing: then templates look
// into the dict. Methods that jinja2's sandbox forbids give an undefined value.
std::optional<Value> find_method(Interpreter& in, const Value& object, std::string_view name);
// A global function by name, or nothing.
std::optional<Value> find_global(Interpreter& in, std::string_view name);

// "..." % values, and str.format.
Text percent_format(Heap& heap, const Text& format, const Value& values);
Text brace_format(Interpreter& in, const Text& format, const Call& call);

// Python's str(x) first, for filters that take any value.
Text soft_text(Heap& heap, const Value& v);
// The string result of a filter or method on `self`, markup where that is markup.
Value like(Heap& heap, const Value& self, Text text);

// int(text, base) and float(text) as Python reads them, or nothing.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

}  // namespace mx8::jinja
