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
  int exact = 0, differs = 0, failed = 0, beyond = 0, refused = 0;
};

// Compares every template of a golden file over all its conversations.
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
        spans.ok() ? ++tally.beyond : ++tally.refused;
        continue;
      }
      if (!spans.ok()) {
        ++tally.failed;
        ADD_FAILURE() << spans.error().message;
      } else if (concat(*spans) == expected["text"].get<std::string>()) {
        ++tally.exact;
      } else {
        ++tally.differs;
        EXPECT_EQ(concat(*spans), expected["text"].get<std::string>());
      }
    }
  }
  std::cout << path << ": " << tally.exact << " exact, " << tally.differs << " differ, "
            << tally.failed << " failed; of those that the oracle refuses, " << tally.refused
            << " refused, " << tally.beyond << " rendered\n";
  return tally;
}

TEST(ChatTemplateGoldens, ExtraFileFromEnvironment) {
  const char* path = std::getenv("MX8_TEMPLATE_GOLDENS");
  if (path == nullptr) GTEST_SKIP() << "MX8_TEMPLATE_GOLDENS names no golden file";
  Json goldens = Json::parse(read(path));
  compare(path, goldens["folder"].get<std::string>());
}

}  // namespace
}  // namespace mx8
