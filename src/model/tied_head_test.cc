// The head and the embedding table: tie_word_embeddings x a stored head x the head in the ignore
// list of a quantised checkpoint. Right logits or one line that says what is wrong, for each.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "model/raw_checkpoint.h"
#include "model/test_support.h"
#include "mx/bf16.h"
#include "mx/block.h"

namespace mx8::test {
namespace {

const std::vector<int32_t> kIds = {3, 17, 99, 42, 5, 64, 127, 8};
constexpr const char* kHead = "lm_head.weight";
constexpr const char* kTable = "model.embed_tokens.weight";

// A quantised checkpoint whose plain head and table hold the same numbers.
RawCheckpoint same_head_and_table() {
  RawCheckpoint checkpoint = read_checkpoint(data_folder("checkpoints/ct_w8a16"));
  checkpoint.tensors[kHead] = checkpoint.tensors.at(kTable);
  return checkpoint;
}

void quantise_head(RawCheckpoint& checkpoint) {
  const RawTensor plain = checkpoint.tensors.at(kHead);
  std::vector<float> values(plain.bytes.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = bf16_to_f32(reinterpret_cast<const uint16_t*>(plain.bytes.data())[i]);
  }
  const MxMatrix mx =
      mx_quantize(values.data(), plain.shape[0], plain.shape[1], plain.shape[1], ScaleRule::kRceil);
  const auto bytes = [](const std::vector<uint8_t>& v) {
    const auto* first = reinterpret_cast<const std::byte*>(v.data());
    return std::vector<std::byte>(first, first + v.size());
  };
  checkpoint.tensors[kHead] = {DType::kF8E4M3, plain.shape, bytes(mx.codes)};
  checkpoint.tensors["lm_head.weight_scale"] = {
      DType::kU8, {plain.shape[0], plain.shape[1] / kMxBlock}, bytes(mx.scales)};
}

void empty_ignore_list(RawCheckpoint& checkpoint) {
  const size_t place = checkpoint.config.find("\"lm_head\"");
  ASSERT_NE(place, std::string::npos);
  checkpoint.config.erase(place, std::string("\"lm_head\"").size());
}

struct Loaded {
  std::vector<float> logits;
  std::string summary;
  size_t bytes = 0;
  std::string error;
};

Loaded load(const RawCheckpoint& checkpoint, const OnlineQuant& online = {}) {
  const TempFolder folder;
  write_checkpoint(checkpoint, folder.path());
  Machine machine;
  const auto model = load_folder(folder.path(), machine, {.online = online});
  if (!model.ok()) return {.error = model.error().message};
  return {Session(*model.value(), machine, DType::kF32).feed(kIds, kIds.size()),
          join(model.value()->summary(), "; "), model.value()->resident_bytes(), ""};
}

enum class Outcome { kPlainHead, kQuantisedHead, kError };

struct Case {
  bool tied;
  enum { kNotStored, kPlain, kQuantised, kOther } head;
  bool ignored;
  Outcome outcome;
  std::string named;  // in the error
};

const Case kCases[] = {
    {true, Case::kNotStored, true, Outcome::kPlainHead, ""},
    {true, Case::kNotStored, false, Outcome::kPlainHead, ""},
    {true, Case::kPlain, true, Outcome::kPlainHead, ""},
    {true, Case::kPlain, false, Outcome::kPlainHead, ""},
    {true, Case::kQuantised, true, Outcome::kError, "lm_head"},
    {true, Case::kQuantised, false, Outcome::kQuantisedHead, ""},
    {true, Case::kOther, true, Outcome::kError, "tie_word_embeddings"},
    {true, Case::kOther, false, Outcome::kError, "tie_word_embeddings"},
    {false, Case::kNotStored, true, Outcome::kError, "lm_head.weight"},
    {false, Case::kNotStored, false, Outcome::kError, "lm_head.weight"},
    {false, Case::kPlain, true, Outcome::kPlainHead, ""},
    {false, Case::kPlain, false, Outcome::kPlainHead, ""},  // only its class was meant
    {false, Case::kQuantised, true, Outcome::kError, "lm_head"},
    {false, Case::kQuantised, false, Outcome::kQuantisedHead, ""},
};

TEST(TiedHead, EveryCombinationIsRightOrRefused) {
  // What the heads must give, from the two cases that leave no doubt.
  const Loaded plain = load(same_head_and_table());
  ASSERT_EQ(plain.error, "");
  RawCheckpoint quantised_checkpoint = same_head_and_table();
  quantise_head(quantised_checkpoint);
  empty_ignore_list(quantised_checkpoint);
  const Loaded quantised = load(quantised_checkpoint);
  ASSERT_EQ(quantised.error, "");
  ASSERT_NE(plain.logits, quantised.logits);

  for (const Case& c : kCases) {
    RawCheckpoint checkpoint = same_head_and_table();
    set_field(checkpoint, "tie_word_embeddings", c.tied ? "true" : "false");
    if (!c.ignored) empty_ignore_list(checkpoint);
    if (c.head == Case::kNotStored) checkpoint.tensors.erase(kHead);
    if (c.head == Case::kQuantised) quantise_head(checkpoint);
    if (c.head == Case::kOther) checkpoint.tensors.at(kHead).bytes[1] ^= std::byte{0x80};
    const Loaded loaded = load(checkpoint);
    const std::string what =
        str_cat("tied ", c.tied, ", head ", int{c.head}, ", ignored ", c.ignored);
    if (c.outcome == Outcome::kError) {
      EXPECT_NE(loaded.error.find(c.named), std::string::npos) << what << ": " << loaded.error;
      continue;
    }
    ASSERT_EQ(loaded.error, "") << what;
    EXPECT_EQ(loaded.logits, c.outcome == Outcome::kPlainHead ? plain.logits : quantised.logits)
        << what;
  }
}

TEST(TiedHead, OneMatrixServesBothEnds) {
  const RawCheckpoint untied = same_head_and_table();
  RawCheckpoint tied = untied;
  set_field(tied, "tie_word_embeddings", "true");
  tied.tensors.erase(kHead);
  const Loaded two = load(untied);
  const Loaded one = load(tied);
  EXPECT_EQ(one.logits, two.logits);
  EXPECT_EQ(two.bytes - one.bytes, untied.tensors.at(kTable).bytes.size());
}

// A quantised head of a tied model is made from the table, which stays as it is.
TEST(TiedHead, QuantisationAtLoadMakesAHeadOfItsOwn) {
  RawCheckpoint checkpoint = read_checkpoint(data_folder("checkpoints/base"));
  checkpoint.tensors[kHead] = checkpoint.tensors.at(kTable);
  const OnlineQuant online = {.enabled = true, .include = {"lm_head"}};
  const Loaded untied = load(checkpoint, online);
  ASSERT_EQ(untied.error, "");
  set_field(checkpoint, "tie_word_embeddings", "true");
  const Loaded with_copy = load(checkpoint, online);
  checkpoint.tensors.erase(kHead);
  const Loaded tied = load(checkpoint, online);
  EXPECT_EQ(with_copy.logits, untied.logits) << with_copy.error;
  EXPECT_EQ(tied.logits, untied.logits) << tied.error;
  EXPECT_NE(tied.summary.find("lm_head mxfp8"), std::string::npos) << tied.summary;
}

TEST(TiedHead, TableAndHeadMayBeQuantisedTogether) {
  RawCheckpoint checkpoint = read_checkpoint(data_folder("checkpoints/base"));
  set_field(checkpoint, "tie_word_embeddings", "true");
  checkpoint.tensors.erase(kHead);
  const Loaded both =
      load(checkpoint, {.enabled = true, .include = {"lm_head", "model.embed_tokens"}});
  ASSERT_EQ(both.error, "");
  EXPECT_NE(both.summary.find("lm_head mxfp8"), std::string::npos) << both.summary;
  EXPECT_EQ(both.summary.find("embeddings"), std::string::npos) << both.summary;
}

}  // namespace
}  // namespace mx8::test
