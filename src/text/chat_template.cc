#include "text/chat_template.h"

#include <array>
#include <utility>

#include "base/strings.h"
#include "base/text_file.h"

namespace mx8 {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxFile = 64 << 20;

// The JSON object in the file, or an empty one when there is no file.
Result<Json> read_config(const std::string& path) {
  if (!file_exists(path)) return Json::object();
  MX8_TRY(std::string text, read_text_file(path, kMaxFile));
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return corrupt(str_cat(path, ": expected a JSON object"));
  return json;
}

// A special token is a string or {"content": string}.
std::map<std::string, std::string> special_tokens_of(const Json& config) {
  static constexpr std::array<const char*, 7> kNames = {
      "bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"};
  std::map<std::string, std::string> out;
  for (const char* name : kNames) {
    auto it = config.find(name);
    if (it == config.end()) continue;
    if (it->is_string()) out[name] = it->get<std::string>();
    if (it->is_object() && it->contains("content") && (*it)["content"].is_string()) {
      out[name] = (*it)["content"].get<std::string>();
    }
  }
  return out;
}

struct Source {
  std::string text, name;
};

// The named templates of a "chat_template" list.
Result<std::map<std::string, Source>> named_templates(const Json& list, const std::string& path) {
  std::map<std::string, Source> out;
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("template") || !entry["template"].is_string()) {
      return corrupt(
          str_cat(path, ": \"chat_template\": expected a list of {\"name\", \"template\"}"));
    }
    std::string name = entry["name"].get<std::string>();
    out[name] = {entry["template"].get<std::string>(),
                 str_cat(path, " (chat template '", name, "')")};
  }
  return out;
}

Result<std::map<std::string, Source>> find_templates(const std::string& folder,
                                                     const Json& config) {
  std::string file = folder + "/chat_template.jinja", path = folder + "/tokenizer_config.json";
  if (file_exists(file)) {
    MX8_TRY(std::string text, read_text_file(file, kMaxFile));
    return std::map<std::string, Source>{{"default", {std::move(text), file}}};
  }
  auto it = config.find("chat_template");
  if (it == config.end() || it->is_null()) {
    return not_found(
        str_cat(folder,
                ": no chat template (neither chat_template.jinja nor \"chat_template\" in "
                "tokenizer_config.json); raw completions still work"));
  }
  if (it->is_string()) {
    return std::map<std::string, Source>{
        {"default", {it->get<std::string>(), path + " (chat template)"}}};
  }
  if (!it->is_array()) {
    return corrupt(str_cat(path, ": \"chat_template\": expected a string or a list"));
  }
  MX8_TRY(auto named, named_templates(*it, path));
  if (named.find("default") == named.end()) {
    std::vector<std::string> names;
    for (const auto& [name, source] : named) names.push_back(name);
    return not_found(str_cat(path, ": \"chat_template\" has no template named 'default' (found: ",
                             join(names, ", "), ")"));
  }
  return named;
}

Result<jinja::Template> parse(const std::string& source, const std::string& name) {
  Result<jinja::Template> parsed = jinja::Template::parse(source);
  if (parsed.ok()) return parsed;
  return Error{parsed.error().code, str_cat(name, ": ", parsed.error().message)};
}

std::string join_parts(const Json& parts) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += '\n';
    out += parts[i]["text"].get_ref<const std::string&>();
  }
  return out;
}

Result<void> check_part(const Json& part, const std::string& where) {
  if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
    return invalid_argument(str_cat(where, ": expected an object with a \"type\""));
  }
  const auto& type = part["type"].get_ref<const std::string&>();
  if (type != "text") {
    return invalid_argument(
        str_cat(where, ": a part of type '", type, "' is not supported; send 'text'"));
  }
  if (!part.contains("text") || !part["text"].is_string()) {
    return invalid_argument(str_cat(where, ": expected a string in \"text\""));
  }
  return {};
}

Result<void> check_message(const Json& message, const std::string& where) {
  if (!message.is_object()) return invalid_argument(str_cat(where, ": expected an object"));
  auto role = message.find("role");
  if (role == message.end() || !role->is_string()) {
    return invalid_argument(str_cat(where, ": expected a string in \"role\""));
  }
  auto content = message.find("content");
  if (content == message.end() || content->is_string() || content->is_null()) return {};
  if (!content->is_array()) {
    return invalid_argument(str_cat(where, ".content: expected a string, null or a list of parts"));
  }
  for (size_t i = 0; i < content->size(); ++i) {
    MX8_RETURN_IF_ERROR(check_part((*content)[i], str_cat(where, ".content[", i, "]")));
  }
  return {};
}

