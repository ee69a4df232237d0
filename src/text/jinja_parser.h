// Builds the syntax tree of a template. What is outside the supported subset is refused here, by
// name and line.
#pragma once

#include <string_view>

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace mx8::jinja {

// Constants go to `constants`, which has to outlive the tree. Throws Failure.
Body parse(std::string_view source, Heap& constants);

}  // namespace mx8::jinja
