// Decoder: what all families share, around the layers that make them differ.
//
//   h = E[ids];  for each layer: h = layer(h);  logits = W_head norm(h)
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/model.h"
#include "model/step.h"
#include "model/weights.h"

namespace mx8 {

// Layer has
//   static Result<Layer> load(WeightLoader&, const ModelConfig&, int layer);
//   void forward(const Step&, const Mat& h);   // in place, [M, hidden]
template <class Layer>
class Decoder final : public Model {
 public:
  static Result<std::unique_ptr<Model>> load(const ModelConfig& config, WeightLoader& loader) {
    auto model = std::make_unique<Decoder>();
    model->config_ = config;
    const ModelShape& shape = config.shape;
    MX8_TRY(model->vocabulary_, loader.vocabulary(shape.vocab, shape.hidden, config.tied_head));
    for (int i = 0; i < shape.layers; ++i) {
      MX8_TRY(Layer layer, Layer::load(loader, config, i));
      model->layers_.push_back(std::move(layer));
    }
    MX8_TRY(model->norm_, loader.vector("model.norm.weight", TensorKind::kNorm, shape.hidden));
    MX8_RETURN_IF_ERROR(loader.finish());

    model->rope_ =
        make_rope_table(config.rope.inv_freq, shape.max_positions, config.rope.magnitude);
    model->plan_attentions();
    model->resident_bytes_ = loader.resident_bytes();
    model->summary_ = loader.summary();
    model->summary_.insert(model->summary_.end(), config.notes.begin(), config.notes.end());
    return std::unique_ptr<Model>(std::move(model));
  }

  const ModelShape& shape() const override { return config_.shape; }
  size_t resident_bytes() const override { return resident_bytes_; }
  std::vector<std::string> summary() const override { return summary_; }

  void forward(const Exec& exec, const ForwardBatch& batch, const Mat& logits) override {
    const int64_t tokens = static_cast<int64_t>(batch.token_ids.size());
    if (tokens == 0) return;
    for (PagedAttention& attention : attentions_) {
      attention.plan(batch.attention, exec.pool->size());
    }
    const Step step{exec, batch, rope_, attentions_};
    const Arena::Scope scope(*exec.workspace);

    const Mat h = step.temporary(tokens, config_.shape.hidden);
    vocabulary_.embed(exec, batch.token_ids, h);
    for (Layer& layer : layers_) layer.forward(step, h);

    const int64_t wanted = static_cast<int64_t>(batch.logit_rows.size());
    if (wanted == 0) return;
    const Mat last = step.temporary(wanted, h.cols);
    gather_rows(exec, h, batch.logit_rows, last);
    rms_norm(exec, last, norm_, config_.norm_eps, last);
    vocabulary_.logits(exec, last, logits);
  }

 private:
  void plan_attentions() {
    for (const int window : config_.windows) {
      bool known = false;
      for (const PagedAttention& a : attentions_) known |= a.shape().window == window;
      if (known) continue;
      attentions_.emplace_back(AttentionShape{.heads = config_.shape.heads,
                                              .kv_heads = config_.shape.kv_heads,
                                              .head_dim = config_.shape.head_dim,
                                              .scale = config_.attention_scale,
                                              .window = window});
    }
  }

  ModelConfig config_;
  Vocabulary vocabulary_;
  std::vector<Layer> layers_;
  std::vector<float> norm_;
  RopeTable rope_;
  std::vector<PagedAttention> attentions_;  // one for each window
  size_t resident_bytes_ = 0;
  std::vector<std::string> summary_;
};

}  // namespace mx8
