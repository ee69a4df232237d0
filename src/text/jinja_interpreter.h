// Evaluates a parsed template.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_library.h"
#include "text/jinja_value.h"

namespace mx8::jinja {

// Variables of one block. Names point into the tree or the caller's variables.
struct Scope : Object {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
};

struct MacroObject : Object {
  const Stmt* definition = nullptr;
  Scope* scope = nullptr;  // where it was defined
};

// The iteration of a for loop; the value of `loop` inside it. Items are taken one at a time,
// because the loop's filter may depend on what the body did; `loop.last` looks one item ahead and
// `loop.length` at all of them.
struct LoopObject : Object {
  const Stmt* statement = nullptr;
  Scope* outer = nullptr;
  Value source;
  std::vector<Value> items;  // a snapshot of the source, unless it is a list (which may grow)
  size_t taken = 0;
  std::vector<Value> ahead;  // items that passed the filter and wait for their turn
  size_t ahead_used = 0;
  int64_t index0 = -1;
  Value previous, current;
  std::vector<Value> last_changed;
  bool has_last_changed = false;
};

class Interpreter {
 public:
  Interpreter(Heap& heap, std::tm now) : now_(now), heap_(heap) {}

  // Renders into one text. Throws Failure. `variables` are the template's global variables.
  Text render(const Body& body, std::vector<std::pair<std::string_view, Value>> variables);
  int line() const { return line_; }

  Heap& heap() { return heap_; }
  const std::tm& now() const { return now_; }

  Value attribute(const Value& object, std::string_view name);  // object.name
  Value item(const Value& object, const Value& key);            // object[key]
  Value call(const Value& callee, Call& call);
  // What an undefined value says when used.
  [[noreturn]] void undefined_error(const Value& v) const;
  void require_defined(const Value& v) const {
    if (v.is_undefined()) undefined_error(v);
  }

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  // Statements (jinja_interpreter.cc)
  Flow run(const Body& body);
  Flow run(const Stmt& s);
  void output(const Value& v);
  Flow run_if(const Stmt& s);
  Flow run_for(const Stmt& s);
  Value capture(const Body& body);
  void run_set_block(const Stmt& s);
  void run_call_block(const Stmt& s);
  void assign(const Target& target, const Value& v);
  Value define_macro(const Stmt& s);
  Value call_macro(const MacroObject& macro, Call& call);
  void bind_parameters(const MacroObject& macro, Call& call);
  bool take(LoopObject& loop, Value& item);     // from the source, through the filter
  bool advance(LoopObject& loop, Value& item);  // from what waits, else take()
  bool peek(LoopObject& loop);
  int64_t loop_length(LoopObject& loop);
  Value loop_attribute(const Value& loop, std::string_view name);

  Scope* push_scope(Scope* parent);
  Value lookup(std::string_view name);
  void declare(std::string_view name, const Value& v);

  // Expressions (jinja_expression.cc)
  Value eval(const Expr& e);
  Value eval_node(const Expr& e);
  Value eval_sequence(const Expr& e);
  Value eval_dict(const Expr& e);
  Value eval_binary(const Expr& e);
  Value eval_concat(const Expr& e);
  Value eval_compare(const Expr& e);
  Value eval_item(const Expr& e);
  Value eval_call(const Expr& e);
  Value eval_filter(const Expr& e);
  Value eval_test(const Expr& e);
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);
  Call eval_args(const CallArgs& args);
  Value add(const Value& a, const Value& b);
  Value multiply(const Value& a, const Value& b);
  Value repeat(const Value& sequence, int64_t times);

  const std::tm now_;
  Heap& heap_;
  Scope* scope_ = nullptr;
  Text* out_ = nullptr;
  Value block_text_;  // the subject of a block's filter
  int line_ = 0;
};

// Numeric operators; both operands are numbers (jinja_arithmetic.cc).
Value arithmetic(Op op, const Value& a, const Value& b);

}  // namespace mx8::jinja
