// Small tokenizers for tests, built from the base models in tests/data/tokenizers.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/tokenizer.h"

namespace mx8 {

inline nlohmann::json read_tokenizer_data(const std::string& name) {
  const std::string path = std::string(MX8_SOURCE_DIR) + "/tests/data/tokenizers/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return nlohmann::json::parse(file);
}

// The tokenizer.json that an entry of goldens.json describes.
inline nlohmann::json tokenizer_json_of(const nlohmann::json& config) {
  nlohmann::json file = config["fields"];
  nlohmann::json model = {{"type", "BPE"}};
  model.update(read_tokenizer_data(config["base"].get<std::string>() + "_base.json"));
  if (file.contains("model")) model.update(file["model"]);
  file["model"] = model;
  return file;
}

// The same by the entry's name: "smollm2", "mistral-first", ...
inline nlohmann::json golden_tokenizer_json(const std::string& name) {
  static const nlohmann::json goldens = read_tokenizer_data("goldens.json");
  for (const auto& config : goldens) {
    if (config["name"] == name) return tokenizer_json_of(config);
  }
  ADD_FAILURE() << "no configuration " << name;
  return {};
}

inline Tokenizer load_tokenizer(const nlohmann::json& file, const std::string& config = {}) {
  auto tokenizer = Tokenizer::from_json(file.dump(), config);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

inline std::string stream_decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                 bool skip_special) {
  Detokenizer stream(tokenizer, skip_special);
  std::string out;
  for (const int32_t id : ids) out += stream.push(id);
  return out + stream.flush();
}

}  // namespace mx8