void parse_tool_arguments(Json& message) {
  auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (Json& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
    Json& function = call["function"];
    auto arguments = function.find("arguments");
    if (arguments == function.end() || !arguments->is_string()) continue;
    const auto& text = arguments->get_ref<const std::string&>();
    Json parsed = text.empty() ? Json::object() : Json::parse(text, nullptr, false);
    if (parsed.is_object()) *arguments = std::move(parsed);
  }
}

std::vector<TextSpan> to_spans(const jinja::Text& text) {
  std::vector<TextSpan> spans;
  text.for_each_run([&](std::string_view bytes, bool marked) {
    spans.push_back({std::string(bytes), !marked});
  });
  return spans;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::load(const std::string& folder) {
  MX8_TRY(Json config, read_config(folder + "/tokenizer_config.json"));
  MX8_TRY(auto sources, find_templates(folder, config));
  const Source& main = sources.at("default");
  MX8_TRY(ChatTemplate out, from_source(main.text, special_tokens_of(config), main.name));
  if (auto it = sources.find("tool_use"); it != sources.end()) {
    MX8_TRY(out.tool_use_, parse(it->second.text, it->second.name));
  }
  return out;
}

Result<ChatTemplate> ChatTemplate::from_source(std::string_view source,
                                               std::map<std::string, std::string> special_tokens,
                                               const std::string& name) {
  ChatTemplate out;
  out.name_ = name;
  MX8_TRY(out.default_, parse(std::string(source), name));
  out.special_tokens_ = std::move(special_tokens);
  out.probe_content_parts();
  return out;
}

// A template that reads lists prints the text of a part and not the list as Python would show it.
void ChatTemplate::probe_content_parts() {
  ChatInput input;
  input.limits.steps = 200'000;
  Json part = {{"type", "text"}, {"text", "mx8-probe"}};
  Json messages = Json::array({{{"role", "user"}, {"content", Json::array({part})}}});
  Result<jinja::Text> text = render_text(messages, input);
  if (!text.ok()) return;
  const std::string& bytes = text->bytes();
  reads_parts_ = bytes.find("mx8-probe") != bytes.npos && bytes.find("'mx8-probe'") == bytes.npos &&
                 bytes.find("\"mx8-probe\"") == bytes.npos;
}

Result<jinja::Text> ChatTemplate::render_text(const Json& messages, const ChatInput& input) const {
  std::vector<jinja::Variable> variables;
  variables.push_back({"messages", messages, true});
  variables.push_back({"tools", input.tools, true});
  variables.push_back({"documents", input.documents, true});
  variables.push_back({"add_generation_prompt", input.add_generation_prompt, false});
  for (const auto& [name, value] : input.kwargs.items()) variables.push_back({name, value, true});
  for (const auto& [name, value] : special_tokens_) {
    if (!input.kwargs.contains(name)) variables.push_back({name, value, false});
  }
  std::tm now{};
  if (input.now) {
    now = *input.now;
  } else {
    std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  const jinja::Template& chosen = tool_use_ && !input.tools.is_null() ? *tool_use_ : default_;
  Result<jinja::Text> text = chosen.render(variables, now, input.limits);
  if (text.ok()) return text;
  return Error{text.error().code, str_cat(name_, ": ", text.error().message)};
}

Result<std::vector<TextSpan>> ChatTemplate::render(const ChatInput& input) const {
  if (!input.messages.is_array()) return invalid_argument("messages: expected a list");
  for (size_t i = 0; i < input.messages.size(); ++i) {
    MX8_RETURN_IF_ERROR(check_message(input.messages[i], str_cat("messages[", i, "]")));
  }
  if (!input.tools.is_null() && !input.tools.is_array()) {
    return invalid_argument("tools: expected null or a list");
  }
  if (!input.kwargs.is_object()) return invalid_argument("template kwargs: expected an object");
  for (const char* taken : {"messages", "tools", "documents", "add_generation_prompt"}) {
    if (input.kwargs.contains(taken)) {
      return invalid_argument(str_cat("template kwargs: '", taken, "' has a place of its own"));
    }
  }
  Result<jinja::Text> text = [&] {
    if (!input.normalize) return render_text(input.messages, input);
    Json messages = input.messages;
    for (Json& message : messages) {
      parse_tool_arguments(message);
      auto content = message.find("content");
      if (!reads_parts_ && content != message.end() && content->is_array()) {
        *content = join_parts(*content);
      }
    }
    return render_text(messages, input);
  }();
  if (!text.ok()) return text.error();
  return to_spans(*text);
}

bool ChatTemplate::starts_with_bos(const std::vector<TextSpan>& spans) const {
  auto bos = special_tokens_.find("bos_token");
  return bos != special_tokens_.end() && !bos->second.empty() && !spans.empty() &&
         spans[0].trusted && spans[0].text.starts_with(bos->second);
}

}  // namespace mx8
