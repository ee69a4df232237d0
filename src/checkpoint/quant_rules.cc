#include "checkpoint/quant_rules.h"

#include "base/strings.h"

namespace mx8 {

std::string describe(const QuantRule& rule) {
  return str_cat(rule.list, " \"", rule.pattern.text(), '"');
}

void QuantRules::add(QuantRule rule) {
  const size_t i = rules_.size();
  switch (rule.pattern.kind()) {
    case NamePattern::Kind::kRegex:
    case NamePattern::Kind::kWildcard:
      patterns_.push_back(i);
      break;
    case NamePattern::Kind::kClass:
      classes_.push_back(i);
      [[fallthrough]];
    default:
      by_text_.emplace(rule.pattern.text(), i);
      break;
  }
  rules_.push_back(std::move(rule));
  matched_.push_back(false);
}

Result<const QuantRule*> QuantRules::find(const ModuleNames& module, bool& by_class) const {
  by_class = false;
  for (const auto* names : {&module.own, &module.fused}) {
    for (const std::string& name : *names) {
      const auto at = by_text_.find(name);
      if (at != by_text_.end()) return hit(at->second);
    }
  }
  for (const auto* names : {&module.own, &module.fused}) {
    for (const std::string& name : *names) {
      if (const QuantRule* rule = find_part(name)) return rule;
    }
  }
  for (const size_t i : patterns_) {
    for (const std::string& name : module.own) {
      MX8_TRY(const bool matches, rules_[i].pattern.matches_name(name));
      if (matches) return hit(i);
    }
  }
  by_class = true;
  for (const size_t i : classes_) {
    if (rules_[i].pattern.matches_class(module.class_name)) return hit(i);
  }
  return nullptr;
}

const QuantRule* QuantRules::find_part(std::string_view name) const {
  // Every run of parts is looked up, so long lists of names cost no more than short ones.
  for (size_t begin = 0; begin < name.size();) {
    for (size_t end = name.size(); end != std::string_view::npos && end > begin;
         end = name.rfind('.', end - 1)) {
      const auto at = by_text_.find(name.substr(begin, end - begin));
      if (at != by_text_.end() && rules_[at->second].pattern.kind() == NamePattern::Kind::kPart) {
        return hit(at->second);
      }
    }
    const size_t dot = name.find('.', begin);
    if (dot == std::string_view::npos) break;
    begin = dot + 1;
  }
  return nullptr;
}

std::vector<const QuantRule*> QuantRules::unmatched() const {
  std::vector<const QuantRule*> rules;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (!matched_[i]) rules.push_back(&rules_[i]);
  }
  return rules;
}

}  // namespace mx8
