#include "checkpoint/name_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fnmatch.h>
#include <pcre2.h>

#include <algorithm>
#include <cctype>

#include "base/check.h"
#include "base/strings.h"

namespace mx8 {

namespace {

constexpr uint32_t kMatchSteps = 200'000;  // far above what a module's name needs

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

Result<NamePattern> NamePattern::regex(const std::string& expression) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_UTF | PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr);
  if (compiled == nullptr) {
    PCRE2_UCHAR text[128] = {};
    pcre2_get_error_message(code, text, sizeof text);
    return invalid_argument(str_cat("\"re:", expression, "\" is not a regular expression: ",
                                    reinterpret_cast<const char*>(text), " at character ", offset));
  }
  NamePattern pattern(Kind::kRegex, "re:" + expression);
  pattern.compiled_ = std::shared_ptr<const void>(compiled, [](const void* p) {
    pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p)));
  });
  return pattern;
}

Result<bool> NamePattern::matches_name(std::string_view name) const {
  if (kind_ == Kind::kWildcard) {
    return ::fnmatch(text_.c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
  }
  MX8_CHECK(kind_ == Kind::kRegex, text_);
  const auto* compiled = static_cast<const pcre2_code*>(compiled_.get());
  pcre2_match_data* data = pcre2_match_data_create_from_pattern(compiled, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(context, kMatchSteps);
  const int rc = pcre2_match(compiled, reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0,
                             data, context);
  pcre2_match_context_free(context);
  pcre2_match_data_free(data);
  if (rc >= 0) return true;
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  return invalid_argument(str_cat("the pattern \"", text_, "\" cannot be matched against \"", name,
                                  "\" in reasonable time; simplify it"));
}

bool NamePattern::matches_class(std::string_view class_name) const {
  return kind_ == Kind::kClass && lower(class_name).find(lower(text_)) != std::string::npos;
}

}  // namespace mx8
