// Statements, scopes, loops and macros.
#include "text/jinja_interpreter.h"

#include <algorithm>

#include "base/strings.h"

namespace mx8::jinja {

Text Interpreter::render(const Body& body,
                         std::vector<std::pair<std::string_view, Value>> variables) {
  Text out;
  out_ = &out;
  Scope* globals = push_scope(nullptr);
  globals->variables = std::move(variables);
  scope_ = push_scope(globals);
  run(body);
  out_ = nullptr;
  return out;
}

void Interpreter::undefined_error(const Value& v) const { fail(v.as<UndefinedObject>()->reason); }

// ---- scopes

Scope* Interpreter::push_scope(Scope* parent) {
  auto* s = heap_.make<Scope>();
  s->parent = parent;
  return s;
}

Value Interpreter::lookup(std::string_view name) {
  for (const Scope* s = scope_; s != nullptr; s = s->parent) {
    for (const auto& [key, value] : s->variables) {
      if (key == name) return value;
    }
  }
  if (std::optional<Value> global = find_global(*this, name)) return *global;
  return heap_.undefined(str_cat("'", name, "' is undefined"));
}

void Interpreter::declare(std::string_view name, const Value& v) {
  for (auto& [key, value] : scope_->variables) {
    if (key == name) {
      value = v;
      return;
    }
  }
  heap_.charge(sizeof(Value) + sizeof name);
  scope_->variables.emplace_back(name, v);
}

void Interpreter::assign(const Target& target, const Value& v) {
  if (!target.parts.empty()) {
    std::vector<Value> values = iterate(heap_, v);
    if (values.size() != target.parts.size()) {
      fail(
          str_cat("cannot unpack ", values.size(), " values into ", target.parts.size(), " names"));
    }
    for (size_t i = 0; i < values.size(); ++i) assign(target.parts[i], values[i]);
    return;
  }
  if (target.attribute.empty()) return declare(target.name, v);
  Value space = lookup(target.name);
  if (!space.is(Kind::kNamespace)) {
    fail(str_cat("cannot set an attribute of '", target.name, "', which is no namespace"));
  }
  heap_.charge(2 * sizeof(Value));
  space.dict().set(heap_.string(target.attribute), v);
}

// ---- statements

Interpreter::Flow Interpreter::run(const Body& body) {
  Heap::Nest nest(heap_);
  for (const Stmt& s : body) {
    Flow flow = run(s);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run(const Stmt& s) {
  heap_.step();
  line_ = s.line;
  switch (s.kind) {
    case StmtKind::kText:
      heap_.check_text(out_->size() + s.text.size());
      heap_.work(s.text.size());
      out_->append(s.text, false);
      break;
    case StmtKind::kOutput:
      output(eval(*s.expr));
      break;
    case StmtKind::kIf:
      return run_if(s);
    case StmtKind::kFor:
      return run_for(s);
    case StmtKind::kSet:
      assign(s.target, eval(*s.expr));
      break;
    case StmtKind::kSetBlock:
      run_set_block(s);
      break;
    case StmtKind::kMacro:
      declare(s.callable.name, define_macro(s));
      break;
    case StmtKind::kCallBlock:
      run_call_block(s);
      break;
    case StmtKind::kFilterBlock: {
      Value saved = block_text_;
      block_text_ = capture(s.body);
      output(eval(*s.expr));
      block_text_ = saved;
      break;
    }
    case StmtKind::kGeneration:
      output(capture(s.body));
      break;
    case StmtKind::kWith: {
      std::vector<Value> values;
      for (const auto& binding : s.bindings) values.push_back(eval(*binding.second));
      Scope* outer = scope_;
      scope_ = push_scope(outer);
      for (size_t i = 0; i < values.size(); ++i) assign(s.bindings[i].first, values[i]);
      Flow flow = run(s.body);
      scope_ = outer;
      return flow;
    }
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

void Interpreter::output(const Value& v) {
  if (v.is_string()) {
    heap_.check_text(out_->size() + v.text().size());
    heap_.work(v.text().size());
    out_->append(v.text());
    return;
  }
  Text text = to_text(heap_, v);
  heap_.check_text(out_->size() + text.size());
  out_->append(text);
}

Interpreter::Flow Interpreter::run_if(const Stmt& s) {
  for (const auto& [test, body] : s.branches) {
    if (truthy(eval(*test))) return run(body);
  }
  return run(s.otherwise);
}

// What the body prints, in a scope of its own.
Value Interpreter::capture(const Body& body) {
  Text text;
  Text* saved_out = out_;
  Scope* saved_scope = scope_;
  out_ = &text;
  scope_ = push_scope(saved_scope);
  run(body);
  out_ = saved_out;
  scope_ = saved_scope;
  return heap_.string(std::move(text));
}

void Interpreter::run_set_block(const Stmt& s) {
  Value text = capture(s.body);
  if (s.expr) {
    Value saved = block_text_;
    block_text_ = text;
    text = eval(*s.expr);
    block_text_ = saved;
  }
  assign(s.target, text);
}

// ---- loops

bool Interpreter::take(LoopObject& loop, Value& item) {
  const bool list = loop.source.is(Kind::kList);
  for (;;) {
    heap_.step();
    const std::vector<Value>& items = list ? loop.source.items() : loop.items;
    if (loop.taken >= items.size()) return false;
    item = items[loop.taken++];
    if (!loop.statement->filter) return true;
    Scope* saved = scope_;
    scope_ = push_scope(loop.outer);
    assign(loop.statement->target, item);
    bool pass = truthy(eval(*loop.statement->filter));
    scope_ = saved;
    if (pass) return true;
  }
}

bool Interpreter::peek(LoopObject& loop) {
  if (loop.ahead_used < loop.ahead.size()) return true;
  Value item;
  if (!take(loop, item)) return false;
  loop.ahead.push_back(item);
  return true;
}

bool Interpreter::advance(LoopObject& loop, Value& item) {
  if (loop.ahead_used < loop.ahead.size()) {
    item = loop.ahead[loop.ahead_used++];
  } else if (!take(loop, item)) {
    return false;
  }
  ++loop.index0;
  loop.previous = loop.current;
  loop.current = item;
  return true;
}

int64_t Interpreter::loop_length(LoopObject& loop) {
  if (!loop.statement->filter && !loop.source.is(Kind::kGenerator)) {
    return length_of(heap_, loop.source);
  }
  Value item;
  while (take(loop, item)) {
    heap_.charge(sizeof item);
    loop.ahead.push_back(item);
  }
  return loop.index0 + 1 + static_cast<int64_t>(loop.ahead.size() - loop.ahead_used);
}

Interpreter::Flow Interpreter::run_for(const Stmt& s) {
  auto* loop = heap_.make<LoopObject>();
  loop->statement = &s;
  loop->outer = scope_;
  loop->source = eval(*s.expr);
  if (!loop->source.is(Kind::kList)) {
    loop->items = iterate(heap_, loop->source);
    heap_.charge(loop->items.size() * sizeof(Value));
  }
  bool completed_one = false;  // jinja2 runs the else part also when every round ended early
  Value item;
  Scope* outer = scope_;
  Flow flow = Flow::kNormal;
  while (flow != Flow::kBreak && advance(*loop, item)) {
    scope_ = push_scope(outer);
    assign(s.target, item);
    if (s.uses_loop) declare("loop", Value::object(Kind::kLoop, loop));
    flow = run(s.body);
    scope_ = outer;
    completed_one = completed_one || flow == Flow::kNormal;
  }
  if (!completed_one && !s.otherwise.empty()) {
    scope_ = push_scope(outer);
    flow = run(s.otherwise);
    scope_ = outer;
    return flow;
  }
  return Flow::kNormal;
}

namespace {

Value loop_cycle(Interpreter& in, const Value& self, Call& call) {
  if (call.positional.empty()) fail("loop.cycle needs at least one value");
  auto index = static_cast<size_t>(self.as<LoopObject>()->index0);
  return call.positional[index % call.positional.size()];
}

Value loop_changed(Interpreter& in, const Value& self, Call& call) {
  auto* loop = self.as<LoopObject>();
  bool same = loop->has_last_changed && loop->last_changed.size() == call.positional.size();
  for (size_t i = 0; same && i < call.positional.size(); ++i) {
    same = equal(in.heap(), loop->last_changed[i], call.positional[i]);
  }
  loop->has_last_changed = true;
  loop->last_changed = call.positional;
  return Value::boolean(!same);
}

}  // namespace

Value Interpreter::loop_attribute(const Value& value, std::string_view name) {
  LoopObject& loop = *value.as<LoopObject>();
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(!peek(loop));
  if (name == "length") return Value::integer(loop_length(loop));
  if (name == "revindex") return Value::integer(loop_length(loop) - loop.index0);
  if (name == "revindex0") return Value::integer(loop_length(loop) - loop.index0 - 1);
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  if (name == "previtem") {
    return loop.index0 == 0 ? heap_.undefined("there is no previous item") : loop.previous;
  }
  if (name == "nextitem") {
    return peek(loop) ? loop.ahead[loop.ahead_used] : heap_.undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") {
    auto* f = heap_.make<FunctionObject>();
    f->name = name;
    f->self = value;
    f->native = name == "cycle" ? loop_cycle : loop_changed;
    return Value::object(Kind::kFunction, f);
  }
  return heap_.undefined(str_cat("'LoopContext object' has no attribute '", name, "'"));
}

// ---- macros

Value Interpreter::define_macro(const Stmt& s) {
  auto* macro = heap_.make<MacroObject>();
  macro->definition = &s;
  macro->scope = scope_;
  return Value::object(Kind::kMacro, macro);
}

void Interpreter::run_call_block(const Stmt& s) {
  const Expr& call_node = *s.expr;
  Value callee = eval(*call_node.kids[0]);
  Call arguments = eval_args(call_node.args);
  arguments.keywords.emplace_back("caller", define_macro(s));
  line_ = s.line;
  output(call(callee, arguments));
}

Value Interpreter::call_macro(const MacroObject& macro, Call& call) {
  Text text;
  Text* saved_out = out_;
  Scope* saved_scope = scope_;
  int saved_line = line_;
  out_ = &text;
  scope_ = push_scope(macro.scope);
  bind_parameters(macro, call);
  run(macro.definition->body);
  out_ = saved_out;
  scope_ = saved_scope;
  line_ = saved_line;
  return heap_.string(std::move(text));
}

void Interpreter::bind_parameters(const MacroObject& macro, Call& call) {
  const Stmt& s = *macro.definition;
  const auto& parameters = s.callable.parameters;
  auto take_keyword = [&](std::string_view name) -> std::optional<Value> {
    for (auto it = call.keywords.begin(); it != call.keywords.end(); ++it) {
      if (it->first != name) continue;
      Value v = it->second;
      call.keywords.erase(it);
      return v;
    }
    return std::nullopt;
  };
  bool own_caller = false;
  std::vector<const Parameter*> missing;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    own_caller = own_caller || p.name == "caller";
    if (i < call.positional.size()) {
      declare(p.name, call.positional[i]);
    } else if (std::optional<Value> v = take_keyword(p.name)) {
      declare(p.name, *v);
    } else {
      missing.push_back(&p);
    }
  }
  if (s.uses_caller && !own_caller) {
    std::optional<Value> caller = take_keyword("caller");
    declare("caller", caller ? *caller : heap_.undefined("No caller defined"));
  }
  if (s.uses_kwargs) {
    auto* rest = heap_.make<DictObject>(call.keywords.size() * 2 * sizeof(Value));
    for (const auto& [name, value] : call.keywords) rest->set(heap_.string(name), value);
    declare("kwargs", Value::object(Kind::kDict, rest));
  } else if (!call.keywords.empty()) {
    fail(str_cat("macro '", s.callable.name, "' takes no keyword argument '",
                 call.keywords[0].first, "'"));
  }
  size_t taken = std::min(parameters.size(), call.positional.size());
  if (s.uses_varargs) {
    auto begin = call.positional.begin() + static_cast<ptrdiff_t>(taken);
    declare("varargs", heap_.tuple(std::vector<Value>(begin, call.positional.end())));
  } else if (call.positional.size() > taken) {
    fail(str_cat("macro '", s.callable.name, "' takes not more than ", parameters.size(),
                 " argument(s)"));
  }
  for (const Parameter* p : missing) {
    declare(p->name, p->fallback
                         ? eval(*p->fallback)
                         : heap_.undefined(str_cat("parameter '", p->name, "' was not provided")));
  }
}

Value Interpreter::call(const Value& callee, Call& arguments) {
  switch (callee.kind()) {
    case Kind::kMacro:
      return call_macro(*callee.as<MacroObject>(), arguments);
    case Kind::kFunction: {
      auto* f = callee.as<FunctionObject>();
      return f->native(*this, f->self, arguments);
    }
    case Kind::kUndefined:
      undefined_error(callee);
    case Kind::kLoop:
      fail("'recursive' loops are not supported");
    default:
      fail(str_cat("a value of type '", type_name(callee), "' cannot be called"));
  }
}

}  // namespace mx8::jinja
