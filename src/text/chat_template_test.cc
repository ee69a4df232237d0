#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace mx8 {
namespace {

using Json = nlohmann::ordered_json;

const std::string kData = std::string(MX8_SOURCE_DIR) + "/tests/data/templates";

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string concat(const std::vector<TextSpan>& spans) {
  std::string out;
  for (const TextSpan& s : spans) out += s.text;
  return out;
}

// "trusted[untrusted]trusted"
std::string marked(const std::vector<TextSpan>& spans) {
  std::string out;
  for (const TextSpan& s : spans) out += s.trusted ? s.text : "[" + s.text + "]";
  return out;
}

ChatInput chat_of(const std::string& messages) {
  ChatInput input;
  input.messages = Json::parse(messages);
  return input;
}

// The rendering with untrusted runs in brackets, or the error.
std::string render_marked(const std::string& source, const ChatInput& input,
                          const std::map<std::string, std::string>& special_tokens = {}) {
  auto chat = ChatTemplate::from_source(source, special_tokens);
  if (!chat.ok()) return "error: " + chat.error().message;
  auto spans = chat->render(input);
  return spans.ok() ? marked(*spans) : "error: " + spans.error().message;
}

// ---- Real templates against Python's jinja2.

std::tm parse_time(const std::string& iso) {
  std::tm tm{};
  EXPECT_NE(strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &tm), nullptr) << iso;
  return tm;
}

ChatInput input_of(const Json& conversation, const std::string& now) {
  ChatInput input;
  input.messages = conversation["messages"];
  if (conversation.contains("tools")) input.tools = conversation["tools"];
  if (conversation.contains("documents")) input.documents = conversation["documents"];
  if (conversation.contains("kwargs")) input.kwargs = conversation["kwargs"];
  if (conversation.contains("add_generation_prompt")) {
    input.add_generation_prompt = conversation["add_generation_prompt"].get<bool>();
  }
  input.now = parse_time(now);
  input.normalize = false;
  return input;
}

struct Tally {
  int exact = 0, differs = 0, failed = 0;
  int refused = 0, beyond = 0;  // of what the oracle refuses: refused by us too, rendered by us
};

Tally compare(const std::string& path, const std::string& folder) {
  Json goldens = Json::parse(read(path));
  Tally tally;
  for (const Json& t : goldens["templates"]) {
    const auto file = t["file"].get<std::string>();
    auto special = t["special_tokens"].get<std::map<std::string, std::string>>();
    auto chat = ChatTemplate::from_source(read(folder + "/" + file), special, file);
    if (!chat.ok()) {
      ADD_FAILURE() << chat.error().message;
      continue;
    }
    for (size_t i = 0; i < t["results"].size(); ++i) {
      const Json& conversation = goldens["conversations"][i];
      const Json& expected = t["results"][i];
      SCOPED_TRACE(file + ": " + conversation["name"].get<std::string>());
      auto spans = chat->render(input_of(conversation, goldens["now"].get<std::string>()));
      if (!expected.contains("text")) {
        ++(spans.ok() ? tally.beyond : tally.refused);
        if (spans.ok())
          std::cout << "beyond the oracle: " << file << ": " << conversation["name"] << "\n";
        continue;
      }
      if (!spans.ok()) {
        ++tally.failed;
        ADD_FAILURE() << spans.error().message;
      } else {
        bool same = concat(*spans) == expected["text"].get<std::string>();
        ++(same ? tally.exact : tally.differs);
        EXPECT_EQ(concat(*spans), expected["text"].get<std::string>());
      }
    }
  }
  std::cout << tally.exact << " exact, " << tally.differs << " differ, " << tally.failed
            << " failed; of those that the oracle refuses, " << tally.refused << " refused, "
            << tally.beyond << " rendered\n";
  return tally;
}

TEST(ChatTemplateGoldens, EqualPythonsJinja2) {
  Tally tally = compare(kData + "/goldens.json", kData);
  EXPECT_GE(tally.exact, 250);
  EXPECT_EQ(tally.beyond, 0);
}

TEST(ChatTemplateGoldens, ExtraFileFromEnvironment) {
  const char* path = std::getenv("MX8_TEMPLATE_GOLDENS");
  if (path == nullptr) GTEST_SKIP() << "MX8_TEMPLATE_GOLDENS names no golden file";
  Json goldens = Json::parse(read(path));
  compare(path, goldens["folder"].get<std::string>());
}

