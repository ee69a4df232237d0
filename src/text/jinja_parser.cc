#include "text/jinja_parser.h"

#include <initializer_list>

#include "base/strings.h"
#include "text/jinja_expression_parser.h"

namespace mx8::jinja {
namespace {

class Parser : private ExpressionParser {
 public:
  Parser(std::string_view source, Heap& constants) : ExpressionParser(source, constants) {}

  Body run() {
    Body body = statements({});
    if (!at(TokenKind::kEnd)) stop(str_cat("unexpected ", describe(now())));
    if (!unknown_.empty()) throw unknown_[0];
    return body;
  }

 private:
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

  int loops_ = 0;
};

}  // namespace

Body parse(std::string_view source, Heap& constants) { return Parser(source, constants).run(); }

}  // namespace mx8::jinja
