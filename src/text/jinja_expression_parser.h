// The tokens of a template and its expressions; jinja_parser.cc builds the statements on them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"
#include "text/jinja_value.h"

namespace mx8::jinja {

std::string describe(const Token& t);  // as messages name it

class ExpressionParser {
 protected:
  ExpressionParser(std::string_view source, Heap& constants)
      : tokens_(tokenize(source)), constants_(constants) {}

  // Nesting that the parser can follow on an ordinary stack.
  static constexpr int kMaxNesting = 120;

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool at(TokenKind kind) const { return now().kind == kind; }
  bool at_name(std::string_view name) const { return at(TokenKind::kName) && now().text == name; }
  bool at_op(std::string_view op) const { return at(TokenKind::kOperator) && now().text == op; }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool skip_op(std::string_view op) {
    if (!at_op(op)) return false;
    next();
    return true;
  }
  bool skip_name(std::string_view name) {
    if (!at_name(name)) return false;
    next();
    return true;
  }
  void expect_op(std::string_view op);
  void expect(TokenKind kind);
  std::string expect_name();
  [[noreturn]] void stop(const std::string& message) const { stop(message, now().line); }
  [[noreturn]] void stop(const std::string& message, int line) const {
    throw Failure{message, line};
  }

  // In the scope of one, what is parsed lies one level deeper.
  class Nest {
   public:
    explicit Nest(ExpressionParser& p) : p_(p) {
      if (++p_.nesting_ > kMaxNesting) p_.stop("nests too deeply");
    }
    ~Nest() { --p_.nesting_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;

   private:
    ExpressionParser& p_;
  };

  // An expression, or several with commas between. `conditions`: allow "a if b else c".
  ExprPtr tuple(bool conditions, std::string_view extra_end = {}, bool parentheses = false);
  ExprPtr expression();
  // Filters, tests and calls after an operand.
  ExprPtr filters(ExprPtr e);
  ExprPtr one_filter(ExprPtr subject);

  int soft_ = 0;                  // how many conditions are around; statements count theirs
  std::vector<Failure> unknown_;  // filters and tests outside conditions that no one knows
  // Names met so far: a statement compares them before and after its body.
  int loop_names_ = 0, caller_names_ = 0, varargs_names_ = 0, kwargs_names_ = 0;

 private:
  ExprPtr node(ExprKind kind, int line);
  // Adds an operand and keeps the tree shallow enough to evaluate.
  void kid(Expr& e, ExprPtr k);
  void deepen(Expr& e, const Expr& k);
  ExprPtr constant(Value v, int line);
  bool tuple_ends(std::string_view extra) const;
  // A filter or test that jinja2 does not know either is an error only where it is reached, inside
  // a condition: templates look for those of other engines that way.
  void refuse_unless_conditional(Failure failure);
  ExprPtr or_expression();
  ExprPtr and_expression();
  ExprPtr logical(std::string_view word, ExprKind kind, ExprPtr (ExpressionParser::*operand)());
  ExprPtr not_expression();
  bool comparison_operator(Op& op);
  ExprPtr comparison();
  using OpNames = std::initializer_list<std::pair<std::string_view, Op>>;
  ExprPtr binary(OpNames ops, ExprPtr (ExpressionParser::*operand)());
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr filtered_unary();
  ExprPtr unary(bool with_filter);
  ExprPtr primary();
  ExprPtr name_or_constant();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr e);
  ExprPtr attribute(ExprPtr object);
  ExprPtr subscript(ExprPtr object);
  ExprPtr subscript_key();
  CallArgs call_args(Expr& owner);
  ExprPtr call(ExprPtr callee);
  std::string dotted_name();
  bool test_argument_follows() const;
  ExprPtr test(ExprPtr subject);

  std::vector<Token> tokens_;
  Heap& constants_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace mx8::jinja
