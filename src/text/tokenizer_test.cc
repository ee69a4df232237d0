#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "text/byte_level.h"
#include "text/tokenizer_test_util.h"
#include "text/utf8.h"

namespace mx8 {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;
using Spans = std::vector<TextSpan>;

constexpr const char* kChatConfig =
    R"({"bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"}, "pad_token": null})";

// The real vocabulary has no token for some control bytes, which are then dropped; this one has
// all.
json with_all_bytes(json file) {
  json& vocab = file["model"]["vocab"];
  for (int b = 0; b < 256; ++b) {
    const std::string token(text::byte_level_char(static_cast<unsigned char>(b)));
    if (!vocab.contains(token)) vocab[token] = vocab.size();
  }
  return file;
}

const Tokenizer& chat_tokenizer() {
  static const Tokenizer tokenizer =
      load_tokenizer(with_all_bytes(golden_tokenizer_json("smollm2")), kChatConfig);
  return tokenizer;
}

bool has_special(const Tokenizer& tokenizer, const Ids& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer.is_special(id); });
}

TEST(Tokenizer, TellsItsTokens) {
  const Tokenizer& t = chat_tokenizer();
  EXPECT_EQ(t.bos_token(), "<|im_start|>");
  EXPECT_EQ(t.bos_id(), 1);
  EXPECT_EQ(t.eos_token(), "<|im_end|>");
  EXPECT_EQ(t.eos_id(), 2);
  EXPECT_EQ(t.pad_token(), "");
  EXPECT_EQ(t.pad_id(), std::nullopt);
  EXPECT_EQ(t.special_ids(), (Ids{0, 1, 2}));
  EXPECT_TRUE(t.is_special(2));
  EXPECT_FALSE(t.is_special(3));
  EXPECT_FALSE(t.is_special(-1));
  EXPECT_FALSE(t.is_special(1 << 30));
  EXPECT_EQ(t.id_to_token(2), "<|im_end|>");
  EXPECT_EQ(t.id_to_token(-1), std::nullopt);
  EXPECT_EQ(t.id_to_token(t.vocab_size()), std::nullopt);
  EXPECT_EQ(t.token_to_id("<|im_end|>"), 2);
  EXPECT_EQ(t.token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(t.id_to_token(t.vocab_size() - 1).has_value(), true);
  EXPECT_FALSE(t.adds_bos());
}

TEST(Tokenizer, IgnoresIdsThatNoTokenHas) {
  const Tokenizer& t = chat_tokenizer();
  const Ids ids = t.encode("ab");
  Ids holes = {-5};
  holes.insert(holes.end(), ids.begin(), ids.end());
  holes.push_back(1 << 28);
  EXPECT_EQ(t.decode(holes), "ab");
  EXPECT_EQ(stream_decode(t, holes, true), "ab");
}

TEST(Tokenizer, LoadsAFolder) {
  const auto folder = std::filesystem::temp_directory_path() / "mx8_tokenizer_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << golden_tokenizer_json("smollm2");
  std::ofstream(folder / "tokenizer_config.json") << R"({"eos_token": "<|im_end|>"})";
  std::ofstream(folder / "special_tokens_map.json")
      << R"({"bos_token": "<|im_start|>", "eos_token": "<|endoftext|>"})";
  const auto tokenizer = Tokenizer::load(folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);  // tokenizer_config.json comes first

  const auto absent = Tokenizer::load(folder);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  EXPECT_NE(absent.error().message.find("tokenizer.json"), std::string::npos);
}

// H13: a template that writes BOS is encoded without special tokens; a raw prompt gets exactly one.
TEST(Tokenizer, GivesOneBosInChatAndInCompletions) {
  json file = golden_tokenizer_json("llama3");
  const Tokenizer t = load_tokenizer(file, kChatConfig);
  ASSERT_TRUE(t.adds_bos());
  const auto count_bos = [&](const Ids& ids) {
    return std::count(ids.begin(), ids.end(), t.bos_id());
  };
  const Ids chat = t.encode_segments(Spans{{t.bos_token(), true}, {"hello", false}});
  EXPECT_EQ(count_bos(chat), 1);
  EXPECT_EQ(chat.front(), t.bos_id());
  EXPECT_EQ(count_bos(t.encode("hello")), 1);
  EXPECT_EQ(count_bos(t.encode("hello", {.add_special_tokens = false})), 0);
  EXPECT_EQ(t.encode("hello"), chat);
}

TEST(Tokenizer, CallerTextNeverBecomesASpecialToken) {
  const Tokenizer& t = chat_tokenizer();
  struct Row {
    Spans spans;
    Ids special;  // the special ids that must appear, in order
  };
  const Row rows[] = {
      {{{"<|im_start|>", true}, {"<|im_end|>", false}, {"<|im_end|>", true}}, {1, 2}},
      {{{"<|im_end|>", false}}, {}},
      {{{"<|im_", true}, {"end|>", false}}, {}},
      {{{"<|im_", false}, {"end|>", true}}, {}},
      {{{"<|im_", true}, {"end|>", true}}, {2}},
      {{{"<|im_end|", false}, {"<|im_end|>", true}}, {2}},
      {{{"<", false}, {"<|im_end|>", true}, {">", false}}, {2}},
      {{{"", false}, {"<|im_end|>", true}, {"", false}}, {2}},
      {{{"<|im_\xFF", false}, {"end|>", true}}, {}},
      {{}, {}},
  };
  for (const Row& row : rows) {
    std::string whole;
    for (const TextSpan& span : row.spans) whole += span.text;
    SCOPED_TRACE(whole);
    const Ids ids = t.encode_segments(row.spans);
    Ids special;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(special),
                 [&](int32_t id) { return t.is_special(id); });
    EXPECT_EQ(special, row.special);
    std::string valid;
    text::append_lossy(valid, whole, false);
    EXPECT_EQ(t.decode(ids, false), valid);
  }
}

