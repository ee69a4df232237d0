// NamePattern: one entry of a quantisation config's list of modules.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mx8 {

class NamePattern {
 public:
  enum class Kind {
    kExact,     // the whole name
    kPart,      // consecutive dotted parts of the name: "mlp.gate" is in "model.layers.0.mlp.gate"
    kRegex,     // Python's re.match: anchored at the start, not at the end
    kWildcard,  // Python's fnmatch: * ? [seq] [!seq], against the whole name
    kClass,     // a part of the name of the module's class, whatever the case
  };

  NamePattern(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}
  // A regular expression without its "re:"; an error where it does not compile.
  static Result<NamePattern> regex(std::string expression);

  Kind kind() const { return kind_; }
  const std::string& text() const { return text_; }

  // True if the pattern matches a module's name (or, for kClass, its class). An error where a
  // regular expression needs too many steps.
  Result<bool> matches(std::string_view name) const;

 private:
  Kind kind_;
  std::string text_;
  std::shared_ptr<const void> compiled_;  // kRegex
};

}  // namespace mx8
