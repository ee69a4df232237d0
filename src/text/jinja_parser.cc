#include "text/jinja_parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/strings.h"
#include "text/jinja_lexer.h"
#include "text/jinja_library.h"

namespace mx8::jinja {
namespace {

// Nesting that the parser and later the interpreter can follow on an ordinary stack.
constexpr int kMaxDepth = 300;
constexpr int kMaxNesting = 120;

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

class Parser {
 public:
  Parser(std::string_view source, Heap& constants)
      : tokens_(tokenize(source)), constants_(constants) {}

  Body run() {
    Body body = statements({});
    if (!at(TokenKind::kEnd)) stop(str_cat("unexpected ", describe(now())));
    if (!unknown_.empty()) throw unknown_[0];
    return body;
  }

 private:
  // ---- tokens
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
  void expect_op(std::string_view op) {
    if (!skip_op(op)) stop(str_cat("expected '", op, "', got ", describe(now())));
  }
  void expect(TokenKind kind) {
    if (!at(kind)) {
      Token wanted;
      wanted.kind = kind;
      stop(str_cat("expected ", describe(wanted), ", got ", describe(now())));
    }
    next();
  }
  std::string expect_name() {
    if (!at(TokenKind::kName)) stop(str_cat("expected a name, got ", describe(now())));
    std::string name = now().text;
    next();
    return name;
  }
  [[noreturn]] void stop(const std::string& message) const { stop(message, now().line); }
  [[noreturn]] void stop(const std::string& message, int line) const {
    throw Failure{message, line};
  }

  class Nest {
   public:
    explicit Nest(Parser& p) : p_(p) {
      if (++p_.nesting_ > kMaxNesting) p_.stop("nests too deeply");
    }
    ~Nest() { --p_.nesting_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;

   private:
    Parser& p_;
  };

  // ---- statements

  // Up to a tag whose name is in `ends`; the current token is then that name.
  Body statements(std::initializer_list<std::string_view> ends) {
    Nest nest(*this);
    Body body;
    for (;;) {
      switch (now().kind) {
        case TokenKind::kData: {
          Stmt& s = body.emplace_back();
          s.line = now().line;
          s.text = now().text;
          next();
          break;
        }
        case TokenKind::kExpressionBegin: {
          Stmt& s = add(body, StmtKind::kOutput);
          next();
          s.expr = tuple(true);
          expect(TokenKind::kExpressionEnd);
          break;
        }
        case TokenKind::kTagBegin:
          next();
          for (std::string_view end : ends) {
            if (at_name(end)) return body;
          }
          statement(body, ends);
          expect(TokenKind::kTagEnd);
          break;
        default:
          if (ends.size() == 0) return body;
          stop(str_cat("missing '{% ", *(ends.end() - 1), " %}'"));
      }
    }
  }

  // The body of a block, with the tags around it.
  Body block(std::initializer_list<std::string_view> ends) {
    skip_op(":");
    expect(TokenKind::kTagEnd);
    return statements(ends);
  }

  Stmt& add(Body& body, StmtKind kind) {
    Stmt& s = body.emplace_back();
    s.kind = kind;
    s.line = now().line;
    return s;
  }