// Tokens that are not special (<tool_call> and the like) are words of the model for everyone.
TEST(Tokenizer, OtherAddedTokensMatchInCallerText) {
  const Tokenizer t = load_tokenizer(golden_tokenizer_json("qwen2"));
  const auto id = t.token_to_id("<sep>");
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(t.encode("<sep>", {.add_special_tokens = false}), Ids{*id});
}

// A special token may also be a word that merges, or ignore_merges, would give.
TEST(Tokenizer, MergesCannotSpellASpecialToken) {
  for (const char* name : {"smollm2", "llama3"}) {
    json file = golden_tokenizer_json(name);
    const int32_t the = file["model"]["vocab"]["\u0120the"];
    const int32_t x = file["model"]["vocab"]["x"];
    for (const auto& [id, text] : {std::pair(the, "\u0120the"), std::pair(x, "x")}) {
      file["added_tokens"].push_back({{"id", id}, {"content", text}, {"special", true}});
    }
    const Tokenizer t = load_tokenizer(file);
    ASSERT_TRUE(t.is_special(the));
    const Ids ids = t.encode("all the x", {.add_special_tokens = false});
    EXPECT_FALSE(has_special(t, ids)) << name;
    EXPECT_EQ(t.decode(ids).substr(0, 7), "all the");
  }
}

TEST(Tokenizer, NormalisedSpecialTokensAlsoNeedTrust) {
  const Tokenizer t = load_tokenizer(golden_tokenizer_json("normalized-added"));
  EXPECT_TRUE(has_special(t, t.encode_segments(Spans{{"<s>", true}, {" hi", false}})));
  EXPECT_FALSE(has_special(t, t.encode_segments(Spans{{"<s>", false}, {" hi", true}})));
}

