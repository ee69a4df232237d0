// The chat template of a model folder: from messages to the prompt's text.
//
//   Result<ChatTemplate> chat = ChatTemplate::load("SmolLM2-135M-Instruct");
//   ChatInput input;
//   input.messages = nlohmann::ordered_json::parse(R"([{"role": "user", "content": "Hi"}])");
//   Result<std::vector<TextSpan>> spans = chat->render(input);
//   tokenizer.encode_segments(*spans, /*add_special_tokens=*/false);
//
// The concatenated spans are, byte for byte, what Hugging Face's apply_chat_template returns for
// the same input (with `normalize` off; see ChatInput). Text that came out of the messages, tools,
// documents or kwargs is untrusted, through every filter and string operation of the template, so
// the tokenizer never reads a special token out of it; the template's own text and the special
// tokens are trusted.
//
// BOS: a template writes its model's BOS itself where the model wants one. Rendered text is
// therefore always encoded with add_special_tokens = false, which leaves exactly the BOS that the
// template wrote; raw completions use add_special_tokens = true, which adds exactly one.
// starts_with_bos() tells.
//
// A model without a usable template still serves raw completions: load() fails for this object
// only.
#pragma once

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/jinja.h"
#include "text/text_span.h"

namespace mx8 {

struct ChatInput {
  // [{"role": "user", "content": "..."}, ...]: `content` is a string, null, absent, or a list of
  // parts
  // {"type": "text", "text": "..."}; further members (tool_calls, name, ...) go to the template as
  // they are.
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools;      // null or a list of JSON schemas
  nlohmann::ordered_json documents;  // null or a list
  bool add_generation_prompt = true;
  // Further variables of the template, such as {"enable_thinking": false}.
  nlohmann::ordered_json kwargs = nlohmann::ordered_json::object();
  // Local time for templates that print the date; nothing: the time of the call.
  std::optional<std::tm> now;
  // Meets OpenAI-style input half way: lists of text parts are joined with newlines when the
  // template cannot read lists, and tool_calls[].function.arguments given as a string that holds a
  // JSON object becomes that object.
  bool normalize = true;
  jinja::RenderLimits limits;
};

class ChatTemplate {
 public:
  // Reads `folder`/chat_template.jinja; where that is absent, "chat_template" of
  // `folder`/tokenizer_config.json, a string or a list of {"name", "template"} of which "default"
  // is used ("tool_use", where there is one, when tools are given). When both files have one, the
  // .jinja file wins. Special tokens (bos_token, eos_token, ...) come from tokenizer_config.json.
  // Errors: kNotFound when neither file has a template, kUnsupported with the line for a construct
  // that the engine leaves out, kCorrupt for files that are not what they should be.
  static Result<ChatTemplate> load(const std::string& folder);

  // From memory. `special_tokens` holds template variables such as {"bos_token", "<s>"}; `name` is
  // what error messages call the template.
  static Result<ChatTemplate> from_source(std::string_view source,
                                          std::map<std::string, std::string> special_tokens,
                                          const std::string& name = "chat template");

  // Errors (kInvalidArgument): messages of a wrong shape, a part that is not text, or the
  // template's own refusal or failure with its line.
  Result<std::vector<TextSpan>> render(const ChatInput& input) const;

  // Whether the prompt begins with the BOS token, written by the template.
  bool starts_with_bos(const std::vector<TextSpan>& spans) const;

  // Whether the template reads content given as a list of parts.
  bool reads_content_parts() const { return reads_parts_; }
  const std::map<std::string, std::string>& special_tokens() const { return special_tokens_; }

 private:
  ChatTemplate() = default;
  Result<jinja::Text> render_text(const nlohmann::ordered_json& messages,
                                  const ChatInput& input) const;
  void probe_content_parts();

  std::string name_;
  jinja::Template default_;
  std::optional<jinja::Template> tool_use_;
  std::map<std::string, std::string> special_tokens_;
  bool reads_parts_ = false;
};

}  // namespace mx8
