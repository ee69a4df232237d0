// QuantRules: an ordered list of (which modules, stored how), as quantisation configs have them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/name_pattern.h"
#include "tensor/quant.h"

namespace mx8 {

struct QuantRule {
  NamePattern pattern;
  QuantScheme scheme;  // of the modules that it matches; plain: not quantised
  // The list of the config that it is in, for messages: "ignore", "config_groups.group_0.targets".
  std::string list;
};
// The names under which a module is looked up.
struct ModuleNames {
  std::vector<std::string> own;    // its name and other spellings of it
  std::vector<std::string> fused;  // modules that it may be a part of; patterns don't look at them
  std::string_view class_name;     // "Linear"
};

std::string describe(const QuantRule& rule);  // `ignore "lm_head"`

class QuantRules {
 public:
  void add(QuantRule rule);
  bool empty() const { return rules_.empty(); }

  // The rule for a module, or null: entries that are one of its names first, then the patterns in
  // their order, then classes. Sets `by_class` for the last.
  Result<const QuantRule*> find(const ModuleNames& module, bool& by_class) const;
  // The rules that find() has not returned so far.
  std::vector<const QuantRule*> unmatched() const;

 private:
  const QuantRule* hit(size_t i) const {
    matched_[i] = true;
    return &rules_[i];
  }
  // The first kPart rule whose text is a run of dotted parts of `name`.
  const QuantRule* find_part(std::string_view name) const;

  std::vector<QuantRule> rules_;
  mutable std::vector<bool> matched_;
  std::map<std::string, size_t, std::less<>> by_text_;  // but for patterns
  std::vector<size_t> patterns_;
  std::vector<size_t> classes_;
};

}  // namespace mx8
