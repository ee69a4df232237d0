#include "ops/attention.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "mx/bf16.h"
#include "ops/op_test_util.h"

namespace mx8 {
namespace {

using test::ExecOwner;
using test::first_difference;
using test::isas_here;
using test::kInf;
using test::kNan;
using test::normal_floats;

struct Case {
  int heads;
  int kv_heads;
  int head_dim;
  int window;
  int page_size;
  DType dtype;
  std::vector<int> lengths;  // of the sequences
};

std::string name_of(const Case& c) {
  std::ostringstream s;
  s << c.heads << "/" << c.kv_heads << " heads of " << c.head_dim << ", window " << c.window
    << ", pages of " << c.page_size << ", " << dtype_name(c.dtype) << ", lengths";
  for (int n : c.lengths) s << " " << n;
  return s.str();
}

// Every token of some sequences: rows of q, k and v.
struct Tokens {
  std::vector<std::vector<float>> q, k, v;

  Tokens(const Case& c, uint32_t seed) {
    for (size_t s = 0; s < c.lengths.size(); ++s) {
      const auto at = seed * 1000 + static_cast<uint32_t>(s) * 3;
      q.push_back(normal_floats(int64_t{c.lengths[s]} * c.heads * c.head_dim, at, 2.0f));
      k.push_back(normal_floats(int64_t{c.lengths[s]} * c.kv_heads * c.head_dim, at + 1));
      v.push_back(normal_floats(int64_t{c.lengths[s]} * c.kv_heads * c.head_dim, at + 2));
    }
  }
};

// One step: how many new tokens of which sequences, in the order of the batch.
struct Part {
  int sequence;
  int tokens;
};
using Schedule = std::vector<std::vector<Part>>;

// Runs steps over a paged cache whose unused memory is NaN and collects the rows of each sequence.
class Runner {
 public:
  Runner(const Case& c, const Tokens& tokens, CpuIsa isa, int threads)
      : c_(c),
        tokens_(tokens),
        owner_(isa, threads),
        attention_({c.heads, c.kv_heads, c.head_dim,
                    1.0f / std::sqrt(static_cast<float>(c.head_dim)), c.window}),
        done_(c.lengths.size(), 0) {
    int pages = 3;
    max_pages_ = 1;
    for (int n : c.lengths) {
      const int used = (n + c.page_size - 1) / c.page_size;
      max_pages_ = std::max(max_pages_, used);
      pages += used;
    }
    // Entries past a sequence's own pages are poison too.
    table_.assign(c.lengths.size() * static_cast<size_t>(max_pages_), -1'000'000);
    std::vector<int32_t> free(static_cast<size_t>(pages));
    std::iota(free.begin(), free.end(), 0);
    std::shuffle(free.begin(), free.end(), std::mt19937(7));
    for (size_t s = 0; s < c.lengths.size(); ++s) {
      const int used = (c.lengths[s] + c.page_size - 1) / c.page_size;
      for (int p = 0; p < used; ++p) {
        table_[s * static_cast<size_t>(max_pages_) + static_cast<size_t>(p)] = free.back();
        free.pop_back();
      }
      out_.emplace_back(tokens.q[s].size(), kNan);
    }
    const size_t cells = static_cast<size_t>(pages) * static_cast<size_t>(c.page_size) *
                         static_cast<size_t>(c.kv_heads * c.head_dim);
    const size_t bytes = cells * static_cast<size_t>(dtype_size(c.dtype));
    keys_.assign(bytes, 0xFF);  // NaN in BF16 and in F32
    values_.assign(bytes, 0xFF);
  }

