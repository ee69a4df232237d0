// Input: a tokenizer.json, and after the first zero byte a text. Whatever the file holds, loading
// ends with a tokenizer or an error, and a tokenizer encodes any text and decodes the ids, whole
// and streamed, to the same valid text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string_view json = input.substr(0, cut);
  const std::string_view text = cut == std::string_view::npos ? json : input.substr(cut + 1);

  const auto tokenizer = mx8::Tokenizer::from_json(json, {});
  if (!tokenizer.ok()) {
    MX8_CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  for (const bool special : {false, true}) {
    const auto ids = tokenizer->encode(text, {.parse_special = special});
    const std::string whole = tokenizer->decode(ids, special);
    mx8::Detokenizer stream(*tokenizer, special);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    streamed += stream.flush();
    MX8_CHECK(streamed == whole, streamed, whole);
    MX8_CHECK(mx8::text::is_valid_utf8(whole), whole);
  }
  return 0;
}