// H12: the whole of Unicode, each character split over as many tokens as it has bytes.
TEST(Detokenizer, NeverSplitsACharacter) {
  json file = with_all_bytes(golden_tokenizer_json("byte-level-alone"));
  file["model"]["merges"] = json::array();
  const Tokenizer t = load_tokenizer(file);
  std::string text;
  for (uint32_t c = 1; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
    if (c < 0xD800 || c > 0xDFFF) text::append_utf8(text, c);
  }
  const Ids ids = t.encode(text);
  ASSERT_EQ(ids.size(), text.size());
  Detokenizer stream(t);
  std::string out;
  for (const int32_t id : ids) {
    const std::string piece = stream.push(id);
    ASSERT_TRUE(text::is_valid_utf8(piece));
    ASSERT_EQ(piece.find("\uFFFD"), piece == "\uFFFD" ? 0 : std::string::npos);
    out += piece;
  }
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(out, text);
}

TEST(Detokenizer, HandsTextOutAsSoonAsItIsCertain) {
  struct Row {
    const char* tokenizer;
    std::vector<std::string> tokens;
    std::vector<std::string> pieces;  // one a token, then flush
  };
  const Row rows[] = {
      {"byte-level-alone",
       {"\u0120", "\u00e2", "\u0124", "\u00ac", "a"},
       {" ", "", "", "\u20ac", "a", ""}},
      {"byte-level-alone", {"\u00e2", "a"}, {"", "\uFFFDa", ""}},
      {"byte-level-alone", {"\u00e2", "\u0124"}, {"", "", "\uFFFD"}},
      // A leading space is the tokenizer's; bytes wait for the end of their run.
      {"mistral-first", {"\u2581", "\u2581", "a"}, {"", " ", "a", ""}},
      {"mistral-first", {"<0xE2>", "<0x82>", "<0xAC>", "a"}, {"", "", "", "\u20aca", ""}},
      {"mistral-first", {"<0xE2>", "<0x82>", "a"}, {"", "", "\uFFFD\uFFFDa", ""}},
      {"mistral-first", {"<0x41>", "<0xE2>"}, {"", "", "\uFFFD\uFFFD"}},
      {"mistral-first", {"<0x41>", "<0xFF>", "<0x42>"}, {"", "\uFFFD\uFFFD", "\uFFFD", ""}},
      {"metaspace-always", {"\u2581\u2581", "\u2581"}, {"", " ", ""}},
      {"unknown-fused", {"a", "e"}, {"a", " e", ""}},  // no decoder: joined with spaces
  };
  for (const Row& row : rows) {
    const Tokenizer t = load_tokenizer(golden_tokenizer_json(row.tokenizer));
    Detokenizer stream(t, /*skip_special=*/false);
    for (int round = 0; round < 2; ++round) {  // after flush the object is as new
      std::vector<std::string> pieces;
      for (const std::string& token : row.tokens) {
        const auto id = t.token_to_id(token);
        ASSERT_TRUE(id.has_value()) << token;
        pieces.push_back(stream.push(*id));
      }
      pieces.push_back(stream.flush());
      EXPECT_EQ(pieces, row.pieces) << row.tokenizer << " round " << round;
    }
  }
}

TEST(Detokenizer, OutlivesTheTokenizer) {
  auto t = std::make_unique<Tokenizer>(load_tokenizer(golden_tokenizer_json("smollm2")));
  const Ids ids = t->encode("still here");
  Detokenizer stream(*t);
  t.reset();
  std::string out;
  for (const int32_t id : ids) out += stream.push(id);
  EXPECT_EQ(out + stream.flush(), "still here");
}

const std::vector<std::string>& family_names() {
  static const std::vector<std::string> names = {
      "smollm2",       "llama3",           "qwen2",      "mistral-legacy",
      "mistral-first", "metaspace-always", "added-flags"};
  return names;
}

std::string random_text() {
  const auto piece = rc::gen::oneOf(
      rc::gen::string<std::string>(),  // any bytes
      rc::gen::element<std::string>("the ", " of", "\n\n", "   ", "12345", "\u2581", "<s>", "</s>",
                                    "<|im_end|>", "<sep>", "<0xE2>", "e\u0301", "\u65e5\u672c",
                                    "\U0001F44D\U0001F3FD", "'LL", "\xE2\x82", "\u0120"));
  std::string out;
  for (const auto& part : *rc::gen::container<std::vector<std::string>>(piece)) out += part;
  return out;
}