// No special-token text that a user wrote may end up trusted, in any of the real templates.
TEST(ChatTemplateGoldens, UserTextStaysUntrusted) {
  const std::string needle = "<|evil|>";
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kData)) {
    if (entry.path().extension() != ".jinja") continue;
    auto chat = ChatTemplate::from_source(read(entry.path().string()),
                                          {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    ChatInput input = chat_of(R"([
        {"role": "user", "content": "  <|evil|> one"},
        {"role": "assistant", "content": "a<|evil|>b"},
        {"role": "user", "content": "<|evil|><|evil|>\n "}])");
    input.tools =
        Json::parse(R"([{"type": "function", "function": {"name": "f", "description": "<|evil|>",
        "parameters": {"type": "object", "properties": {"<|evil|>": {"type": "string"}}}}}])");
    for (bool with_tools : {false, true}) {
      if (!with_tools) input.tools = nullptr;
      auto spans = chat->render(input);
      ASSERT_TRUE(spans.ok()) << entry.path() << ": " << spans.error().message;
      size_t total = 0;
      for (const TextSpan& s : *spans) {
        if (s.trusted) {
          EXPECT_EQ(s.text.find("evil"), std::string::npos) << entry.path() << ": " << s.text;
        }
        for (size_t at = 0; (at = s.text.find(needle, at)) != s.text.npos; ++at) ++total;
      }
      EXPECT_GE(total, 4u) << entry.path();
      ++seen;
    }
  }
  EXPECT_GE(seen, 20);
}

// ---- Marks through the operations of the language.

TEST(ChatTemplateMarks, SurviveEveryStringOperation) {
  ChatInput input = chat_of(R"([{"role": "user", "content": " aXbXc "}])");
  const std::pair<const char*, const char*> kCases[] = {
      {"<{{ m }}>", "<[ aXbXc ]>"},
      {"<{{ m|trim }}>", "<[aXbXc]>"},
      {"{{ '<' + m ~ '>' }}", "<[ aXbXc ]>"},
      {"{{ m|upper }}.{{ m|lower }}.{{ m|title }}.{{ m|capitalize }}",
       "[ AXBXC ].[ axbxc ].[ Axbxc ].[ axbxc ]"},
      {"{{ m|replace('X', '-') }}", "[ a]-[b]-[c ]"},
      {"{{ '1X2'|replace('X', m) }}", "1[ aXbXc ]2"},
      {"{{ m.replace('aX', 'aX') }}", "[ ]aX[bXc ]"},
      {"{{ m[1:4] }}{{ m[-2] }}{{ m[::-1] }}", "[aXbc cXbXa ]"},
      {"{{ m.split('X')|join('+') }}", "[ a]+[b]+[c ]"},
      {"{{ m.strip().split('X')[0] }}{{ m.partition('X')[1] }}", "[aX]"},
      {"{{ ['(', m, ')']|join }}", "([ aXbXc ])"},
      {"{{ '%s=%r' % (m, m) }}", "[ aXbXc ]='[ aXbXc ]'"},
      {"{{ '{}{:>9}'.format(m, m) }}", "[ aXbXc ]  [ aXbXc ]"},
      {"{{ m|tojson }}{{ {'k': [m]}|tojson }}", "\"[ aXbXc ]\"{\"k\": [\"[ aXbXc ]\"]}"},
      {"{{ [m] }}{{ {m: 1} }}", "['[ aXbXc ]']{'[ aXbXc ]': 1}"},
      {"{{ m|indent(2, true) }}{{ m.center(9, '*') }}", "  [ aXbXc ]*[ aXbXc ]*"},
      {"{{ m|list|first }}{{ m|reverse }}{{ m|truncate(5, true, '.', 0) }}", "[  cXbXa  aXb]."},
      {"{% set x %}<{{ m }}>{% endset %}{{ x }}", "<[ aXbXc ]>"},
      {"{% macro f(a) %}({{ a }}{{ caller() }}){% endmacro %}{% call f(m) %}{{ m }}!{% endcall %}",
       "([ aXbXc  aXbXc ]!)"},
      {"{% filter upper %}t{{ m }}{% endfilter %}", "T[ AXBXC ]"},
      {"{% set ns = namespace(t='') %}{% for c in m %}{% set ns.t = ns.t + c %}{% endfor %}{{ ns.t "
       "}}",
       "[ aXbXc ]"},
      {"{{ m * 2 }}{{ m|safe }}{{ m|escape }}{{ (m|safe) + '<' }}",
       "[ aXbXc  aXbXc  aXbXc  aXbXc  aXbXc ]&lt;"},
      {"{{ '[\"' ~ m ~ '\"]' }}{{ ('[\"' ~ m ~ '\"]')|from_json|first }}",
       "[\"[ aXbXc ]\"][ aXbXc ]"},
      {"{{ messages[0].role }}{% for k in messages[0] %}{{ k }}{% endfor %}", "[userrolecontent]"},
      {"{{ m|length }}{{ m is string }}{{ 'X' in m }}", "7TrueTrue"},
      {"{{ m|map('upper')|join }}{{ [m]|sort|join }}{{ m|unique|join }}", "[ AXBXC  aXbXc  aXbc]"},
      {"{{ m.splitlines()|join }}{{ m.ljust(8) }}|{{ m.removeprefix(' a') }}{{ m.zfill(8) }}",
       "[ aXbXc  aXbXc ] |[XbXc ]0[ aXbXc ]"},
  };
  for (auto [body, expected] : kCases) {
    EXPECT_EQ(render_marked(std::string("{% set m = messages[0].content %}") + body, input),
              expected)
        << body;
  }
}

