#include "text/jinja.h"

#include "base/strings.h"
#include "text/jinja_convert.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_parser.h"

namespace mx8::jinja {

namespace {
constexpr size_t kMaxSource = 4 << 20;
}

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kMaxSource) {
    return invalid_argument(
        str_cat("a template of ", source.size(), " bytes (at most ", kMaxSource, ")"));
  }
  if (!valid_utf8(source)) return invalid_argument("the template is not valid UTF-8");
  Template t;
  t.constants_ = std::make_unique<Heap>(RenderLimits{});
  try {
    t.body_ = jinja::parse(source, *t.constants_);
  } catch (const Failure& f) {
    return unsupported(str_cat("line ", f.line, ": ", f.message));
  }
  return t;
}

Result<Text> Template::render(const std::vector<Variable>& variables, const std::tm& now,
                              const RenderLimits& limits) const {
  Heap heap(limits);
  Interpreter interpreter(heap, now);
  try {
    std::vector<std::pair<std::string_view, Value>> values;
    for (const Variable& v : variables) {
      values.emplace_back(v.name, from_json(heap, v.value, v.marked));
    }
    return interpreter.render(body_, std::move(values));
  } catch (const Failure& f) {
    return invalid_argument(str_cat("line ", interpreter.line(), ": ", f.message));
  }
}

}  // namespace mx8::jinja
