// Every node of tokenizer.json against the Python package `tokenizers`
// (tools/make_tokenizer_goldens.py writes the expected ids and texts): small tokenizers with the
// node structures of the families, and one for each other node.
#include <gtest/gtest.h>

#include "text/tokenizer_test_util.h"

namespace mx8 {
namespace {

using nlohmann::json;

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
  const json goldens = read_tokenizer_data("goldens.json");
  ASSERT_GT(goldens.size(), 25u);
  for (const json& config : goldens) {
    SCOPED_TRACE(config["name"].get<std::string>());
    const Tokenizer tokenizer = load_tokenizer(tokenizer_json_of(config));
    ASSERT_GT(config["cases"].size(), 40u);
    for (const json& golden : config["cases"]) {
      check_case(tokenizer, golden, config["ids_only"].get<bool>());
    }
  }
}

}  // namespace
}  // namespace mx8
