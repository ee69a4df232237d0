// FakeModel: a stand-in for tests of the engine. It has no weights, but it does use the KV cache as
// a real model does: every token's id is written to its slot in every layer, and the logits of a
// row are a hash of its whole context, read back through the page table. So a wrong page, slot,
// position or a context that was not recomputed after preemption changes what it "says".
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "model/model.h"

namespace mx8 {

class FakeModel : public Model {
 public:
  explicit FakeModel(int64_t vocab = 97, int64_t max_positions = 4096) {
    shape_ = {vocab, 8, 2, 2, 1, 4, max_positions};
  }
  const ModelShape& shape() const override { return shape_; }
  size_t resident_bytes() const override { return 0; }
  std::vector<std::string> summary() const override { return {"fake"}; }

  void forward(const Exec&, const ForwardBatch& batch, const Mat& logits) override {
    ++steps;
    const AttentionBatch& a = batch.attention;
    MX8_CHECK(static_cast<int>(batch.kv.size()) == shape_.layers);
    for (size_t m = 0; m < batch.token_ids.size(); ++m) {
      for (const KvLayer& kv : batch.kv)
        *key(kv, a.slots[m]) = static_cast<float>(batch.token_ids[m]);
    }
    int64_t out = 0;
    for (int s = 0; s < a.sequences(); ++s) {
      const int32_t last = a.q_start[s + 1] - 1;
      MX8_CHECK(batch.positions[last] == a.context[s] - 1, batch.positions[last], a.context[s]);
      if (out < logits.rows && batch.logit_rows[out] == last) {
        fill(batch, s, logits.f32_row(out));
        ++out;
      }
    }
    MX8_CHECK(out == logits.rows, out, logits.rows);
  }

  // Called for each row of logits; the default leaves them as hashed.
  bool poison_next = false;
  int64_t steps = 0;

 private:
  static float* key(const KvLayer& kv, int32_t slot) {
    const int64_t page = slot / kv.page_size, in_page = slot % kv.page_size;
    return static_cast<float*>(kv.keys) +
           (page * kv.kv_heads * kv.page_size + in_page) * kv.head_dim;
  }

  void fill(const ForwardBatch& batch, int s, float* row) {
    const AttentionBatch& a = batch.attention;
    uint64_t hash = 1469598103934665603ull;
    for (int32_t t = 0; t < a.context[s]; ++t) {
      for (const KvLayer& kv : batch.kv) {
        const int32_t page = a.pages[s * a.max_pages + t / kv.page_size];
        MX8_CHECK(page >= 0, s, t);
        hash =
            (hash ^ static_cast<uint64_t>(*key(kv, page * kv.page_size + t % kv.page_size) + 1)) *
            1099511628211ull;
      }
    }
    for (int64_t v = 0; v < shape_.vocab; ++v) {
      uint64_t h = hash + static_cast<uint64_t>(v) * 0x9E3779B97F4A7C15ull;
      h = (h ^ (h >> 31)) * 0xBF58476D1CE4E5B9ull;
      row[v] = poison_next ? NAN : static_cast<float>(h >> 40) * 0x1p-22f;
    }
    poison_next = false;
  }

  ModelShape shape_;
};

}  // namespace mx8
