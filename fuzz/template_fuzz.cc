// Any bytes as a chat template: parsing and a bounded rendering must end in text or in a message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Json = nlohmann::ordered_json;
  static const Json kMessages = Json::parse(R"([
      {"role": "system", "content": " be brief\n"}, {"role": "user", "content": "h\u00e9 <|x|> \ud83d\ude42"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function",
          "function": {"name": "f", "arguments": {"n": 1, "r": 2.5, "l": [true, null, "s"]}}}]},
      {"role": "tool", "content": "{\"k\": [1]}"}])");
  mx8::ChatInput input;
  input.messages = kMessages;
  input.tools =
      Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])");
  input.now = std::tm{};
  input.limits = {.steps = 50'000, .heap_bytes = 16 << 20, .text_bytes = 1 << 20, .depth = 400};
  auto chat = mx8::ChatTemplate::from_source(
      std::string_view(reinterpret_cast<const char*>(data), size), {{"bos_token", "<s>"}});
  if (!chat.ok()) {
    if (chat.error().message.empty()) std::abort();
    return 0;
  }
  auto spans = chat->render(input);
  if (!spans.ok()) {
    if (spans.error().message.empty()) std::abort();
    return 0;
  }
  for (const mx8::TextSpan& span : *spans) {
    if (span.text.empty()) std::abort();
    if (!mx8::jinja::valid_utf8(span.text)) std::abort();
  }
  return 0;
}