  void statement(Body& body, std::initializer_list<std::string_view> ends) {
    if (!at(TokenKind::kName)) stop(str_cat("expected the name of a tag, got ", describe(now())));
    const std::string tag = now().text;
    const int line = now().line;
    auto begin = [&](StmtKind kind) -> Stmt& {
      Stmt& s = add(body, kind);
      next();
      return s;
    };
    if (tag == "for") return for_tag(begin(StmtKind::kFor));
    if (tag == "if") return if_tag(begin(StmtKind::kIf));
    if (tag == "set") return set_tag(begin(StmtKind::kSet));
    if (tag == "macro") return macro_tag(begin(StmtKind::kMacro));
    if (tag == "call") return call_tag(begin(StmtKind::kCallBlock));
    if (tag == "filter") return filter_tag(begin(StmtKind::kFilterBlock));
    if (tag == "with") return with_tag(begin(StmtKind::kWith));
    if (tag == "print") return print_tag(body);
    if (tag == "generation") {
      Stmt& s = begin(StmtKind::kGeneration);
      LoopDepth outside(*this, 0);
      s.body = block({"endgeneration"});
      return next();
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) stop(str_cat("'", tag, "' outside a loop"));
      begin(tag == "break" ? StmtKind::kBreak : StmtKind::kContinue);
      return;
    }
    for (std::string_view known :
         {"include", "import", "from", "extends", "block", "autoescape", "do", "trans", "debug"}) {
      if (tag == known) stop(str_cat("tag '", tag, "' is not supported"), line);
    }
    stop(str_cat("unexpected tag '", tag, "'",
                 ends.size() != 0 ? str_cat(" (looking for '", *(ends.end() - 1), "')") : ""),
         line);
  }

  // How many loops a break could end; macros and captures start anew.
  class LoopDepth {
   public:
    LoopDepth(Parser& p, int depth) : p_(p), saved_(p.loops_) { p_.loops_ = depth; }
    ~LoopDepth() { p_.loops_ = saved_; }
    LoopDepth(const LoopDepth&) = delete;
    LoopDepth& operator=(const LoopDepth&) = delete;

   private:
    Parser& p_;
    int saved_;
  };

  void for_tag(Stmt& s) {
    s.target = target(false);
    if (!skip_name("in")) stop(str_cat("expected 'in', got ", describe(now())));
    s.expr = tuple(false, "recursive");
    if (skip_name("if")) s.filter = expression();
    if (at_name("recursive")) stop("'recursive' loops are not supported");
    int seen = loop_names_;
    {
      LoopDepth inside(*this, loops_ + 1);
      s.body = block({"else", "endfor"});
    }
    s.uses_loop = loop_names_ != seen;
    bool has_else = at_name("else");
    next();
    if (!has_else) return;
    s.otherwise = block({"endfor"});
    next();
  }

  void if_tag(Stmt& s) {
    ++soft_;
    for (;;) {
      ExprPtr test = tuple(false);
      Body then = block({"elif", "else", "endif"});
      s.branches.emplace_back(std::move(test), std::move(then));
      if (!skip_name("elif")) break;
    }
    bool has_else = at_name("else");
    next();
    if (has_else) {
      s.otherwise = block({"endif"});
      next();
    }
    --soft_;
  }

  void set_tag(Stmt& s) {
    s.target = target(true);
    if (skip_op("=")) {
      s.expr = tuple(true);
      return;
    }
    s.kind = StmtKind::kSetBlock;
    if (at_op("|")) s.expr = filters(nullptr);
    LoopDepth outside(*this, loops_);
    s.body = block({"endset"});
    next();
  }

  void signature(Callable& c) {
    expect_op("(");
    while (!at_op(")")) {
      if (!c.parameters.empty()) expect_op(",");
      Parameter& p = c.parameters.emplace_back();
      p.name = expect_name();
      if (skip_op("=")) {
        p.fallback = expression();
      } else if (c.parameters.size() > 1 && c.parameters[c.parameters.size() - 2].fallback) {
        stop("a parameter without a default follows one with a default");
      }
    }
    expect_op(")");
  }

  void callable_body(Stmt& s, std::string_view end) {
    LoopDepth outside(*this, 0);
    int callers = caller_names_, varargs = varargs_names_, kwargs = kwargs_names_;
    s.body = block({end});
    next();
    s.uses_caller = caller_names_ != callers;
    s.uses_varargs = varargs_names_ != varargs;
    s.uses_kwargs = kwargs_names_ != kwargs;
  }

  void macro_tag(Stmt& s) {
    s.callable.name = expect_name();
    signature(s.callable);
    callable_body(s, "endmacro");
  }

