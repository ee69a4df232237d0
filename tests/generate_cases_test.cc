// `generate` at its edges: prompts, limits, stop strings and what stands behind stdout.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "cli_support.h"
#include "model/raw_checkpoint.h"
#include "text/byte_level.h"

namespace mx8 {
namespace {

// A tokenizer of 256 bytes and two special tokens.
std::string byte_tokenizer() {
  nlohmann::json vocab = nlohmann::json::object();
  for (int b = 0; b < 256; ++b) {
    vocab[std::string(text::byte_level_char(static_cast<unsigned char>(b)))] = b;
  }
  const auto special = [](int id, const char* content) {
    return nlohmann::json{
        {"id", id},        {"content", content}, {"special", true},     {"normalized", false},
        {"lstrip", false}, {"rstrip", false},    {"single_word", false}};
  };
  const nlohmann::json byte_level = {{"type", "ByteLevel"},
                                     {"add_prefix_space", false},
                                     {"trim_offsets", false},
                                     {"use_regex", true}};
  return nlohmann::json{
      {"version", "1.0"},
      {"added_tokens", {special(256, "<s>"), special(257, "</s>")}},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}}
      .dump();
}

class GenerateCases : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    test::RawCheckpoint c = test::read_checkpoint(MX8_SOURCE_DIR "/tests/data/tiny/llama_mxfp8");
    for (const auto& [field, value] :
         std::map<std::string, std::string>{{"vocab_size", "264"},
                                            {"bos_token_id", "256"},
                                            {"eos_token_id", "257"},
                                            {"max_position_embeddings", "256"}}) {
      test::set_field(c, field, value);
    }
    std::ofstream(*folder_ / "config.json") << c.config;
    made_ = run_mx8("make-dummy " + (*folder_ / "config.json") + " " + model()).code == 0;
    std::ofstream(model() + "/tokenizer.json") << byte_tokenizer();
    std::ofstream(model() + "/tokenizer_config.json")
        << R"({"bos_token": "<s>", "eos_token": "</s>"})";
    std::ofstream(model() + "/chat_template.jinja")
        << "{{ bos_token }}[{{ messages[0]['content'] }}]";
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(made_); }

  static std::string model() { return *folder_ / "model"; }
  static std::string generate(const std::string& flags) {
    return "generate " + model() + " --threads 1 --ignore-eos --temperature 0 " + flags;
  }
  static std::string file(const std::string& name, const std::string& text) {
    std::ofstream(*folder_ / name, std::ios::binary) << text;
    return *folder_ / name;
  }
  static nlohmann::json answer(const std::string& flags) {
    const RunResult r = run_mx8(generate(flags + " --json"));
    EXPECT_EQ(r.code, 0) << flags << "\n" << r.err;
    return nlohmann::json::parse(r.out, nullptr, false);
  }

 private:
  static inline TempFolder* folder_ = nullptr;
  static inline bool made_ = false;
};

TEST_F(GenerateCases, RefusalsNameTheNumbers) {
  struct Row {
    std::string flags;
    std::vector<std::string> named;
  };
  const std::string long_prompt(300, 'x');
  const Row rows[] = {
      {"--raw --prompt ''", {"the prompt is empty"}},
      {"--raw --prompt-file /dev/null", {"the prompt is empty"}},
      {"--raw --prompt " + long_prompt, {"300 tokens", "256 tokens"}},
      {"--prompt " + long_prompt, {"303 tokens", "256 tokens"}},
      {"--raw --prompt " + long_prompt + " --max-model-len 100", {"300 tokens", "100 tokens"}},
      {"--raw --prompt hello --max-tokens 252", {"5 tokens", "252 more", "256 tokens"}},
      {"--raw --prompt x --max-model-len 257", {"257 tokens", "256"}},
      {"--raw --prompt-file " + file("big", std::string(5 << 20, 'y')), {"5242880 tokens"}},
      {"--raw --prompt-file " + file("latin1", "caf\xE9 au lait"), {"latin1", "offset 3"}},
      {"--prompt-file " + file("cut", "caf\xC3"), {"cut is not UTF-8", "offset 3"}},
      {"--prompt \"$(printf 'a\\377')\"", {"the prompt is not UTF-8", "offset 1"}},
      {"--prompt-file " + model(), {"cannot read " + model(), "directory"}},
      {"--raw --prompt x --stop ''", {"stop holds an empty string"}},
      {"--raw --prompt x --repetition-penalty 0", {"repetition_penalty is 0"}},
      {"--raw --prompt x --top-p 2", {"top_p is 2"}},
      {"--raw --prompt x --kv-memory 10", {"KV", "--kv-memory"}},
  };
  for (const Row& row : rows) {
    const RunResult r = run_mx8(generate(row.flags + " --json"));
    EXPECT_EQ(r.code, 1) << row.flags.substr(0, 80);
    EXPECT_EQ(r.out, "");
    for (const std::string& part : row.named) {
      EXPECT_NE(error_line(r).find(part), std::string::npos) << part << " in: " << r.err;
    }
    EXPECT_EQ(error_line(r) + "\n", r.err);
  }
}

