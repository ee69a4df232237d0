// The regular expressions of tokenizer.json: written in Oniguruma's Ruby syntax, run by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mx8::text {

struct Match {
  size_t begin;
  size_t end;
};

// Rewrites an Oniguruma pattern so that PCRE2 (UTF, UCP, MULTILINE, newline LF) matches the same.
// What cannot be rewritten faithfully is kUnsupported, by name.
Result<std::string> translate_oniguruma(std::string_view pattern);

// Immutable once compiled; may be used from several threads.
class Regex {
 public:
  Regex() = default;
  static Result<Regex> compile(std::string_view oniguruma_pattern);

  // All matches from left to right, as Oniguruma's iterator gives them: no empty match right after
  // another match. `text` must be valid UTF-8. Should the engine give up on a place (its step
  // limit), the rest of the text has no match.
  void find_all(std::string_view text, std::vector<Match>& out) const;

 private:
  static Result<Regex> compile_pcre2(const std::string& pattern);
  std::shared_ptr<const void> code_;  // pcre2_code
};

}  // namespace mx8::text
