#include "text/jinja_expression_parser.h"

#include "base/strings.h"
#include "text/jinja_library.h"

namespace mx8::jinja {
namespace {

// Depth of a tree that the interpreter can follow on an ordinary stack.
constexpr int kMaxDepth = 300;

}  // namespace

std::string describe(const Token& t) {
  switch (t.kind) {
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kData:
      return "text";
    case TokenKind::kExpressionBegin:
      return "'{{'";
    case TokenKind::kExpressionEnd:
      return "'}}'";
    case TokenKind::kTagBegin:
      return "'{%'";
    case TokenKind::kTagEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    default:
      return str_cat("'", t.text, "'");
  }
}

void ExpressionParser::expect_op(std::string_view op) {
  if (!skip_op(op)) stop(str_cat("expected '", op, "', got ", describe(now())));
}

void ExpressionParser::expect(TokenKind kind) {
  if (!at(kind)) {
    Token wanted;
    wanted.kind = kind;
    stop(str_cat("expected ", describe(wanted), ", got ", describe(now())));
  }
  next();
}

std::string ExpressionParser::expect_name() {
  if (!at(TokenKind::kName)) stop(str_cat("expected a name, got ", describe(now())));
  std::string name = now().text;
  next();
  return name;
}

ExprPtr ExpressionParser::node(ExprKind kind, int line) {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->line = line;
  return e;
}

void ExpressionParser::kid(Expr& e, ExprPtr k) {
  if (k) deepen(e, *k);
  e.kids.push_back(std::move(k));
}

void ExpressionParser::deepen(Expr& e, const Expr& k) {
  e.depth = std::max(e.depth, k.depth + 1);
  if (e.depth > kMaxDepth) stop("the expression is too long");
}

ExprPtr ExpressionParser::constant(Value v, int line) {
  ExprPtr e = node(ExprKind::kConstant, line);
  e->value = v;
  return e;
}

bool ExpressionParser::tuple_ends(std::string_view extra) const {
  return at(TokenKind::kExpressionEnd) || at(TokenKind::kTagEnd) || at_op(")") ||
         (!extra.empty() && at_name(extra));
}

ExprPtr ExpressionParser::tuple(bool conditions, std::string_view extra_end, bool parentheses) {
  int line = now().line;
  std::vector<ExprPtr> items;
  bool comma = false;
  while (!tuple_ends(extra_end)) {
    items.push_back(conditions ? expression() : or_expression());
    if (!at_op(",")) break;
    comma = true;
    next();
  }
  if (!comma) {
    if (!items.empty()) return std::move(items[0]);
    if (!parentheses) stop(str_cat("expected an expression, got ", describe(now())));
  }
  ExprPtr e = node(ExprKind::kTuple, line);
  for (ExprPtr& item : items) kid(*e, std::move(item));
  return e;
}

void ExpressionParser::refuse_unless_conditional(Failure failure) {
  if (soft_ == 0) unknown_.push_back(std::move(failure));
}

ExprPtr ExpressionParser::expression() {
  Nest nest(*this);
  int line = now().line;
  size_t unknown_before = unknown_.size();
  ExprPtr value = or_expression();
  while (skip_name("if")) {
    unknown_.resize(unknown_before);
    ++soft_;
    ExprPtr e = node(ExprKind::kCondition, line);
    kid(*e, or_expression());
    kid(*e, std::move(value));
    kid(*e, skip_name("else") ? expression() : nullptr);
    value = std::move(e);
    --soft_;
  }
  return value;
}

ExprPtr ExpressionParser::or_expression() {
  return logical("or", ExprKind::kOr, &ExpressionParser::and_expression);
}

ExprPtr ExpressionParser::and_expression() {
  return logical("and", ExprKind::kAnd, &ExpressionParser::not_expression);
}

ExprPtr ExpressionParser::logical(std::string_view word, ExprKind kind,
                                  ExprPtr (ExpressionParser::*operand)()) {
  int line = now().line;
  ExprPtr first = (this->*operand)();
  if (!at_name(word)) return first;
  ExprPtr e = node(kind, line);
  kid(*e, std::move(first));
  while (skip_name(word)) kid(*e, (this->*operand)());
  return e;
}

ExprPtr ExpressionParser::not_expression() {
  if (!at_name("not")) return comparison();
  Nest nest(*this);
  ExprPtr e = node(ExprKind::kNot, now().line);
  next();
  kid(*e, not_expression());
  return e;
}

bool ExpressionParser::comparison_operator(Op& op) {
  static constexpr std::pair<std::string_view, Op> kOps[] = {{"==", Op::kEq}, {"!=", Op::kNe},
                                                             {"<", Op::kLt},  {"<=", Op::kLe},
                                                             {">", Op::kGt},  {">=", Op::kGe}};
  for (auto [text, value] : kOps) {
    if (skip_op(text)) {
      op = value;
      return true;
    }
  }
  if (skip_name("in")) {
    op = Op::kIn;
    return true;
  }
  if (at_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
    next();
    next();
    op = Op::kNotIn;
    return true;
  }
  return false;
}

ExprPtr ExpressionParser::comparison() {
  int line = now().line;
  ExprPtr first = sum();
  Op op;
  if (!comparison_operator(op)) return first;
  ExprPtr e = node(ExprKind::kCompare, line);
  kid(*e, std::move(first));
  do {
    e->compare.push_back(op);
    kid(*e, sum());
  } while (comparison_operator(op));
  return e;
}

ExprPtr ExpressionParser::binary(OpNames ops, ExprPtr (ExpressionParser::*operand)()) {
  int line = now().line;
  ExprPtr left = (this->*operand)();
  for (;;) {
    auto op = std::find_if(ops.begin(), ops.end(), [&](const auto& o) { return at_op(o.first); });
    if (op == ops.end()) return left;
    next();
    ExprPtr e = node(ExprKind::kBinary, line);
    e->op = op->second;
    kid(*e, std::move(left));
    kid(*e, (this->*operand)());
    left = std::move(e);
  }
}

ExprPtr ExpressionParser::sum() {
  return binary({{"+", Op::kAdd}, {"-", Op::kSub}}, &ExpressionParser::concat);
}

ExprPtr ExpressionParser::concat() {
  int line = now().line;
  ExprPtr first = product();
  if (!at_op("~")) return first;
  ExprPtr e = node(ExprKind::kConcat, line);
  kid(*e, std::move(first));
  while (skip_op("~")) kid(*e, product());
  return e;
}

ExprPtr ExpressionParser::product() {
  return binary({{"*", Op::kMul}, {"/", Op::kDiv}, {"//", Op::kFloorDiv}, {"%", Op::kMod}},
                &ExpressionParser::power);
}

ExprPtr ExpressionParser::power() {
  return binary({{"**", Op::kPow}}, &ExpressionParser::filtered_unary);
}

ExprPtr ExpressionParser::filtered_unary() { return unary(true); }

ExprPtr ExpressionParser::unary(bool with_filter) {
  Nest nest(*this);
  ExprPtr e;
  if (at_op("-") || at_op("+")) {
    e = node(at_op("-") ? ExprKind::kNegate : ExprKind::kPlus, now().line);
    next();
    kid(*e, unary(false));
  } else {
    e = primary();
  }
  e = postfix(std::move(e));
  return with_filter ? filters(std::move(e)) : std::move(e);
}

ExprPtr ExpressionParser::primary() {
  const Token& t = now();
  const int line = t.line;
  switch (t.kind) {
    case TokenKind::kName:
      return name_or_constant();
    case TokenKind::kString: {
      std::string joined;
      for (; at(TokenKind::kString); next()) joined += now().text;
      return constant(constants_.string(joined), line);
    }
    case TokenKind::kInteger: {
      Value v = Value::integer(t.integer);
      next();
      return constant(v, line);
    }
    case TokenKind::kFloat: {
      Value v = Value::real(t.real);
      next();
      return constant(v, line);
    }
    default:
      break;
  }
  if (skip_op("(")) {
    ExprPtr e = tuple(true, {}, true);
    expect_op(")");
    return e;
  }
  if (at_op("[")) return list();
  if (at_op("{")) return dict();
  stop(str_cat("unexpected ", describe(now())));
}

ExprPtr ExpressionParser::name_or_constant() {
  const int line = now().line;
  std::string name = expect_name();
  if (name == "true" || name == "True") return constant(Value::boolean(true), line);
  if (name == "false" || name == "False") return constant(Value::boolean(false), line);
  if (name == "none" || name == "None") return constant(Value::none(), line);
  for (std::string_view global : {"lipsum", "cycler", "joiner"}) {
    if (name == global && at_op("(")) stop(str_cat("function '", name, "' is not supported"), line);
  }
  loop_names_ += name == "loop";
  caller_names_ += name == "caller";
  varargs_names_ += name == "varargs";
  kwargs_names_ += name == "kwargs";
  ExprPtr e = node(ExprKind::kName, line);
  e->name = std::move(name);
  return e;
}

ExprPtr ExpressionParser::list() {
  ExprPtr e = node(ExprKind::kList, now().line);
  expect_op("[");
  while (!at_op("]")) {
    kid(*e, expression());
    if (!at_op("]")) expect_op(",");
  }
  next();
  return e;
}

ExprPtr ExpressionParser::dict() {
  ExprPtr e = node(ExprKind::kDict, now().line);
  expect_op("{");
  while (!at_op("}")) {
    kid(*e, expression());
    expect_op(":");
    kid(*e, expression());
    if (!at_op("}")) expect_op(",");
  }
  next();
  return e;
}

ExprPtr ExpressionParser::postfix(ExprPtr e) {
  for (;;) {
    if (at_op(".")) {
      e = attribute(std::move(e));
    } else if (at_op("[")) {
      e = subscript(std::move(e));
    } else if (at_op("(")) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr ExpressionParser::attribute(ExprPtr object) {
  const int line = now().line;
  next();
  if (at(TokenKind::kInteger)) {
    ExprPtr e = node(ExprKind::kItem, line);
    kid(*e, std::move(object));
    kid(*e, constant(Value::integer(now().integer), line));
    next();
    return e;
  }
  ExprPtr e = node(ExprKind::kAttribute, line);
  e->name = expect_name();
  kid(*e, std::move(object));
  return e;
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  ExprPtr e = node(ExprKind::kItem, now().line);
  next();
  kid(*e, std::move(object));
  std::vector<ExprPtr> keys;
  while (!at_op("]")) {
    if (!keys.empty()) expect_op(",");
    keys.push_back(subscript_key());
  }
  next();
  if (keys.size() == 1) {
    kid(*e, std::move(keys[0]));
    return e;
  }
  ExprPtr t = node(ExprKind::kTuple, e->line);
  for (ExprPtr& key : keys) {
    if (key->kind == ExprKind::kSlice)
      stop("a slice inside a tuple of subscripts is not supported");
    kid(*t, std::move(key));
  }
  kid(*e, std::move(t));
  return e;
}

ExprPtr ExpressionParser::subscript_key() {
  const int line = now().line;
  ExprPtr start;
  if (!at_op(":")) {
    start = expression();
    if (!at_op(":")) return start;
  }
  ExprPtr e = node(ExprKind::kSlice, line);
  kid(*e, std::move(start));
  auto part = [&]() -> ExprPtr {
    if (!skip_op(":") || at_op(":") || at_op("]") || at_op(",")) return nullptr;
    return expression();
  };
  kid(*e, part());
  kid(*e, part());
  return e;
}

CallArgs ExpressionParser::call_args(Expr& owner) {
  CallArgs args;
  auto keep = [&](ExprPtr e) {
    deepen(owner, *e);
    return e;
  };
  expect_op("(");
  while (!at_op(")")) {
    if (skip_op("*")) {
      if (args.star || args.double_star) stop("invalid arguments");
      args.star = keep(expression());
    } else if (skip_op("**")) {
      if (args.double_star) stop("invalid arguments");
      args.double_star = keep(expression());
    } else if (at(TokenKind::kName) && ahead().kind == TokenKind::kOperator &&
               ahead().text == "=") {
      if (args.double_star) stop("invalid arguments");
      std::string name = expect_name();
      next();
      for (const auto& keyword : args.keywords) {
        if (keyword.first == name) stop(str_cat("argument '", name, "' is given twice"));
      }
      args.keywords.emplace_back(std::move(name), keep(expression()));
    } else {
      if (args.star || args.double_star || !args.keywords.empty()) stop("invalid arguments");
      args.positional.push_back(keep(expression()));
    }
    if (!at_op(")")) expect_op(",");
  }
  next();
  return args;
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  ExprPtr e = node(ExprKind::kCall, now().line);
  kid(*e, std::move(callee));
  e->args = call_args(*e);
  return e;
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_name();
  while (skip_op(".")) name.append(".").append(expect_name());
  return name;
}

ExprPtr ExpressionParser::filters(ExprPtr e) {
  for (;;) {
    if (skip_op("|")) {
      e = one_filter(std::move(e));
    } else if (e && at_name("is")) {
      e = test(std::move(e));
    } else if (e && at_op("(")) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr ExpressionParser::one_filter(ExprPtr subject) {
  ExprPtr e = node(ExprKind::kFilter, now().line);
  e->name = dotted_name();
  e->native = find_filter(e->name);
  if (e->native == nullptr) {
    Failure unknown{str_cat("filter '", e->name, "' is not supported"), e->line};
    if (is_unsupported_filter(e->name)) throw unknown;
    refuse_unless_conditional(std::move(unknown));
  }
  kid(*e, std::move(subject));
  if (at_op("(")) e->args = call_args(*e);
  return e;
}

bool ExpressionParser::test_argument_follows() const {
  switch (now().kind) {
    case TokenKind::kName:
      return !at_name("else") && !at_name("or") && !at_name("and");
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    default:
      return at_op("[") || at_op("{");
  }
}

ExprPtr ExpressionParser::test(ExprPtr subject) {
  const int line = now().line;
  next();
  bool negated = skip_name("not");
  ExprPtr e = node(ExprKind::kTest, line);
  e->name = dotted_name();
  e->native = find_test(e->name);
  if (e->native == nullptr) {
    refuse_unless_conditional({str_cat("test '", e->name, "' is not supported"), line});
  }
  kid(*e, std::move(subject));
  if (at_op("(")) {
    e->args = call_args(*e);
  } else if (test_argument_follows()) {
    if (at_name("is")) stop("tests cannot be chained with 'is'");
    ExprPtr argument = postfix(primary());
    deepen(*e, *argument);
    e->args.positional.push_back(std::move(argument));
  }
  if (!negated) return e;
  ExprPtr inverse = node(ExprKind::kNot, line);
  kid(*inverse, std::move(e));
  return inverse;
}

}  // namespace mx8::jinja
