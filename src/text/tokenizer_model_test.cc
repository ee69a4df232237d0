// The tokenizer of the real SmolLM2-135M-Instruct against the Python package `tokenizers`.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "text/tokenizer.h"

namespace mx8 {
namespace {

using nlohmann::json;

std::string model_folder() {
  return env("MX8_TEST_MODEL").value_or(MX8_SOURCE_DIR "/models/SmolLM2-135M-Instruct");
}

TEST(TokenizerModel, SmolLm2EqualsThePythonPackage) {
  const std::string folder = model_folder();
  if (!std::filesystem::exists(folder + "/tokenizer.json")) {
    GTEST_SKIP() << folder << "/tokenizer.json is absent (tools/fetch_smollm2.py makes it)";
  }
  const auto tokenizer = Tokenizer::load(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_EQ(tokenizer->bos_token(), "<|im_start|>");
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_FALSE(tokenizer->adds_bos());
  std::ifstream file(MX8_SOURCE_DIR "/tests/data/tokenizers/smollm2_full.json");
  for (const json& golden : json::parse(file)) {
    const auto text = golden["text"].get<std::string>();
    SCOPED_TRACE(text);
    const auto ids = golden["ids"].get<std::vector<int32_t>>();
    const auto plain = golden.contains("plain") ? golden["plain"].get<std::vector<int32_t>>() : ids;
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = true}), ids);
    EXPECT_EQ(tokenizer->encode(text), plain);
    EXPECT_EQ(tokenizer->decode(ids, false), golden["decoded"].get<std::string>());
  }
}

}  // namespace
}  // namespace mx8
