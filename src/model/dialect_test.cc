// One model in every dialect, dtype and load mode: the same weights give the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/test_support.h"

namespace mx8::test {
namespace {

Golden golden(const std::string& file) {
  return read_goldens(data_folder("checkpoints/" + file))[1];
}

// The logits for the prompt of goldens.safetensors.
Result<std::vector<float>> logits_of(const std::string& folder, const ModelOptions& options = {}) {
  Machine machine;
  MX8_TRY(const auto model, load_folder(folder, machine, options));
  const std::vector<int32_t> ids = golden("goldens.safetensors").ids;
  return Session(*model, machine, DType::kF32).feed(ids, ids.size());
}

Result<std::vector<float>> logits_of_fixture(const std::string& name,
                                             const ModelOptions& options = {}) {
  return logits_of(data_folder("checkpoints/" + name), options);
}

void expect_near(const std::vector<float>& logits, const Golden& golden) {
  ASSERT_EQ(logits.size(), golden.logits.size());
  double squares = 0, largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    squares += double{golden.logits[i]} * golden.logits[i];
    largest = std::max(largest, std::fabs(double{logits[i]} - golden.logits[i]));
  }
  EXPECT_LT(largest, 2e-3 * std::sqrt(squares / static_cast<double>(logits.size())));
}

class Dialect : public testing::TestWithParam<std::string> {};

TEST_P(Dialect, GivesTheSameLogits) {
  const bool plain = GetParam().starts_with("base");
  const auto logits = logits_of_fixture(GetParam());
  ASSERT_TRUE(logits.ok()) << logits.error().message;
  const auto reference = logits_of_fixture(plain ? "base" : "ct_w8a16");
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  EXPECT_EQ(logits.value(), reference.value());
  if (!plain) expect_near(logits.value(), golden("goldens.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Dialect,
                         testing::ValuesIn(folders_in(data_folder("checkpoints"))),
                         [](const auto& p) { return p.param; });

TEST(Dialects, PlainMatchesTransformersToo) {
  Machine machine;
  const auto model = load_folder(data_folder("checkpoints/base"), machine);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Golden base = golden("goldens_base.safetensors");
  expect_near(Session(*model.value(), machine, DType::kF32).feed(base.ids, base.ids.size()), base);
}

TEST(Dialects, PlainAndQuantisedDiffer) {
  const auto plain = logits_of_fixture("base");
  const auto quantised = logits_of_fixture("ct_w8a16");
  ASSERT_TRUE(plain.ok() && quantised.ok());
  EXPECT_NE(plain.value(), quantised.value());
}

TEST(Dialects, QuantisationAtLoadEqualsTheStoredModel) {
  const auto stored = logits_of_fixture("ct_w8a16");
  ASSERT_TRUE(stored.ok()) << stored.error().message;
  for (const char* name : {"base", "base_f16", "base_f32"}) {
    const auto online = logits_of_fixture(name, {.online = {.enabled = true}});
    ASSERT_TRUE(online.ok()) << online.error().message;
    EXPECT_EQ(online.value(), stored.value()) << name;
  }
}

TEST(Dialects, LoadModesAgree) {
  for (const char* name : {"base", "ct_sharded", "mxfp8_scale_inv"}) {
    const auto mapped = logits_of_fixture(name, {.mode = LoadMode::kMmap});
    const auto read = logits_of_fixture(name, {.mode = LoadMode::kRead});
    ASSERT_TRUE(mapped.ok() && read.ok()) << name;
    EXPECT_EQ(mapped.value(), read.value()) << name;
  }
}

// Tiny folders whose weights are stored quantised, and the plain ones that they were made from.
TEST(Dialects, QuantisationAtLoadOfEveryFamily) {
  const std::vector<std::string> names = folders_in(data_folder("tiny"));
  int compared = 0;
  for (const std::string& name : names) {
    if (std::find(names.begin(), names.end(), name + "_mxfp8") == names.end()) continue;
    const auto online = logits_of(data_folder("tiny/" + name), {.online = {.enabled = true}});
    const auto stored = logits_of(data_folder("tiny/" + name + "_mxfp8"));
    ASSERT_TRUE(online.ok()) << online.error().message;
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(online.value(), stored.value()) << name;
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

}  // namespace
}  // namespace mx8::test
