// Every node of tokenizer.json against the Python package `tokenizers`
// (tools/make_tokenizer_goldens.py writes the expected ids and texts): small tokenizers with the
// node structures of the families, and one for each other node.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "text/tokenizer.h"

namespace mx8 {
namespace {

using nlohmann::json;

json read_json(const std::string& name) {
  const std::string path = std::string(MX8_SOURCE_DIR) + "/tests/data/tokenizers/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return json::parse(file);
}

std::string stream_decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip) {
  Detokenizer stream(tokenizer, skip);
  std::string out;
  for (const int32_t id : ids) out += stream.push(id);
  return out + stream.flush();
}

void check_case(const Tokenizer& tokenizer, const json& golden, bool ids_only) {
  const auto text = golden["text"].get<std::string>();
  SCOPED_TRACE(text);
  const auto ids = golden["ids"].get<std::vector<int32_t>>();
  const auto plain = golden.contains("plain") ? golden["plain"].get<std::vector<int32_t>>() : ids;
  const auto decoded = golden["decoded"].get<std::string>();
  const auto skipped = golden.value("skipped", decoded);
  EXPECT_EQ(tokenizer.encode(text, {.add_special_tokens = true, .parse_special = true}), ids);
  EXPECT_EQ(tokenizer.encode(text, {.add_special_tokens = false, .parse_special = false}), plain);
  EXPECT_EQ(tokenizer.encode_segments(std::vector<TextSpan>{{text, true}}, true), ids);
  EXPECT_EQ(tokenizer.encode_segments(std::vector<TextSpan>{{text, false}}), plain);
  if (ids_only) return;
  EXPECT_EQ(tokenizer.decode(ids, false), decoded);
  EXPECT_EQ(tokenizer.decode(ids, true), skipped);
  EXPECT_EQ(stream_decode(tokenizer, ids, false), decoded);
  EXPECT_EQ(stream_decode(tokenizer, ids, true), skipped);
}

TEST(TokenizerGolden, EveryNodeEqualsThePythonPackage) {
  const json goldens = read_json("goldens.json");
  const json bases = {{"byte", read_json("byte_base.json")}, {"char", read_json("char_base.json")}};
  ASSERT_GT(goldens.size(), 25u);
  for (const json& config : goldens) {
    SCOPED_TRACE(config["name"].get<std::string>());
    json file = config["fields"];
    json model = {{"type", "BPE"}};
    model.update(bases[config["base"].get<std::string>()]);
    if (file.contains("model")) model.update(file["model"]);
    file["model"] = model;
    const auto tokenizer = Tokenizer::from_json(file.dump(), {});
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    ASSERT_GT(config["cases"].size(), 40u);
    for (const json& golden : config["cases"])
      check_case(*tokenizer, golden, config["ids_only"].get<bool>());
  }
}

}  // namespace
}  // namespace mx8
