#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include "base/strings.h"
#include "text/utf8.h"

namespace mx8::text {

namespace {

// Address space, taken as it is used: enough for a million rounds of a group that may backtrack.
constexpr size_t kMaxStack = size_t{64} << 20;

// Match data and the JIT's stack: one of each a thread, for all patterns.
struct MatchState {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, kMaxStack, nullptr);

  MatchState() {
    MX8_CHECK(data != nullptr && context != nullptr && stack != nullptr, "out of memory");
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_heap_limit(context, 256 << 10);  // KiB, for patterns that the JIT cannot finish
  }
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;
};

MatchState& match_state() {
  thread_local MatchState state;
  return state;
}

}  // namespace

Result<Regex> Regex::compile(std::string_view oniguruma_pattern) {
  MX8_TRY(const std::string pattern, translate_oniguruma(oniguruma_pattern));
  auto regex = compile_pcre2(pattern);
  if (regex) return regex;
  return unsupported(
      str_cat("regular expression /", oniguruma_pattern, "/ ", regex.error().message));
}

Result<Regex> Regex::compile_pcre2(const std::string& pattern) {
  std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  MX8_CHECK(context != nullptr, "out of memory");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, context.get());
  if (code == nullptr) {
    PCRE2_UCHAR message[160];
    pcre2_get_error_message(error, message, sizeof message);
    return unsupported(str_cat("does not compile: ", reinterpret_cast<const char*>(message)));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without a JIT, pcre2_match interprets
  Regex regex;
  regex.code_ = std::shared_ptr<const void>(
      code, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
  return regex;
}

void Regex::find_all(std::string_view text, std::vector<Match>& out) const {
  out.clear();
  if (text.empty()) return;
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  MatchState& state = match_state();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const size_t* offsets = pcre2_get_ovector_pointer(state.data);
  size_t from = 0;
  size_t last_end = std::string_view::npos;
  while (from <= text.size()) {
    int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, state.data,
                         state.context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       state.data, state.context);
    }
    if (rc < 0) return;  // no further match, or a limit was reached
    const size_t begin = offsets[0], end = offsets[1];
    if (begin == end && end == last_end) {
      if (from == text.size()) return;
      from += decode_valid(text.data() + from).size;
      continue;
    }
    out.push_back({begin, end});
    from = last_end = end;
  }
}

}  // namespace mx8::text