TEST(ChatTemplateMarks, KwargsToolsAndSpecialTokens) {
  ChatInput input = chat_of(R"([{"role": "user", "content": "q"}])");
  input.kwargs = Json::parse(R"({"style": "s<|x|>"})");
  input.tools = Json::parse(R"([{"name": "t"}])");
  EXPECT_EQ(render_marked("{{ bos_token }}{{ style }}{{ tools }}", input, {{"bos_token", "<s>"}}),
            "<s>[s<|x|>][{'[name]': '[t]'}]");
}

// ---- BOS

TEST(ChatTemplateBos, IsWrittenOnceByTheTemplate) {
  ChatInput input = chat_of(R"([{"role": "user", "content": "<s>q"}])");
  auto chat =
      ChatTemplate::from_source("{{ bos_token }}{{ messages[0].content }}", {{"bos_token", "<s>"}});
  ASSERT_TRUE(chat.ok());
  auto spans = chat->render(input);
  ASSERT_TRUE(spans.ok());
  EXPECT_EQ(marked(*spans), "<s>[<s>q]");
  EXPECT_TRUE(chat->starts_with_bos(*spans));
  // A user who begins with the BOS text is no BOS.
  auto bare = ChatTemplate::from_source("{{ messages[0].content }}", {{"bos_token", "<s>"}});
  spans = bare->render(input);
  ASSERT_TRUE(spans.ok());
  EXPECT_FALSE(bare->starts_with_bos(*spans));
}

// ---- Where the template comes from

class ChatTemplateFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(MX8_BINARY_DIR) / "chat_template_test" / info->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string render() {
    auto chat = ChatTemplate::load(folder_.string());
    if (!chat.ok()) return "error: " + chat.error().message;
    auto spans = chat->render(chat_of(R"([{"role": "user", "content": "q"}])"));
    return spans.ok() ? concat(*spans) : "error: " + spans.error().message;
  }
  std::filesystem::path folder_;
};

TEST_F(ChatTemplateFolder, OnlyTheFile) {
  put("chat_template.jinja", "file {{ messages[0].content }}\n");
  EXPECT_EQ(render(), "file q");
}

TEST_F(ChatTemplateFolder, OnlyTheConfig) {
  put("tokenizer_config.json",
      R"({"chat_template": "config {{ bos_token }}", "bos_token": {"content": "<b>"}})");
  EXPECT_EQ(render(), "config <b>");
}

TEST_F(ChatTemplateFolder, BothTheFileWins) {
  put("chat_template.jinja", "file {{ eos_token }}{{ unk_token is defined }}");
  put("tokenizer_config.json",
      R"({"chat_template": "config", "eos_token": "</s>", "unk_token": null})");
  EXPECT_EQ(render(), "file </s>False");
}

TEST_F(ChatTemplateFolder, NeitherIsAnErrorOfTheChatAlone) {
  put("tokenizer_config.json", R"({"bos_token": "<s>"})");
  auto chat = ChatTemplate::load(folder_.string());
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.error().code, ErrorCode::kNotFound);
  EXPECT_NE(chat.error().message.find("no chat template"), std::string::npos);
}

