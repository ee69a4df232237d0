#include "model/weights.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "pack/quantize_matrix.h"
#include "tensor/plain_values.h"

namespace mx8 {
namespace {

std::string expert_module(const std::string& pattern, int expert) {
  std::string name = pattern;
  const size_t place = name.find("{}");
  MX8_CHECK(place != std::string::npos, pattern);
  return name.replace(place, 2, std::to_string(expert));
}

std::string_view kind_plural(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kLinear:
      return "linears";
    case ModuleKind::kRouter:
      return "routers";
    case ModuleKind::kLmHead:
      return "lm_head";
    case ModuleKind::kEmbedding:
      return "embeddings";
    case ModuleKind::kNorm:
      return "norms";
  }
  return "?";
}

}  // namespace

QuantView WeightLoader::Ready::view() const {
  if (!stored.quantize_at_load) return stored.view();
  return {quantised.codes.data(), quantised.scales.data(), quantised.rows, quantised.cols,
          stored.target};
}

MxMatrix WeightLoader::quantise(const QuantView& plain) const {
  MX8_CHECK(options_.pool != nullptr, "LoadOptions.pool");
  return quantize_matrix(plain, options_.scale_rule, *options_.pool);
}

Result<WeightLoader::Ready> WeightLoader::load(const std::string& module, ModuleKind kind,
                                               int64_t rows, int64_t cols) {
  Ready ready;
  MX8_TRY(ready.stored, load_quant_weight(source_, plan_, module, kind, rows, cols));
  if (!ready.stored.quantize_at_load) return ready;
  if (cols % kMxBlock != 0) {
    return unsupported(str_cat(module, ".weight has ", cols, " input features; MXFP8 needs a ",
                               "multiple of 32: leave it out of the quantisation"));
  }
  ready.quantised = quantise(ready.stored.view());
  release_quant_weight(source_, ready.stored);
  ready.stored.codes = {};
  return ready;
}

Result<void> WeightLoader::check_agreement(const LayerSpec& spec,
                                           const std::vector<WeightPart>& parts,
                                           std::span<const QuantView> views) const {
  for (size_t i = 1; i < views.size(); ++i) {
    if (views[i].scheme == views[0].scheme) continue;
    return unsupported(str_cat(spec.name, ": ", parts[0].module, " is ", describe(views[0].scheme),
                               " but ", parts[i].module, " is ", describe(views[i].scheme),
                               "; they run as one layer and must be stored alike"));
  }
  return {};
}

LinearSpec WeightLoader::linear_spec(const LayerSpec& spec) const {
  return {.name = spec.name,
          .order = spec.order,
          .max_m = options_.max_step_tokens,
          .activation = DType::kF32,
          .preference = options_.preference};
}

void WeightLoader::count(const LayerSpec& spec, const QuantScheme& scheme, const LinearPlan& plan,
                         size_t parts, size_t bytes) {
  std::string line = str_cat(kind_plural(spec.kind), " ", describe(scheme));
  if (!scheme.is_plain()) line += str_cat(" on ", backend_name(plan.backend));
  counts_[line] += parts;
  resident_bytes_ += bytes;
}

Result<Linear> WeightLoader::linear(const LayerSpec& spec, const std::vector<WeightPart>& parts) {
  std::vector<Ready> ready;
  std::vector<QuantView> views;
  std::vector<float> bias;
  for (const WeightPart& part : parts) {
    MX8_TRY(Ready one, load(part.module, spec.kind, part.rows, spec.cols));
    views.push_back(one.view());
    ready.push_back(std::move(one));
    if (!spec.bias) continue;
    MX8_TRY(const std::vector<float> b,
            vector(part.module + ".bias", TensorKind::kBias, part.rows));
    bias.insert(bias.end(), b.begin(), b.end());
  }
  MX8_RETURN_IF_ERROR(check_agreement(spec, parts, views));
  if (options_.list_only) return Linear();
  MX8_TRY(Linear linear, Linear::load(options_.caps, linear_spec(spec), views, bias));
  for (const Ready& one : ready) release_quant_weight(source_, one.stored);
  count(spec, linear.scheme(), linear.plan(), parts.size(), linear.resident_bytes());
  return linear;
}