TEST_F(GenerateCases, ThePromptMayFillTheContext) {
  const auto j = answer("--raw --prompt " + std::string(255, 'x'));
  EXPECT_EQ(j["prompt_tokens"], 255);
  EXPECT_EQ(j["completion_tokens"], 1);
  EXPECT_EQ(j["finish_reason"], "length");
  // One BOS, from the template alone.
  EXPECT_EQ(answer("--prompt abc --max-tokens 1")["prompt_tokens"], 6);
  EXPECT_EQ(answer("--prompt '' --max-tokens 1")["prompt_tokens"], 3);
}

TEST_F(GenerateCases, LimitsCountTokens) {
  for (const int n : {1, 5, 20}) {
    const auto j = answer(str_cat("--raw --prompt hello --max-tokens ", n));
    EXPECT_EQ(j["completion_tokens"], n);
    EXPECT_EQ(j["finish_reason"], "length");
  }
}

// Random weights over bytes: hardly any answer is whole characters.
TEST_F(GenerateCases, StreamedTextEqualsTheWholeAndStops) {
  for (const char* prompt : {"hello", "Zürich", "東京 🗼", "0"}) {
    const std::string flags = str_cat("--raw --prompt '", prompt, "' --max-tokens 40");
    const auto whole = answer(flags);
    const std::string text = whole["text"];
    const RunResult streamed = run_mx8(generate(flags));
    EXPECT_EQ(streamed.out, text.ends_with("\n") ? text : text + "\n") << prompt;
    // The first character of the answer as a stop string: nothing is left.
    size_t size = 1;
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
    std::ofstream(model() + "/stop", std::ios::binary) << text.substr(0, size);
    const auto stopped = answer(flags + " --stop \"$(cat " + model() + "/stop; printf x)\"");
    EXPECT_EQ(stopped["text"].get<std::string>().substr(0, size), text.substr(0, size));
    if (text[0] == '\'' || text[0] == '\n') continue;
    const auto first = answer(flags + " --stop \"$(cat " + model() + "/stop)\"");
    EXPECT_EQ(first["text"], "") << prompt;
    EXPECT_EQ(first["finish_reason"], "stop");
  }
}

TEST_F(GenerateCases, ALostReaderEndsTheRun) {
  const std::string base = "'" MX8_PROGRAM "' ";
  const std::string err = model() + "/err";
  const std::string ask = "--raw --prompt hello --max-tokens 200";
  for (const std::string& command :
       {base + generate(ask) + " >/dev/full", base + generate(ask + " --json") + " >/dev/full",
        base + generate(ask) + " >&-", base + "doctor >/dev/full", base + "version >&-",
        base + "--help >/dev/full"}) {
    const int status = std::system((command + " 2>'" + err + "' </dev/null").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << command;
    EXPECT_NE(slurp(err).find("cannot write to standard output"), std::string::npos) << slurp(err);
  }
  // A pipe whose reader has gone: an error, not a signal.
  const std::string code = model() + "/code";
  std::system(("{ sleep 0.1; " + base + generate(ask) + " 2>'" + err + "' </dev/null; echo $? >'" +
               code + "'; } | true")
                  .c_str());
  EXPECT_EQ(slurp(code), "1\n") << slurp(err);
}

}  // namespace
}  // namespace mx8