TEST(TokenizerProperty, BytesComeBack) {
  const Tokenizer& t = chat_tokenizer();
  EXPECT_TRUE(rc::check([&] {
    const std::string input = random_text();
    std::string valid;
    text::append_lossy(valid, input, false);
    RC_ASSERT(t.decode(t.encode(input), false) == valid);
    RC_ASSERT(t.decode(t.encode(input, {.parse_special = true}), false) == valid);
  }));
}

TEST(TokenizerProperty, StreamingEqualsWhole) {
  for (const std::string& name : family_names()) {
    const Tokenizer t = load_tokenizer(golden_tokenizer_json(name));
    EXPECT_TRUE(rc::check(name, [&] {
      // Ids of a text with some thrown among them that never occur in one.
      Ids ids = t.encode(random_text(), {.parse_special = true});
      const auto extra =
          *rc::gen::container<Ids>(rc::gen::inRange<int32_t>(-1, t.vocab_size() + 1));
      ids.insert(ids.begin() + static_cast<ptrdiff_t>(ids.size() / 2), extra.begin(), extra.end());
      for (const bool skip : {false, true}) {
        const std::string whole = t.decode(ids, skip);
        RC_ASSERT(stream_decode(t, ids, skip) == whole);
        RC_ASSERT(text::is_valid_utf8(whole));
      }
    }));
  }
}

TEST(TokenizerProperty, UntrustedSpansNeverGiveSpecialTokens) {
  for (const std::string& name : family_names()) {
    const Tokenizer t = load_tokenizer(golden_tokenizer_json(name));
    const auto unk = t.token_to_id("<unk>");
    EXPECT_TRUE(rc::check(name, [&] {
      Spans spans;
      const int n = *rc::gen::inRange(1, 4);
      for (int i = 0; i < n; ++i) spans.push_back({random_text(), false});
      for (const int32_t id : t.encode_segments(spans)) {
        RC_ASSERT(!t.is_special(id) || id == unk);
        RC_ASSERT(id >= 0 && id < t.vocab_size());
      }
    }));
  }
}

TEST(Tokenizer, LongRunsTakeNoQuadraticTime) {
  constexpr size_t kLength = size_t{1} << 19;
  std::string marks = "a";
  for (size_t i = 0; i < kLength / 8; ++i) marks += "\u0301";
  for (size_t i = 0; i < kLength / 8; ++i) marks += "\u0323";
  for (const char* name : {"qwen2", "mistral-legacy", "mistral-first"}) {
    const Tokenizer t = load_tokenizer(golden_tokenizer_json(name));
    for (const std::string& text :
         {std::string(kLength, 'a'), std::string(kLength, ' '), std::string(kLength, '\n'),
          std::string(kLength, '<'), std::string(kLength, '\xFF'), marks}) {
      const Ids ids = t.encode(text, {.parse_special = true});
      EXPECT_FALSE(ids.empty());
      EXPECT_FALSE(t.decode(ids, false).empty());
    }
  }
}

