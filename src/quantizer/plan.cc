#include "quantizer/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "checkpoint/name_pattern.h"
#include "checkpoint/prefixed_source.h"

namespace mx8 {

namespace {

constexpr std::string_view kWeight = ".weight";

// Patterns of --include or --exclude, with a note of which ones matched anything.
class PatternList {
 public:
  static Result<PatternList> compile(const std::vector<std::string>& expressions) {
    PatternList list;
    for (const std::string& e : expressions) {
      // NamePattern matches at the start of the name, as Python's re.match; we search.
      MX8_TRY(NamePattern pattern, NamePattern::regex(str_cat(".*?(?:", e, ")")));
      list.patterns_.push_back({std::move(pattern), e, false});
    }
    return list;
  }
  Result<bool> matches(const std::string& name) {
    bool any = false;
    for (Entry& e : patterns_) {
      MX8_TRY(const bool hit, e.pattern.matches_name(name));
      e.used |= hit;
      any |= hit;
    }
    return any;
  }
  std::vector<std::string> unused() const {
    std::vector<std::string> out;
    for (const Entry& e : patterns_) {
      if (!e.used) out.push_back(e.text);
    }
    return out;
  }

 private:
  struct Entry {
    NamePattern pattern;
    std::string text;
    bool used;
  };
  std::vector<Entry> patterns_;
};

// Layers that engines run as one matrix, so that their parts must be stored alike.
constexpr std::string_view kFused[][3] = {
    {"q_proj", "k_proj", "v_proj"}, {"gate_proj", "up_proj", ""}, {"w1", "w3", ""}};

Result<void> check_fused(const std::set<std::string>& quantised,
                         const std::set<std::string>& plain) {
  for (const std::string& name : quantised) {
    const size_t dot = name.rfind('.');
    const std::string prefix = name.substr(0, dot + 1);
    const std::string last = name.substr(dot + 1);
    for (const auto& group : kFused) {
      if (std::find(std::begin(group), std::end(group), last) == std::end(group)) continue;
      for (std::string_view other : group) {
        if (!other.empty() && plain.count(prefix + std::string(other)) > 0) {
          return invalid_argument(str_cat(
              prefix, other, " would stay plain while ", name,
              " is quantised, but engines run them as one matrix; exclude both or neither"));
        }
      }
    }
  }
  return {};
}

}  // namespace

Result<QuantizePlan> plan_quantisation(const CheckpointReader& reader, bool tied_head,
                                       const QuantizeOptions& options) {
  MX8_TRY(PatternList include, PatternList::compile(options.include));
  MX8_TRY(PatternList exclude, PatternList::compile(options.exclude));
  QuantizePlan plan;
  std::set<std::string> quantised, plain;

  // Decides about the module stored in `info`; true if it is to be quantised.
  auto decide = [&](const std::string& module, const TensorInfo& info) -> Result<bool> {
    const ModuleRole role = module_role(module);
    MX8_TRY(const bool included, include.matches(module));
    MX8_TRY(const bool excluded, exclude.matches(module));
    const bool linear = role != ModuleRole::kOther && role != ModuleRole::kEmbedding;
    if (excluded || !(included || role == ModuleRole::kBlockLinear)) {
      if (linear) plain.insert(module);
      return false;
    }
    if (role == ModuleRole::kEmbedding) {
      return unsupported(str_cat(module,
                                 " is an embedding: MXFP8 embeddings are in no format that we"
                                 " write; leave it out of --include"));
    }
    if (info.shape.size() != 2) {
      return unsupported(
          str_cat(info.name, " has shape ", describe_shape(info.shape),
                  "; only 2-D weights can be quantised (experts one by one, not stacked)"));
    }
    if (info.shape[1] % kMxBlock != 0) {
      return invalid_argument(str_cat(info.name, " has ", info.shape[1],
                                      " input features, not a multiple of 32; leave it plain with"
                                      " --exclude '",
                                      module, "'"));
    }
    quantised.insert(module);
    return true;
  };

  for (const TensorInfo& info : reader.tensors()) {
    const bool is_weight = info.name.size() > kWeight.size() && info.name.ends_with(kWeight);
    PlannedTensor tensor{info.name, ""};
    if (is_weight) {
      const std::string module = info.name.substr(0, info.name.size() - kWeight.size());
      MX8_TRY(const bool quantise, decide(module, info));
      if (quantise) tensor.module = module;
    }
    plan.tensors.push_back(std::move(tensor));
  }
  const std::string head = str_cat(prefix_before(reader), "lm_head");
  if (tied_head && quantised.count(head) == 0 && plain.count(head) == 0) {
    for (const TensorInfo& info : reader.tensors()) {
      if (!info.name.ends_with("embed_tokens.weight")) continue;
      MX8_TRY(const bool quantise, decide(head, info));
      if (quantise) {
        plan.tensors.push_back({info.name, head});
        plan.unties_head = true;
      }
      break;
    }
  }
  // Engines look the head up by name even where its weight is the embedding's.
  if (quantised.count(head) == 0) plain.insert(head);
  std::vector<std::string> unused = include.unused();
  for (std::string& e : exclude.unused()) unused.push_back(std::move(e));
  if (!unused.empty()) {
    return invalid_argument(str_cat("no module matches '", unused.front(),
                                    "'; mx8 inspect --tensors lists"
                                    " the names"));
  }
  if (quantised.empty()) {
    return invalid_argument(str_cat(reader.folder(), " holds no linear layer to quantise"));
  }
  MX8_RETURN_IF_ERROR(check_fused(quantised, plain));
  plan.plain_modules.assign(plain.begin(), plain.end());
  return plan;
}

}  // namespace mx8