TEST_F(ChatTemplateFolder, NamedTemplates) {
  put("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "tools"},
                                                     {"name": "default", "template": "default"}]})");
  EXPECT_EQ(render(), "default");
  auto chat = ChatTemplate::load(folder_.string());
  ChatInput input = chat_of("[]");
  input.tools = Json::array();
  EXPECT_EQ(concat(*chat->render(input)), "tools");
}

TEST_F(ChatTemplateFolder, NamedTemplatesWithoutDefault) {
  put("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  EXPECT_NE(render().find("no template named 'default' (found: rag)"), std::string::npos);
}

TEST_F(ChatTemplateFolder, BrokenFilesAreNamed) {
  put("tokenizer_config.json", "{");
  EXPECT_NE(render().find("tokenizer_config.json: expected a JSON object"), std::string::npos);
  put("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_NE(render().find("expected a string or a list"), std::string::npos);
  put("chat_template.jinja", "a\n{% if x %}\n{% include 'y' %}");
  put("tokenizer_config.json", "{}");
  EXPECT_NE(render().find("chat_template.jinja: line 3: tag 'include' is not supported"),
            std::string::npos)
      << render();
}

// ---- The shape of the input

TEST(ChatTemplateInput, WrongShapesAreNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"role": "user"})", "messages: expected a list"},
      {R"(["x"])", "messages[0]: expected an object"},
      {R"([{"role": "user", "content": ""}, {"content": "x"}])",
       "messages[1]: expected a string in \"role\""},
      {R"([{"role": "user", "content": 5}])",
       "messages[0].content: expected a string, null or a list of parts"},
      {R"([{"role": "user", "content": [{"type": "image_url"}]}])",
       "messages[0].content[0]: a part of type 'image_url' is not supported; send 'text'"},
      {R"([{"role": "user", "content": [{"type": "text"}]}])",
       "messages[0].content[0]: expected a string in \"text\""},
  };
  for (auto [messages, expected] : kCases) {
    EXPECT_EQ(render_marked("x", chat_of(messages)), std::string("error: ") + expected);
  }
  ChatInput input = chat_of("[]");
  input.kwargs = Json::parse(R"({"messages": []})");
  EXPECT_EQ(render_marked("x", input), "error: template kwargs: 'messages' has a place of its own");
}

TEST(ChatTemplateInput, PartsAreJoinedForTemplatesThatReadStrings) {
  ChatInput input = chat_of(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
  EXPECT_EQ(render_marked("{{ messages[0].content }}", input), "[a\nb]");
  const char* reads =
      "{% if messages[0].content is string %}{{ messages[0].content }}{% else %}"
      "{% for p in messages[0].content %}<{{ p.text }}>{% endfor %}{% endif %}";
  EXPECT_EQ(render_marked(reads, input), "<[a]><[b]>");
  EXPECT_TRUE(ChatTemplate::from_source(reads, {})->reads_content_parts());
  input.normalize = false;
  EXPECT_EQ(render_marked("{{ messages[0].content|length }}", input), "2");
}

TEST(ChatTemplateInput, StringArgumentsOfToolCallsBecomeObjects) {
  ChatInput input = chat_of(R"([{"role": "assistant", "content": null, "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"b\": 1, \"a\": [2.0]}"}},
      {"function": {"name": "g", "arguments": ""}}, {"function": {"name": "h", "arguments": "not json"}}]}])");
  const char* source =
      "{% for c in messages[0].tool_calls %}{{ c.function.arguments|tojson }};{% endfor %}";
  EXPECT_EQ(render_marked(source, input), "{\"[b]\": 1, \"[a]\": [2.0]};{};\"[not json]\";");
}

TEST(ChatTemplateInput, DateOfTheCallByDefault) {
  ChatInput input = chat_of("[]");
  std::string year = render_marked("{{ strftime_now('%Y') }}", input);
  EXPECT_EQ(year.size(), 4u);
  EXPECT_GE(year, "2024");
}

TEST(ChatTemplateInput, RefusalOfTheTemplateIsAnErrorWithItsLine) {
  EXPECT_EQ(
      render_marked("\n{{ raise_exception('roles must alternate') }}", chat_of("[]")),
      "error: chat template: line 2: the template refuses the messages: roles must alternate");
}

}  // namespace
}  // namespace mx8