  void call_tag(Stmt& s) {
    s.callable.name = "caller";
    if (at_op("(")) signature(s.callable);
    s.expr = expression();
    if (s.expr->kind != ExprKind::kCall) stop("'call' needs a macro call", s.line);
    callable_body(s, "endcall");
  }

  void filter_tag(Stmt& s) {
    s.expr = one_filter(nullptr);
    if (at_op("|")) s.expr = filters(std::move(s.expr));
    s.body = block({"endfilter"});
    next();
  }

  void with_tag(Stmt& s) {
    while (!at(TokenKind::kTagEnd)) {
      if (!s.bindings.empty()) expect_op(",");
      Target name = target(false);
      expect_op("=");
      s.bindings.emplace_back(std::move(name), expression());
    }
    s.body = block({"endwith"});
    next();
  }

  void print_tag(Body& body) {
    next();
    while (!at(TokenKind::kTagEnd)) {
      Stmt& s = add(body, StmtKind::kOutput);
      s.expr = expression();
      if (!at(TokenKind::kTagEnd)) expect_op(",");
    }
  }

  Target one_target() {
    Nest nest(*this);
    Target t;
    if (skip_op("(")) {
      t = target(false);
      expect_op(")");
      return t;
    }
    t.name = expect_name();
    for (std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (t.name == constant) stop(str_cat("can't assign to '", t.name, "'"));
    }
    return t;
  }

  Target target(bool allow_attribute) {
    if (allow_attribute && at(TokenKind::kName) && ahead().kind == TokenKind::kOperator &&
        ahead().text == ".") {
      Target t;
      t.name = expect_name();
      next();
      t.attribute = expect_name();
      return t;
    }
    Target first = one_target();
    if (!at_op(",")) return first;
    Target all;
    all.parts.push_back(std::move(first));
    while (skip_op(",")) {
      if (at_name("in") || at_op("=") || at_op(")") || at(TokenKind::kTagEnd)) break;
      all.parts.push_back(one_target());
    }
    return all;
  }

  // ---- expressions

  ExprPtr node(ExprKind kind, int line) {
    auto e = std::make_unique<Expr>();
    e->kind = kind;
    e->line = line;
    return e;
  }

  // Adds an operand and keeps the tree shallow enough to evaluate.
  void kid(Expr& e, ExprPtr k) {
    if (k) deepen(e, *k);
    e.kids.push_back(std::move(k));
  }
  void deepen(Expr& e, const Expr& k) {
    e.depth = std::max(e.depth, k.depth + 1);
    if (e.depth > kMaxDepth) stop("the expression is too long");
  }

  ExprPtr constant(Value v, int line) {
    ExprPtr e = node(ExprKind::kConstant, line);
    e->value = v;
    return e;
  }

  bool tuple_ends(std::string_view extra) const {
    return at(TokenKind::kExpressionEnd) || at(TokenKind::kTagEnd) || at_op(")") ||
           (!extra.empty() && at_name(extra));
  }

