// A Jinja engine for the chat templates of models: parse once, render often.
//
// Output equals that of Python's jinja2 as Hugging Face's `transformers` sets it up (sandboxed,
// trim_blocks, lstrip_blocks, break and continue, the `generation` tag), for the language's
// statements but include, import, extends, block, autoescape and recursive loops, and for the
// filters, tests and methods that published chat templates use. What is left out is refused by name
// and line. Rendering is bounded in steps, memory, output and depth (RenderLimits).
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace mx8::jinja {

// A variable of the rendering. `marked`: its strings come from a user.
struct Variable {
  std::string name;
  nlohmann::ordered_json value;
  bool marked = false;
};

class Template {
 public:
  // Errors (kUnsupported, "line 12: tag 'include' is not supported"; kInvalidArgument for text that
  // is not UTF-8 or too large).
  static Result<Template> parse(std::string_view source);

  // Errors: kInvalidArgument, with the line. `now` is what strftime_now formats.
  Result<Text> render(const std::vector<Variable>& variables, const std::tm& now,
                      const RenderLimits& limits = {}) const;

 private:
  std::unique_ptr<Heap> constants_;
  Body body_;
};

}  // namespace mx8::jinja
