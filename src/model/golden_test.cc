// Tiny models of every family against Transformers' FP32 logits, and against themselves: however
// the tokens of a sequence are fed, and whatever runs beside it, its logits are the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/test_support.h"

namespace mx8::test {
namespace {

// Of the standard deviation of the logits.
constexpr double kF32Bound = 2e-3;
constexpr double kBf16Bound = 0.05;

std::vector<std::string> tiny_models() {
  std::vector<std::string> names = folders_in(data_folder("tiny"));
  std::erase(names, "llama_gelu");  // refused: config_test.cc
  return names;
}

double standard_deviation(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += double{v} * v;
  }
  const double n = static_cast<double>(values.size());
  return std::sqrt(squares / n - (sum / n) * (sum / n));
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - b[i]);
    largest = difference <= largest ? largest : difference;  // NaN counts
  }
  return largest;
}

class TinyModel : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return data_folder("tiny/" + GetParam()); }

  std::unique_ptr<Model> load(Machine& machine) const {
    auto model = load_folder(folder(), machine);
    if (!model.ok()) {
      ADD_FAILURE() << model.error().message;
      return nullptr;
    }
    return std::move(model).value();
  }
};

void expect_near_goldens(Model& model, Machine& machine, DType kv, double bound,
                         const std::string& folder) {
  const std::vector<Golden> goldens = read_goldens(folder + "/goldens.safetensors");
  ASSERT_EQ(goldens.size(), 2u);
  for (const Golden& golden : goldens) {
    Session session(model, machine, kv);
    const std::vector<float> logits = session.feed(golden.ids, golden.ids.size());
    const double ratio =
        largest_difference(logits, golden.logits) / standard_deviation(golden.logits);
    EXPECT_LT(ratio, bound) << golden.ids.size() << " tokens";
    testing::Test::RecordProperty(std::string(dtype_name(kv)), std::to_string(ratio));
  }
}

TEST_P(TinyModel, MatchesTransformersWithF32Cache) {
  for (const std::string isa : {"", "scalar"}) {
    SCOPED_TRACE(isa.empty() ? "best" : isa);
    Machine machine(2, isa);
    const auto model = load(machine);
    ASSERT_NE(model, nullptr);
    expect_near_goldens(*model, machine, DType::kF32, kF32Bound, folder());
  }
}

TEST_P(TinyModel, StaysNearTransformersWithBf16Cache) {
  Machine machine;
  const auto model = load(machine);
  ASSERT_NE(model, nullptr);
  expect_near_goldens(*model, machine, DType::kBF16, kBf16Bound, folder());
}

TEST_P(TinyModel, DecodesWhatTransformersDecodes) {
  Machine machine;
  const auto model = load(machine);
  ASSERT_NE(model, nullptr);
  const size_t vocab = static_cast<size_t>(model->shape().vocab);
  for (const Golden& golden : read_goldens(folder() + "/goldens.safetensors")) {
    Session session(*model, machine, DType::kF32);
    std::vector<float> logits = session.feed(golden.ids, golden.ids.size());
    std::vector<int32_t> tail;
    while (tail.size() < golden.greedy.size()) {
      const auto last = logits.end() - static_cast<ptrdiff_t>(vocab);
      tail.push_back(static_cast<int32_t>(std::max_element(last, logits.end()) - last));
      logits = session.feed({tail.back()}, 1);
    }
    EXPECT_EQ(tail, golden.greedy);
  }
}

TEST_P(TinyModel, ChunksGiveTheSameBits) {
  Machine machine;
  const auto model = load(machine);
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> ids = read_goldens(folder() + "/goldens.safetensors")[1].ids;
  for (const DType kv : {DType::kF32, DType::kBF16}) {
    const std::vector<float> whole = Session(*model, machine, kv).feed(ids, ids.size());
    for (const size_t chunk : {1, 5, 16}) {
      EXPECT_EQ(Session(*model, machine, kv).feed(ids, chunk), whole)
          << dtype_name(kv) << ", chunks of " << chunk;
    }
    EXPECT_EQ(Session(*model, machine, kv, 1, /*page_size=*/4).feed(ids, ids.size()), whole)
        << "other pages";
    Machine one(/*threads=*/1);
    EXPECT_EQ(Session(*model, one, kv).feed(ids, 7), whole) << "one thread";
  }
}

// A sequence in prefill, one in the middle of a chunked prefill and one that decodes share a step.
TEST_P(TinyModel, NeighboursDoNotChangeASequence) {
  Machine machine;
  const auto model = load(machine);
  ASSERT_NE(model, nullptr);
  const size_t vocab = static_cast<size_t>(model->shape().vocab);
  const std::vector<Golden> goldens = read_goldens(folder() + "/goldens.safetensors");
  const std::vector<int32_t>& a = goldens[0].ids;
  const std::vector<int32_t>& b = goldens[1].ids;
  const auto part = [](const std::vector<int32_t>& ids, size_t from, size_t to) {
    return std::vector<int32_t>(ids.begin() + static_cast<ptrdiff_t>(from),
                                ids.begin() + static_cast<ptrdiff_t>(to));
  };
  const std::vector<float> alone_a = Session(*model, machine, DType::kBF16).feed(a, a.size());
  const std::vector<float> alone_b = Session(*model, machine, DType::kBF16).feed(b, b.size());

  Session session(*model, machine, DType::kBF16, /*sequences=*/3);
  session.step({{0, part(a, 0, a.size() - 1)}, {1, part(b, 0, 10)}});
  const std::vector<float> mixed =
      session.step({{1, part(b, 10, 20)}, {0, part(a, a.size() - 1, a.size())}, {2, b}});

  const auto rows = [vocab](const std::vector<float>& logits, size_t from, size_t to) {
    return std::vector<float>(logits.begin() + static_cast<ptrdiff_t>(from * vocab),
                              logits.begin() + static_cast<ptrdiff_t>(to * vocab));
  };
  EXPECT_EQ(rows(mixed, 0, 10), rows(alone_b, 10, 20));
  EXPECT_EQ(rows(mixed, 10, 11), rows(alone_a, a.size() - 1, a.size()));
  EXPECT_EQ(rows(mixed, 11, 11 + b.size()), alone_b);
}

INSTANTIATE_TEST_SUITE_P(Tiny, TinyModel, testing::ValuesIn(tiny_models()),
                         [](const auto& p) { return p.param; });

// The test of the test: the bound tells two models apart that differ in one field of the config.
TEST(TinyModel, BoundNoticesAWrongRopeScaling) {
  Machine machine;
  const auto model = load_folder(data_folder("tiny/llama"), machine);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Golden golden = read_goldens(data_folder("tiny/llama_rope_linear/goldens.safetensors"))[1];
  const std::vector<float> logits =
      Session(*model.value(), machine, DType::kF32).feed(golden.ids, golden.ids.size());
  EXPECT_GT(largest_difference(logits, golden.logits) / standard_deviation(golden.logits),
            10 * kBf16Bound);
}

TEST(Forward, AllocatesNoWorkspaceAfterWarmUp) {
  Machine machine;
  const auto model = load_folder(data_folder("tiny/qwen2_moe_mxfp8"), machine);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::vector<int32_t> ids(24, 7);
  Session session(*model.value(), machine, DType::kBF16);
  session.feed(ids, ids.size());
  const size_t capacity = machine.arena.capacity();
  session.feed(ids, 8);
  session.feed(ids, 1);
  EXPECT_EQ(machine.arena.capacity(), capacity);
}

}  // namespace
}  // namespace mx8::test