  void step(const std::vector<Part>& parts) {
    std::vector<int32_t> q_start = {0}, context, pages, slots;
    std::vector<float> q, k, v;
    const int q_cols = c_.heads * c_.head_dim;
    const int kv_cols = c_.kv_heads * c_.head_dim;
    for (const Part& part : parts) {
      const auto s = static_cast<size_t>(part.sequence);
      const int32_t* row = table_.data() + s * static_cast<size_t>(max_pages_);
      for (int p = done_[s]; p < done_[s] + part.tokens; ++p) {
        slots.push_back(row[p / c_.page_size] * c_.page_size + p % c_.page_size);
      }
      const auto append = [&](std::vector<float>& to, const std::vector<float>& from, int cols) {
        to.insert(to.end(), from.begin() + int64_t{done_[s]} * cols,
                  from.begin() + int64_t{done_[s] + part.tokens} * cols);
      };
      append(q, tokens_.q[s], q_cols);
      append(k, tokens_.k[s], kv_cols);
      append(v, tokens_.v[s], kv_cols);
      done_[s] += part.tokens;
      q_start.push_back(q_start.back() + part.tokens);
      context.push_back(done_[s]);
      pages.insert(pages.end(), row, row + max_pages_);
    }
    const int64_t m = q_start.back();
    std::vector<float> out(static_cast<size_t>(m * q_cols), kNan);
    const AttentionBatch batch = {q_start, context, pages, max_pages_, slots};
    const KvLayer layer = {keys_.data(), values_.data(), c_.dtype,
                           c_.page_size, c_.kv_heads,    c_.head_dim};
    attention_.plan(batch, owner_.pool.size());
    attention_.run(owner_.exec, batch, Mat::f32(q.data(), m, q_cols),
                   Mat::f32(k.data(), m, kv_cols), Mat::f32(v.data(), m, kv_cols), layer,
                   Mat::f32(out.data(), m, q_cols));
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto s = static_cast<size_t>(parts[i].sequence);
      std::copy(out.begin() + int64_t{q_start[i]} * q_cols,
                out.begin() + int64_t{q_start[i + 1]} * q_cols,
                out_[s].begin() + int64_t{done_[s] - parts[i].tokens} * q_cols);
    }
  }

  std::vector<std::vector<float>> run(const Schedule& schedule) {
    for (const auto& parts : schedule) step(parts);
    return out_;
  }