Result<GroupedLinear> WeightLoader::experts(const LayerSpec& spec, int experts,
                                            const std::vector<WeightPart>& parts) {
  MX8_TRY(GroupedLinear grouped, GroupedLinear::begin(options_.caps, linear_spec(spec), experts));
  std::optional<QuantScheme> scheme;
  for (int e = 0; e < experts; ++e) {
    std::vector<WeightPart> modules;
    std::vector<Ready> ready;
    std::vector<QuantView> views;
    for (const WeightPart& part : parts) {
      modules.push_back({expert_module(part.module, e), part.rows});
      MX8_TRY(Ready one, load(modules.back().module, spec.kind, part.rows, spec.cols));
      views.push_back(one.view());
      ready.push_back(std::move(one));
    }
    MX8_RETURN_IF_ERROR(check_agreement(spec, modules, views));
    if (scheme.value_or(views[0].scheme) != views[0].scheme) {
      return unsupported(str_cat(spec.name, ": expert 0 is ", describe(*scheme), " but expert ", e,
                                 " is ", describe(views[0].scheme),
                                 "; the experts of a layer must be stored alike"));
    }
    scheme = views[0].scheme;
    if (options_.list_only) continue;
    MX8_RETURN_IF_ERROR(grouped.add(views));
    for (const Ready& one : ready) release_quant_weight(source_, one.stored);
  }
  if (options_.list_only) return GroupedLinear();
  MX8_RETURN_IF_ERROR(grouped.end());
  count(spec, grouped.scheme(), grouped.plan(), parts.size() * static_cast<size_t>(experts),
        grouped.resident_bytes());
  return grouped;
}

Result<std::vector<float>> WeightLoader::vector(const std::string& tensor, TensorKind kind,
                                                int64_t size) {
  MX8_TRY(
      const TensorData data,
      source_.load(
          {.name = tensor, .kind = kind, .dtypes = plain_dtypes(), .shape = {size}, .shard = {}}));
  std::vector<float> out(static_cast<size_t>(size));
  plain_to_f32(data.dtype(), data.bytes().data(), 0, size, out.data());
  source_.release(tensor);
  if (kind == TensorKind::kNorm) resident_bytes_ += out.size() * sizeof(float);
  return out;
}

// True if lm_head.weight is stored with the dtype and bytes of model.embed_tokens.weight.
bool WeightLoader::stored_head_is_copy(int64_t vocab, int64_t hidden) {
  std::vector<TensorData> both;
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    auto data = source_.load({.name = name,
                              .kind = TensorKind::kWeight,
                              .dtypes = plain_dtypes(),
                              .shape = {vocab, hidden},
                              .shard = {}});
    if (!data.ok()) return false;
    both.push_back(std::move(data).value());
  }
  const std::span<const std::byte> a = both[0].bytes();
  const std::span<const std::byte> b = both[1].bytes();
  const bool same =
      both[0].dtype() == both[1].dtype() && std::equal(a.begin(), a.end(), b.begin(), b.end());
  source_.release("lm_head.weight");
  return same;
}