TEST(Tokenizer, ThreadsMayShareIt) {
  const Tokenizer& t = chat_tokenizer();
  const std::string text = "Several threads read the same tables and each has its own cache.";
  const Ids expected = t.encode(text);
  std::vector<std::thread> threads;
  std::array<bool, 4> same{};
  for (size_t i = 0; i < same.size(); ++i) {
    threads.emplace_back([&, i] {
      same[i] = true;
      for (int n = 0; n < 100; ++n) same[i] = same[i] && t.encode(text) == expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(same, (std::array{true, true, true, true}));
}

json tiny() {
  return json::parse(R"({
    "added_tokens": [{"id": 4, "content": "<e>", "special": true}],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<u>": 3}, "merges": ["a b"]}})");
}

TEST(TokenizerErrors, EachBrokenFileGivesOneClearLine) {
  struct Row {
    const char* name;
    std::function<void(json&)> spoil;
    const char* expected;
  };
  const auto set = [](const char* pointer, json value) {
    return [=](json& file) { file[json::json_pointer(pointer)] = value; };
  };
  const auto erase = [](const char* parent, const char* key) {
    return [=](json& file) { file[json::json_pointer(parent)].erase(key); };
  };
  json deep = 1;
  for (int i = 0; i < 100; ++i) deep = json::array({deep});
  const Row rows[] = {
      {"no model", erase("", "model"), "\"model\" is missing"},
      {"model is a list", set("/model", json::array()), "model: "},
      {"other model", set("/model/type", "Unigram"), "model type \"Unigram\" is not supported"},
      {"no vocab", erase("/model", "vocab"), "model has no \"vocab\""},
      {"no merges", erase("/model", "merges"), "model has no \"merges\""},
      {"vocab is a list", set("/model/vocab", json::array()), "model.vocab: "},
      {"id is text", set("/model/vocab/a", "0"), "the id of \"a\" is not a whole number"},
      {"id is a fraction", set("/model/vocab/a", 0.5), "the id of \"a\" is not a whole number"},
      {"negative id", set("/model/vocab/a", -1), "token \"a\" has id -1, outside [0, "},
      {"huge id", set("/model/vocab/a", 4000000000), "has id 4000000000, outside [0, "},
      {"two tokens, one id", set("/model/vocab/a", 1), "id 1 is given to both"},
      {"merge of an unknown token", set("/model/merges/0", "a z"),
       "model.merges[0]: \"z\" is not in the vocabulary"},
      {"merge into an unknown token", set("/model/merges/0", "b a"),
       "makes \"ba\", which is not in the vocabulary"},
      {"merge of three", set("/model/merges/0", "a b c"), "model.merges[0]: not two tokens"},
      {"merge of one", set("/model/merges/0", "a"), "model.merges[0]: not two tokens"},
      {"empty half", set("/model/merges/0", json::array({"", "a"})),
       "model.merges[0]: not two tokens"},
      {"merge is a number", set("/model/merges/0", 7), "model.merges[0]: not two tokens"},
      {"merge of numbers", set("/model/merges/0", json::array({1, 2})), "model.merges[0]: "},
      {"unknown unk", set("/model/unk_token", "<x>"), "unk_token \"<x>\" is not in the vocabulary"},
      {"unk is a number", set("/model/unk_token", 3), "model.unk_token: "},
      {"flag is text", set("/model/byte_fallback", "yes"),
       "model.byte_fallback is not true or false"},
      {"dropout", set("/model/dropout", 0.1), "model.dropout is set, which is not supported"},
      {"suffix", set("/model/end_of_word_suffix", "</w>"), "model.end_of_word_suffix is set"},
      {"added token without id", erase("/added_tokens/0", "id"),
       "added_tokens[0]: \"id\" is missing"},
      {"added token without text", erase("/added_tokens/0", "content"),
       "added_tokens[0]: \"content\" is missing"},
      {"empty added token", set("/added_tokens/0/content", ""), "\"content\" is empty"},
      {"added token's flag", set("/added_tokens/0/special", 1), "\"special\" is not true or false"},
      {"added id taken", set("/added_tokens/0/id", 1),
       "\"<e>\" with id 1 contradicts \"b\" with id 1"},
      {"added text taken", set("/added_tokens/0/content", "ab"),
       "\"ab\" with id 4 contradicts \"ab\" with id 2"},
      {"added twice", set("/added_tokens/1", {{"id", 5}, {"content", "<e>"}}),
       "\"<e>\" with id 5 contradicts \"<e>\" with id 4"},
      {"added id out of range", set("/added_tokens/0/id", -2), "id -2 is outside"},
      {"added tokens are an object", set("/added_tokens", json::object()),
       "added_tokens: not a list"},
      {"unknown normaliser", set("/normalizer", {{"type", "Precompiled"}}),
       "normalizer: type \"Precompiled\" is not supported"},
      {"unknown node in a sequence",
       set("/pre_tokenizer",
           {{"type", "Sequence"}, {"pretokenizers", json::array({{{"type", "Bert"}}})}}),
       "pre_tokenizer.pretokenizers[0]: type \"Bert\" is not supported"},
      {"unknown decoder", set("/decoder", {{"type", "CTC"}}),
       "decoder: type \"CTC\" is not supported"},
      {"unknown post-processor", set("/post_processor", {{"type", "RobertaProcessing"}}),
       "post_processor: type \"RobertaProcessing\" is not supported"},
      {"node without type", set("/decoder", json::object()), "decoder: \"type\" is missing"},
      {"node is a number", set("/decoder", 3), "decoder: not an object"},
      {"sequence without list", set("/decoder", {{"type", "Sequence"}}),
       "decoder: \"decoders\" is missing or not a list"},
      {"split without pattern", set("/pre_tokenizer", {{"type", "Split"}}),
       "pre_tokenizer: \"pattern\" is missing"},
      {"odd behaviour",
       set("/pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"String", "x"}}}, {"behavior", "Odd"}}),
       "\"behavior\" is \"Odd\""},
      {"bad expression",
       set("/pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}}),
       "pre_tokenizer: regular expression"},
      {"two patterns",
       set("/normalizer",
           {{"type", "Replace"}, {"pattern", {{"Regex", "a"}, {"String", "a"}}}, {"content", ""}}),
       "neither just \"String\" nor just \"Regex\""},
      {"group reference",
       set("/normalizer",
           {{"type", "Replace"}, {"pattern", {{"Regex", "(a)"}}}, {"content", "$1"}}),
       "\"content\" with group references"},
      {"long replacement", set("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "__"}}),
       "\"replacement\" is not one character"},
      {"contradicting metaspace",
       set("/pre_tokenizer", {{"type", "Metaspace"},
                              {"replacement", "_"},
                              {"add_prefix_space", false},
                              {"prepend_scheme", "first"}}),
       "contradicts \"prepend_scheme\""},
      {"replace after fuse",
       set("/decoder",
           {{"type", "Sequence"},
            {"decoders",
             json::array({{{"type", "Fuse"}},
                          {{"type", "Replace"}, {"pattern", "a"}, {"content", "b"}}})}}),
       "decoder.decoders[1]: Replace after a node that joins all tokens"},
      {"template without text",
       set("/post_processor", {{"type", "TemplateProcessing"}, {"single", json::array()}}),
       "\"single\" needs Sequence A exactly once"},
      {"template of an unknown token",
       set("/post_processor",
           {{"type", "TemplateProcessing"},
            {"single", json::array({{{"SpecialToken", {{"id", "<x>"}, {"type_id", 0}}}},
                                    {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})}}),
       "\"special_tokens\" has no \"ids\" for \"<x>\""},
      {"template with a wrong id",
       set("/post_processor",
           {{"type", "TemplateProcessing"},
            {"single", json::array({{{"SpecialToken", {{"id", "<x>"}, {"type_id", 0}}}},
                                    {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
            {"special_tokens", {{"<x>", {{"ids", json::array({99})}}}}}}),
       "post_processor: id 99 is no token"},
      {"deep node", set("/normalizer", deep), "normalizer: nested deeper than 64"},
      {"deep added tokens", set("/added_tokens", deep), "added_tokens: nested deeper than 64"},
  };
  ASSERT_TRUE(Tokenizer::from_json(tiny().dump(), {}).ok());
  for (const Row& row : rows) {
    json file = tiny();
    row.spoil(file);
    const auto tokenizer = Tokenizer::from_json(file.dump(), {}, {}, "dir/tokenizer.json");
    ASSERT_FALSE(tokenizer.ok()) << row.name;
    const std::string& message = tokenizer.error().message;
    EXPECT_NE(message.find(row.expected), std::string::npos) << row.name << ": " << message;
    EXPECT_EQ(message.rfind("dir/tokenizer.json: ", 0), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(TokenizerErrors, TextThatIsNoJsonAtAll) {
  const std::string good = tiny().dump();
  const std::string nested = std::string(100000, '[');
  const std::vector<std::string> texts = {
      "",
      " ",
      "null",
      "[]",
      "7",
      "{",
      "{}",
      "version https://git-lfs.github.com/spec/v1\n",
      good.substr(0, good.size() / 2),
      good + "x",
      good + good,
      "\xFF\xFE{}",
      nested,
      "{\"model\": " + nested,
      "{\"normalizer\": " + nested + std::string(100000, ']') + "}",
      R"({"model": {"vocab": {"a": 0}, "merges": []}, "model": {"vocab": {}, "merges": []}})",
      R"({"model": {"vocab": {"a": 0, "a": 1}, "merges": []}})",
      R"({"model": {"vocab": {"a": 0}, "merges": [], "merges": []}})",
      R"({"model": {"vocab": {"a": 99999999999999999999}, "merges": []}})",
  };
  for (const std::string& text : texts) {
    const auto tokenizer = Tokenizer::from_json(text, {});
    ASSERT_FALSE(tokenizer.ok()) << text.substr(0, 100);
    EXPECT_NE(tokenizer.error().message, "");
    EXPECT_LT(tokenizer.error().message.size(), 400u);
    EXPECT_EQ(tokenizer.error().message.find('\n'), std::string::npos);
  }
}

TEST(TokenizerErrors, SideFiles) {
  struct Row {
    const char* config;
    const char* expected;  // empty: loads
  };
  const Row rows[] = {
      {R"({"bos_token": "a", "eos_token": "<e>", "unk_token": "<none>"})", ""},
      {R"({"added_tokens_decoder": {"4": {"content": "<e>"}, "9": {"content": "<n>"}}})", ""},
      {R"({"eos_token": "<none>"})", "eos_token \"<none>\" is not a token of tokenizer.json"},
      {R"({"bos_token": 1})", "\"bos_token\" is neither a string"},
      {R"({"added_tokens_decoder": {"x": {"content": "<n>"}}})", "the key is not a token id"},
      {R"({"added_tokens_decoder": {"4": {"content": "<n>"}}})", "contradicts \"<e>\""},
      {R"({"added_tokens_decoder": []})", "is not an object"},
      {"[]", "tokenizer_config.json: not an object"},
      {"{", "tokenizer_config.json: not valid JSON"},
  };
  for (const Row& row : rows) {
    const auto tokenizer = Tokenizer::from_json(tiny().dump(), row.config);
    ASSERT_EQ(tokenizer.ok(), *row.expected == '\0') << row.config;
    if (tokenizer.ok()) continue;
    EXPECT_NE(tokenizer.error().message.find(row.expected), std::string::npos)
        << tokenizer.error().message;
    EXPECT_EQ(tokenizer.error().message.rfind("tokenizer_config.json", 0), 0u);
  }
  const auto holes = Tokenizer::from_json(tiny().dump(), rows[1].config);
  EXPECT_EQ(holes.value().vocab_size(), 10);
  EXPECT_EQ(holes.value().token_to_id("<n>"), 9);
  EXPECT_EQ(holes.value().id_to_token(7), std::nullopt);
}

// A role token that the model knows as a word is special once tokenizer_config.json names it.
TEST(Tokenizer, RoleTokensAreSpecial) {
  const Tokenizer t = load_tokenizer(tiny(), R"({"eos_token": "<u>"})");
  EXPECT_TRUE(t.is_special(3));
  EXPECT_EQ(t.encode("<u>", {.parse_special = true}), Ids{3});
  EXPECT_EQ(t.encode("<u>"), Ids{});  // no unknown token: characters without a token are dropped
}

}  // namespace
}  // namespace mx8