 private:
  const Case& c_;
  const Tokens& tokens_;
  ExecOwner owner_;
  PagedAttention attention_;
  std::vector<int> done_;
  int max_pages_;
  std::vector<int32_t> table_;
  std::vector<uint8_t> keys_, values_;
  std::vector<std::vector<float>> out_;
};

Schedule all_at_once(const Case& c) {
  Schedule schedule(1);
  for (size_t s = 0; s < c.lengths.size(); ++s) {
    schedule[0].push_back({static_cast<int>(s), c.lengths[s]});
  }
  return schedule;
}

// Steps that bring every sequence forward by a random number of tokens, or not at all.
Schedule random_schedule(const Case& c, uint32_t seed, int most) {
  std::mt19937 rng(seed);
  std::vector<int> left = c.lengths;
  Schedule schedule;
  while (*std::max_element(left.begin(), left.end()) > 0) {
    std::vector<Part> parts;
    for (size_t s = 0; s < left.size(); ++s) {
      if (left[s] == 0 || rng() % 3 == 0) continue;
      const int n = std::min(left[s], 1 + static_cast<int>(rng() % static_cast<uint32_t>(most)));
      parts.push_back({static_cast<int>(s), n});
      left[s] -= n;
    }
    std::shuffle(parts.begin(), parts.end(), rng);
    if (!parts.empty()) schedule.push_back(parts);
  }
  return schedule;
}

// FP64 attention of one row over the cache's rounded keys and values.
std::vector<double> expected_row(const Case& c, const Tokens& t, size_t s, int position, int head) {
  const auto rounded = [&](float x) {
    return c.dtype == DType::kF32 ? double{x} : double{bf16_to_f32(f32_to_bf16(x))};
  };
  const int dim = c.head_dim;
  const int kv_head = head / (c.heads / c.kv_heads);
  const float* q = t.q[s].data() + (int64_t{position} * c.heads + head) * dim;
  const int lo = c.window > 0 ? std::max(0, position - c.window + 1) : 0;
  std::vector<double> p, out(static_cast<size_t>(dim), 0.0);
  double max = -1e300, sum = 0;
  for (int j = lo; j <= position; ++j) {
    const float* k = t.k[s].data() + (int64_t{j} * c.kv_heads + kv_head) * dim;
    double dot = 0;
    for (int d = 0; d < dim; ++d) dot += double{q[d]} * rounded(k[d]);
    p.push_back(dot / std::sqrt(static_cast<double>(dim)));
    max = std::max(max, p.back());
  }
  for (double& x : p) sum += x = std::exp(x - max);
  for (int j = lo; j <= position; ++j) {
    const float* v = t.v[s].data() + (int64_t{j} * c.kv_heads + kv_head) * dim;
    for (int d = 0; d < dim; ++d) {
      out[static_cast<size_t>(d)] += p[static_cast<size_t>(j - lo)] / sum * rounded(v[d]);
    }
  }
  return out;
}

// The largest error over all rows. Values are of size 1, so this is relative to them.
double worst_error(const Case& c, const Tokens& t, const std::vector<std::vector<float>>& out) {
  double worst = 0;
  for (size_t s = 0; s < c.lengths.size(); ++s) {
    // Every row of short sequences, some of long ones; 11 meets every place in a block.
    const int stride = c.lengths[s] > 48 ? 11 : 1;
    for (int p = c.lengths[s] - 1; p >= 0; p -= stride) {
      for (int h = 0; h < c.heads; ++h) {
        const auto expected = expected_row(c, t, s, p, h);
        for (int d = 0; d < c.head_dim; ++d) {
          const double got =
              out[s]
                 [(static_cast<size_t>(p) * static_cast<size_t>(c.heads) + static_cast<size_t>(h)) *
                      static_cast<size_t>(c.head_dim) +
                  static_cast<size_t>(d)];
          const double error = std::abs(got - expected[static_cast<size_t>(d)]);
          if (!(error <= worst)) worst = error;  // NaN sticks
        }
      }
    }
  }
  return worst;
}

void expect_same(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b,
                 const Case& c, const std::string& what) {
  for (size_t s = 0; s < a.size(); ++s) {
    EXPECT_EQ(first_difference(a[s], b[s]), -1) << name_of(c) << "; sequence " << s << ", " << what;
  }
}

const DType kBf16 = DType::kBF16;
const DType kF32 = DType::kF32;

const Case kCases[] = {
    {9, 3, 64, 0, 16, kBf16, {1, 2, 15, 16, 17, 31, 32, 33, 100}},
    {3, 1, 16, 0, 16, kF32, {300, 1, 257, 256}},
    {1, 1, 16, 0, 16, kBf16, {7, 40}},
    {2, 1, 32, 0, 32, kF32, {65, 3}},
    {4, 4, 80, 0, 16, kBf16, {35, 70}},
    {6, 2, 96, 0, 64, kF32, {129}},
    {8, 1, 128, 0, 16, kBf16, {40, 5}},
    {3, 3, 256, 0, 16, kBf16, {70}},
    {5, 5, 64, 1, 16, kBf16, {20, 40}},
    {9, 3, 64, 24, 16, kBf16, {90, 33, 1}},
    {2, 1, 16, 300, 48, kF32, {600}},
    {3, 1, 64, 0, 1, kBf16, {37, 12}},
    {4, 2, 32, 10, 5, kF32, {37, 64}},
    {4, 2, 24, 0, 16, kBf16, {37, 64}},  // head sizes that vectors of 16 don't divide
    {2, 2, 7, 0, 8, kF32, {37}},
    {16, 2, 16, 0, 128, kBf16, {140}},
    {2, 1, 64, 0, 16, kBf16, {1100}},  // several segments
};

// The best row of kernels; the next test shows that the others have its bits.
TEST(Attention, MatchesFp64) {
  for (const Case& c : kCases) {
    const Tokens tokens(c, 1);
    const auto out = Runner(c, tokens, isas_here().back(), 1).run(all_at_once(c));
    EXPECT_LT(worst_error(c, tokens, out), 3e-6) << name_of(c);
  }
}

TEST(Attention, AllRowsOfKernelsAgreeBitForBit) {
  for (const Case& c : kCases) {
    const Tokens tokens(c, 2);
    const auto expected = Runner(c, tokens, CpuIsa::kScalar, 1).run(all_at_once(c));
    for (CpuIsa isa : isas_here()) {
      const std::string name(cpu_isa_name(isa));
      expect_same(expected, Runner(c, tokens, isa, 1).run(random_schedule(c, 5, 40)), c,
                  name + " in chunks");
      if (isa == CpuIsa::kScalar) continue;
      expect_same(expected, Runner(c, tokens, isa, 1).run(all_at_once(c)), c, name);
    }
  }
}

TEST(Attention, BitsDoNotDependOnBatchChunksOrThreads) {
  const Case cases[] = {{9, 3, 32, 0, 16, kBf16, {1, 2, 31, 33, 64, 65, 100}},
                        {9, 3, 64, 24, 16, kF32, {90, 33, 1}},
                        {2, 1, 16, 0, 16, kBf16, {530, 270, 3}}};
  for (const Case& c : cases) {
    const Tokens tokens(c, 3);
    Schedule alone;
    for (size_t s = 0; s < c.lengths.size(); ++s) {
      alone.push_back({{static_cast<int>(s), c.lengths[s]}});
    }
    for (CpuIsa isa : isas_here()) {
      const auto expected = Runner(c, tokens, isa, 1).run(all_at_once(c));
      for (int threads : {1, 2, 3}) {
        const std::string name = std::string(cpu_isa_name(isa)) + " on " + std::to_string(threads);
        expect_same(expected, Runner(c, tokens, isa, threads).run(random_schedule(c, 11, 70)), c,
                    name + ", chunks");
        if (threads == 1) continue;
        expect_same(expected, Runner(c, tokens, isa, threads).run(all_at_once(c)), c, name);
      }
      expect_same(expected, Runner(c, tokens, isa, 2).run(alone), c, "alone");
      expect_same(expected, Runner(c, tokens, isa, 2).run(random_schedule(c, 13, 1)), c,
                  "token by token");
    }
  }
}

RC_GTEST_PROP(Attention, AnyShapeAndScheduleGivesTheBitsOfTheTwin, ()) {
  const int group = *rc::gen::inRange(1, 8);
  const int kv_heads = *rc::gen::inRange(1, 3);
  Case c = {group * kv_heads,
            kv_heads,
            *rc::gen::element(16, 32, 48, 64),
            *rc::gen::element(0, 0, 1, 5, 33, 65),
            *rc::gen::element(3, 8, 16, 32, 48),
            *rc::gen::element(kBf16, kF32),
            {}};
  c.lengths = *rc::gen::container<std::vector<int>>(*rc::gen::inRange<size_t>(1, 3),
                                                    rc::gen::inRange(1, 70));
  const auto seed = *rc::gen::inRange<uint32_t>(0, 1000);
  const int most = *rc::gen::element(1, 3, 20, 200);
  const Tokens tokens(c, seed);
  const auto expected = Runner(c, tokens, CpuIsa::kScalar, 1).run(all_at_once(c));
  for (CpuIsa isa : isas_here()) {
    const auto got = Runner(c, tokens, isa, 2).run(random_schedule(c, seed, most));
    for (size_t s = 0; s < got.size(); ++s) RC_ASSERT(first_difference(expected[s], got[s]) == -1);
  }
}

// A token whose key and value are not numbers must not reach the tokens before it, although they
// share a step, a tile and a block with it.
TEST(Attention, LaterTokensDoNotLeakIntoEarlierRows) {
  const Case c = {6, 2, 64, 0, 16, kF32, {80}};
  const Tokens clean(c, 4);
  const int kv_cols = c.kv_heads * c.head_dim;
  const int q_cols = c.heads * c.head_dim;
  for (const float poison : {kNan, kInf, -kInf}) {
    for (int bad : {1, 31, 64, 70}) {
      Tokens dirty = clean;
      std::fill_n(dirty.k[0].begin() + int64_t{bad} * kv_cols, kv_cols, poison);
      std::fill_n(dirty.v[0].begin() + int64_t{bad} * kv_cols, kv_cols, poison);
      for (CpuIsa isa : isas_here()) {
        const auto expected = Runner(c, clean, isa, 1).run(all_at_once(c))[0];
        const auto got = Runner(c, dirty, isa, 1).run(all_at_once(c))[0];
        const auto before = static_cast<size_t>(bad) * static_cast<size_t>(q_cols);
        EXPECT_EQ(first_difference({expected.begin(), expected.begin() + static_cast<long>(before)},
                                   {got.begin(), got.begin() + static_cast<long>(before)}),
                  -1);
        EXPECT_TRUE(std::isnan(got[before])) << "the poison must be seen by its own row";
      }
    }
  }
}

TEST(Attention, KeysOutsideTheWindowDoNotMatter) {
  const Case c = {3, 1, 64, 20, 16, kBf16, {100}};
  const Tokens clean(c, 5);
  Tokens dirty = clean;
  const int kv_cols = c.kv_heads * c.head_dim;
  std::fill_n(dirty.k[0].begin(), 50 * kv_cols, kNan);
  std::fill_n(dirty.v[0].begin(), 50 * kv_cols, kNan);
  for (CpuIsa isa : isas_here()) {
    const auto expected = Runner(c, clean, isa, 1).run(all_at_once(c))[0];
    const auto got = Runner(c, dirty, isa, 1).run(all_at_once(c))[0];
    const long from = 69L * c.heads * c.head_dim;  // the first row that sees no key below 50
    EXPECT_EQ(first_difference({expected.begin() + from, expected.end()},
                               {got.begin() + from, got.end()}),
              -1);
    EXPECT_TRUE(std::isnan(got[static_cast<size_t>(from - 1)]));
  }
}

TEST(Attention, RowsWithoutASlotAreNotWritten) {
  for (CpuIsa isa : isas_here()) {
    for (DType dtype : {kBf16, kF32}) {
      ExecOwner owner(isa);
      PagedAttention attention({1, 1, 16, 0.25f, 0});
      std::vector<uint8_t> keys(16 * 16 * 4, 0xFF), values = keys;
      const std::vector<uint8_t> untouched = keys;
      const std::vector<int32_t> q_start = {0}, none, slots = {-1, -1};
      const AttentionBatch batch = {q_start, none, none, 0, slots};
      std::vector<float> x(32, 1.0f), out(32, 5.0f);
      attention.plan(batch, 1);
      attention.run(owner.exec, batch, Mat::f32(x.data(), 2, 16), Mat::f32(x.data(), 2, 16),
                    Mat::f32(x.data(), 2, 16), {keys.data(), values.data(), dtype, 16, 1, 16},
                    Mat::f32(out.data(), 2, 16));
      EXPECT_EQ(keys, untouched);
      EXPECT_EQ(values, untouched);
      EXPECT_EQ(out, std::vector<float>(32, 5.0f));
    }
  }
}

TEST(Attention, OutputMayReplaceTheQueries) {
  const Case c = {3, 1, 16, 0, 16, kBf16, {600}};
  const Tokens tokens(c, 6);
  for (CpuIsa isa : isas_here()) {
    const auto expected = Runner(c, tokens, isa, 2).run(all_at_once(c))[0];
    ExecOwner owner(isa, 2);
    PagedAttention attention({3, 1, 16, 0.25f, 0});
    std::vector<uint8_t> keys(static_cast<size_t>(608 * 16 * 2)), values = keys;
    std::vector<int32_t> pages(38), slots(600);
    std::iota(pages.begin(), pages.end(), 0);
    std::iota(slots.begin(), slots.end(), 0);
    const std::vector<int32_t> q_start = {0, 600}, context = {600};
    const AttentionBatch batch = {q_start, context, pages, 38, slots};
    std::vector<float> q = tokens.q[0], k = tokens.k[0], v = tokens.v[0];
    const Mat qm = Mat::f32(q.data(), 600, 48);
    attention.plan(batch, 2);
    attention.run(owner.exec, batch, qm, Mat::f32(k.data(), 600, 16), Mat::f32(v.data(), 600, 16),
                  {keys.data(), values.data(), kBf16, 16, 1, 16}, qm);
    EXPECT_EQ(first_difference(expected, q), -1);
  }
}

}  // namespace
}  // namespace mx8