  // An expression, or several with commas between. `conditions`: allow "a if b else c".
  ExprPtr tuple(bool conditions, std::string_view extra_end = {}, bool parentheses = false) {
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

  // A filter or test that jinja2 does not know either is an error only where it is reached, inside
  // a condition: templates look for those of other engines that way.
  void refuse_unless_conditional(Failure failure) {
    if (soft_ == 0) unknown_.push_back(std::move(failure));
  }

  ExprPtr expression() {
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

  ExprPtr or_expression() { return logical("or", ExprKind::kOr, &Parser::and_expression); }
  ExprPtr and_expression() { return logical("and", ExprKind::kAnd, &Parser::not_expression); }

  ExprPtr logical(std::string_view word, ExprKind kind, ExprPtr (Parser::*operand)()) {
    int line = now().line;
    ExprPtr first = (this->*operand)();
    if (!at_name(word)) return first;
    ExprPtr e = node(kind, line);
    kid(*e, std::move(first));
    while (skip_name(word)) kid(*e, (this->*operand)());
    return e;
  }

  ExprPtr not_expression() {
    if (!at_name("not")) return comparison();
    Nest nest(*this);
    ExprPtr e = node(ExprKind::kNot, now().line);
    next();
    kid(*e, not_expression());
    return e;
  }

  bool comparison_operator(Op& op) {
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

  ExprPtr comparison() {
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

  using OpNames = std::initializer_list<std::pair<std::string_view, Op>>;
  ExprPtr binary(OpNames ops, ExprPtr (Parser::*operand)()) {
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

  ExprPtr sum() { return binary({{"+", Op::kAdd}, {"-", Op::kSub}}, &Parser::concat); }

  ExprPtr concat() {
    int line = now().line;
    ExprPtr first = product();
    if (!at_op("~")) return first;
    ExprPtr e = node(ExprKind::kConcat, line);
    kid(*e, std::move(first));
    while (skip_op("~")) kid(*e, product());
    return e;
  }

  ExprPtr product() {
    return binary({{"*", Op::kMul}, {"/", Op::kDiv}, {"//", Op::kFloorDiv}, {"%", Op::kMod}},
                  &Parser::power);
  }
  ExprPtr power() { return binary({{"**", Op::kPow}}, &Parser::filtered_unary); }
  ExprPtr filtered_unary() { return unary(true); }

  ExprPtr unary(bool with_filter) {
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

  ExprPtr primary() {
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

  ExprPtr name_or_constant() {
    const int line = now().line;
    std::string name = expect_name();
    if (name == "true" || name == "True") return constant(Value::boolean(true), line);
    if (name == "false" || name == "False") return constant(Value::boolean(false), line);
    if (name == "none" || name == "None") return constant(Value::none(), line);
    for (std::string_view global : {"lipsum", "cycler", "joiner"}) {
      if (name == global && at_op("("))
        stop(str_cat("function '", name, "' is not supported"), line);
    }
    loop_names_ += name == "loop";
    caller_names_ += name == "caller";
    varargs_names_ += name == "varargs";
    kwargs_names_ += name == "kwargs";
    ExprPtr e = node(ExprKind::kName, line);
    e->name = std::move(name);
    return e;
  }

  ExprPtr list() {
    ExprPtr e = node(ExprKind::kList, now().line);
    expect_op("[");
    while (!at_op("]")) {
      kid(*e, expression());
      if (!at_op("]")) expect_op(",");
    }
    next();
    return e;
  }

  ExprPtr dict() {
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

  ExprPtr postfix(ExprPtr e) {
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

  ExprPtr attribute(ExprPtr object) {
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

  ExprPtr subscript(ExprPtr object) {
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

  ExprPtr subscript_key() {
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

  CallArgs call_args(Expr& owner) {
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

  ExprPtr call(ExprPtr callee) {
    ExprPtr e = node(ExprKind::kCall, now().line);
    kid(*e, std::move(callee));
    e->args = call_args(*e);
    return e;
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (skip_op(".")) name.append(".").append(expect_name());
    return name;
  }

  // Filters, tests and calls after an operand.
  ExprPtr filters(ExprPtr e) {
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

  ExprPtr one_filter(ExprPtr subject) {
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

  bool test_argument_follows() const {
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

  ExprPtr test(ExprPtr subject) {
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

  std::vector<Token> tokens_;
  Heap& constants_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;
  int soft_ = 0;  // how many conditions are around
  std::vector<Failure> unknown_;
  int loop_names_ = 0, caller_names_ = 0, varargs_names_ = 0, kwargs_names_ = 0;
};

}  // namespace

Body parse(std::string_view source, Heap& constants) { return Parser(source, constants).run(); }

}  // namespace mx8::jinja