// Where tie_word_embeddings and the files disagree, a stored quantised head wins over the flag (a
// producer made it on purpose), a stored plain one must be the table's copy, and a head that is
// neither stored nor tied is an error.
Result<Vocabulary> WeightLoader::vocabulary(int64_t vocab, int64_t hidden, bool tied) {
  const LayerSpec head_spec = {.name = "lm_head", .cols = hidden, .kind = ModuleKind::kLmHead};
  const LayerSpec table_spec = {
      .name = "model.embed_tokens", .cols = hidden, .kind = ModuleKind::kEmbedding};
  MX8_TRY(Ready table, load(table_spec.name, table_spec.kind, vocab, hidden));
  MX8_TRY(const ModuleQuant head_quant, plan_.module(head_spec.name, head_spec.kind));
  if (options_.list_only) {
    if (!tied) MX8_RETURN_IF_ERROR(linear(head_spec, vocab));
    return Vocabulary();
  }

  const bool stored = source_.has("lm_head.weight", !tied);
  const TensorInfo* info = source_.find("lm_head.weight");
  const bool stored_quantised = info != nullptr && info->dtype == DType::kF8E4M3;
  if (!stored && !tied) {
    return not_found(
        "lm_head.weight is in none of the files, but tie_word_embeddings is false in config.json: "
        "one of the two is wrong");
  }
  if (tied && stored && !stored_quantised && !stored_head_is_copy(vocab, hidden)) {
    return corrupt(
        "lm_head.weight is stored and is not model.embed_tokens.weight, but tie_word_embeddings is "
        "true in config.json: set it to false if the stored head is the right one, or remove it");
  }

  const bool own_head = !tied || stored_quantised;
  const bool shared =
      !own_head && (!head_quant.quantize_at_load || !table.view().scheme.is_plain());
  if (shared) {
    MX8_TRY(Linear head, Linear::load(options_.caps, linear_spec(head_spec), {{table.view()}}));
    release_quant_weight(source_, table.stored);
    count(head_spec, head.scheme(), head.plan(), 1, head.resident_bytes());
    return Vocabulary(std::move(head));
  }

  Linear head;
  if (own_head) {
    MX8_TRY(head, linear(head_spec, vocab));
  } else {
    const MxMatrix made = quantise(table.stored.view());
    const QuantView view = {made.codes.data(), made.scales.data(), vocab, hidden,
                            head_quant.scheme};
    MX8_TRY(head, Linear::load(options_.caps, linear_spec(head_spec), {{view}}));
    count(head_spec, head.scheme(), head.plan(), 1, head.resident_bytes());
  }
  const QuantView view = table.view();
  if (!view.scheme.is_plain()) {
    MX8_TRY(Linear rows, Linear::load(options_.caps, linear_spec(table_spec), {{view}}));
    release_quant_weight(source_, table.stored);
    count(table_spec, rows.scheme(), rows.plan(), 1, rows.resident_bytes());
    return Vocabulary(std::move(head), std::move(rows));
  }
  Buffer copy(table.stored.codes.bytes().size());
  std::memcpy(copy.data(), view.codes, copy.size());
  release_quant_weight(source_, table.stored);
  count(table_spec, view.scheme, {}, 1, copy.size());
  return Vocabulary(std::move(head), std::move(copy), view.scheme.code_type);
}

// Tensors that checkpoints carry and no forward pass of these families reads.
void WeightLoader::mark_known_extras() {
  for (const std::string& name : source_.unused()) {
    if (name.ends_with("rotary_emb.inv_freq")) source_.mark_used(name);
    const bool kv_scale = name.ends_with(".k_scale") || name.ends_with(".v_scale");
    if (kv_scale && plan_.kv_cache() == KvCacheScheme::kFp8) source_.mark_used(name);
  }
}

Result<void> WeightLoader::finish() {
  mark_known_extras();
  const std::vector<std::string> unused = source_.unused();
  if (!unused.empty()) {
    std::vector<std::string> shown(unused.begin(),
                                   unused.begin() + std::min<ptrdiff_t>(5, std::ssize(unused)));
    if (unused.size() > shown.size()) {
      shown.push_back(str_cat("and ", unused.size() - shown.size(), " more"));
    }
    return unsupported(str_cat(unused.size(), " tensors of the checkpoint have no place in this ",
                               "model: ", join(shown, ", ")));
  }
  if (plan_.kv_cache() == KvCacheScheme::kFp8) {
    notes_.push_back("the checkpoint asks for an FP8 KV cache; it stays BF16 or F32");
  }
  for (const std::string& entry : plan_.unmatched()) {
    notes_.push_back(str_cat("warning: quantization_config: ", entry, " matches no module"));
  }
  return {};
}

std::vector<std::string> WeightLoader::summary() const {
  std::vector<std::string> lines;
  for (const auto& [what, number] : counts_) {
    const bool single = what.starts_with("lm_head") || what.starts_with("embeddings");
    lines.push_back(single ? what : str_cat(number, " ", what));
  }
  lines.insert(lines.end(), notes_.begin(), notes_.end());
  return lines;
}

}  // namespace mx8
