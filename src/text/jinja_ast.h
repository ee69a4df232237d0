// The syntax tree of a template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace mx8::jinja {

class Interpreter;
struct Call;
// A filter, a test or a function. `self` is what stands left of it.
using Native = Value (*)(Interpreter&, const Value& self, Call&);

enum class ExprKind : uint8_t {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,
  kNegate,
  kPlus,
  kNot,
  kAnd,
  kOr,
  kCondition,
  kBinary,
  kConcat,
  kCompare,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest
};
enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr star, double_star;
};

// What `kids` hold: operands in order; kDict key, value, ...; kCondition test, then, else (null
// when absent); kSlice start, stop, step (null when absent); kItem object, index; kCall callee;
// kFilter and kTest the subject (null for the filter of a block: the block's text).
struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 0;
  int depth = 1;
  std::string name;         // kName, kAttribute, kFilter, kTest
  Value value;              // kConstant
  Op op = Op::kAdd;         // kBinary
  Native native = nullptr;  // kFilter, kTest; null: unknown, an error when reached
  std::vector<ExprPtr> kids;
  std::vector<Op> compare;  // kCompare: one fewer than kids
  CallArgs args;
};

struct Target {  // of an assignment: a name, `namespace.attribute`, or several targets
  std::string name, attribute;
  std::vector<Target> parts;
};

enum class StmtKind : uint8_t {
  kText,
  kOutput,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kGeneration,
  kWith,
  kBreak,
  kContinue
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Parameter {
  std::string name;
  ExprPtr fallback;  // null: undefined when not given
};

struct Callable {  // the part that a macro and a call block share
  std::string name;
  std::vector<Parameter> parameters;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string text;      // kText
  Target target;         // kFor, kSet, kSetBlock
  ExprPtr expr;          // kOutput, kFor, kSet, kCallBlock; filters of blocks
  ExprPtr filter;        // kFor: the `if` part
  Body body, otherwise;  // kIf: `otherwise` alone
  std::vector<std::pair<ExprPtr, Body>> branches;  // kIf: the if and each elif
  bool uses_loop = false;                          // kFor: `loop` is named inside
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // kMacro, kCallBlock
  Callable callable;                                                    // kMacro, kCallBlock
  std::vector<std::pair<Target, ExprPtr>> bindings;                     // kWith
};

}  // namespace mx8::jinja
