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
    kClass,     // the whole name, or a part of the module's class name, whatever the case
  };

  NamePattern(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}
  // A regular expression without its "re:"; an error where it does not compile.
  static Result<NamePattern> regex(const std::string& expression);

  Kind kind() const { return kind_; }
  // As the config has it: with "re:" for regular expressions.
  const std::string& text() const { return text_; }

  // True if a kRegex or kWildcard matches the name. An error where a regular expression needs too
  // many steps.
  Result<bool> matches_name(std::string_view name) const;
  // True if a kClass is a part of the name of the class.
  bool matches_class(std::string_view class_name) const;

 private:
  Kind kind_;
  std::string text_;
  std::shared_ptr<const void> compiled_;  // kRegex
};

}  // namespace mx8
