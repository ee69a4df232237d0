#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/strings.h"
#include "checkpoint/prefixed_source.h"
#include "checkpoint/quant_weight.h"
#include "common.h"
#include "mx/bf16.h"
#include "pack/audit.h"
#include "quantizer/quantizer.h"

namespace mx8 {

namespace {

struct InspectFlags {
  std::string model;
  std::string load = "auto";
  bool tensors = false;
  bool check = false;
  bool json = false;
};

constexpr std::string_view kWeight = ".weight";

struct Module {
  std::string name;
  std::string scheme;
  bool mxfp8 = false;
  WeightAudit audit;  // with --check
};

struct Findings {
  std::vector<Module> modules;             // matrices
  std::map<std::string, int64_t> schemes;  // how many modules of each
  std::vector<std::string> problems;
  uint64_t bytes = 0;
  int64_t parameters = 0;  // scales are not parameters
};

// Elements that are NaN or infinite.
int64_t count_not_finite(const TensorData& t) {
  int64_t bad = 0;
  if (t.dtype() == DType::kBF16) {
    for (uint16_t v : t.as<uint16_t>()) bad += (v & 0x7F80) == 0x7F80;
  } else if (t.dtype() == DType::kF16) {
    for (uint16_t v : t.as<uint16_t>()) bad += (v & 0x7C00) == 0x7C00;
  } else if (t.dtype() == DType::kF32) {
    for (float v : t.as<float>()) bad += !std::isfinite(v);
  }
  return bad;
}

ModuleKind kind_of(const std::string& module) {
  switch (module_role(module)) {
    case ModuleRole::kRouter:
      return ModuleKind::kRouter;
    case ModuleRole::kLmHead:
      return ModuleKind::kLmHead;
    case ModuleRole::kEmbedding:
      return ModuleKind::kEmbedding;
    default:
      return ModuleKind::kLinear;
  }
}

Result<void> look_at_module(CheckpointReader& reader, const QuantPlan& plan, const TensorInfo& info,
                            bool check, Findings& out) {
  Module m;
  m.name = info.name.substr(0, info.name.size() - kWeight.size());
  if (info.shape.size() != 2) {
    m.scheme = std::string(dtype_name(info.dtype));
  } else {
    auto weight =
        load_quant_weight(reader, plan, m.name, kind_of(m.name), info.shape[0], info.shape[1]);
    if (!weight.ok()) {
      out.problems.push_back(weight.error().message);
      return {};
    }
    m.scheme = describe(weight->scheme);
    m.mxfp8 = weight->scheme.is_mxfp8();
    if (check && m.mxfp8) {
      m.audit = audit_weight(weight->view().mx(), true);
      if (!m.audit.finite()) out.problems.push_back(describe_bad_weight(m.audit, m.name));
    }
    release_quant_weight(reader, *weight);
  }
  if (info.shape.size() == 2) ++out.schemes[m.scheme];
  out.modules.push_back(std::move(m));
  return {};
}

// `tied_head` is the name of a head that has no tensor of its own, "" if there is none: configs may
// name it all the same.
Result<Findings> look(CheckpointReader& reader, const QuantPlan& plan, const std::string& tied_head,
                      bool check) {
  Findings out;
  for (const TensorInfo& info : reader.tensors()) {
    out.bytes += info.bytes();
    const bool scale = info.name.ends_with("_scale") || info.name.ends_with("_scale_inv");
    if (!scale) out.parameters += info.elements();
    if (info.name.ends_with(kWeight) && info.shape.size() >= 2) {
      MX8_RETURN_IF_ERROR(look_at_module(reader, plan, info, check, out));
    }
    if (check && !scale) {
      MX8_TRY(const TensorData data, reader.load_whole(info.name));
      const int64_t bad = count_not_finite(data);
      if (bad > 0)
        out.problems.push_back(str_cat(info.name, " holds ", bad, " NaN or infinite values"));
      reader.release(info.name);
    }
  }
  if (!tied_head.empty()) {
    const auto head = plan.module(tied_head, ModuleKind::kLmHead);
    if (!head.ok()) out.problems.push_back(head.error().message);
  }
  for (const std::string& entry : plan.unmatched()) {
    out.problems.push_back(
        str_cat("the quantisation config names what the files don't hold: ", entry));
  }
  return out;
}

void print_tensors_json(const CheckpointReader& reader) {
  std::printf(", \"tensors\": [");
  bool first = true;
  for (const TensorInfo& t : reader.tensors()) {
    std::string shape;
    for (int64_t d : t.shape) shape += str_cat(shape.empty() ? "" : ", ", d);
    std::printf("%s{\"name\": %s, \"dtype\": \"%s\", \"shape\": [%s], \"bytes\": %llu}",
                first ? "" : ", ", json_string(t.name).c_str(),
                std::string(dtype_name(t.dtype)).c_str(), shape.c_str(),
                static_cast<unsigned long long>(t.bytes()));
    first = false;
  }
  std::printf("]");
}

void print_json(const InspectFlags& f, const HfConfig& c, const QuantPlan& plan,
                const CheckpointReader& reader, const Findings& found) {
  std::printf(
      "{\"architecture\": %s, \"model_type\": %s, \"quantization\": %s, \"layers\": %lld, "
      "\"hidden_size\": %lld, \"vocab_size\": %lld, \"parameters\": %lld, \"bytes\": %llu, "
      "\"files\": %zu, \"schemes\": {",
      json_string(c.architecture).c_str(), json_string(c.model_type).c_str(),
      json_string(plan.dialect()).c_str(), static_cast<long long>(c.num_hidden_layers),
      static_cast<long long>(c.hidden_size), static_cast<long long>(c.vocab_size),
      static_cast<long long>(found.parameters), static_cast<unsigned long long>(found.bytes),
      reader.files().size());
  bool first = true;
  for (const auto& [scheme, count] : found.schemes) {
    std::printf("%s%s: %lld", first ? "" : ", ", json_string(scheme).c_str(),
                static_cast<long long>(count));
    first = false;
  }
  std::printf("}");
  if (f.check) {
    std::printf(", \"problems\": [");
    for (size_t i = 0; i < found.problems.size(); ++i) {
      std::printf("%s%s", i > 0 ? ", " : "", json_string(found.problems[i]).c_str());
    }
    std::printf("]");
  }
  if (f.tensors) print_tensors_json(reader);
  std::printf("}\n");
}

// What the kernels will make of the MXFP8 weights, in one line.
void print_audit(const Findings& found) {
  WeightAudit all;
  for (const Module& m : found.modules) {
    if (m.mxfp8) all.merge(m.audit);
  }
  if (all.elements == 0) return;
  std::printf(
      "mxfp8 weights   scale bytes %d..%d, %.4f %% subnormal codes, %lld all-zero blocks, "
      "row-fold error at most %.1e\n",
      all.min_scale, all.max_scale,
      100.0 * static_cast<double>(all.subnormal_codes) / static_cast<double>(all.elements),
      static_cast<long long>(all.zero_blocks), all.row_fold_error);
}

void print_text(const InspectFlags& f, const HfConfig& c, const QuantPlan& plan,
                const CheckpointReader& reader, const Findings& found) {
  std::printf("%s\narchitecture    %s\nquantisation    %s\n", f.model.c_str(),
              c.architecture.c_str(), plan.dialect().c_str());
  std::printf(
      "shape           %lld layers, hidden %lld, %lld heads, %lld KV heads of %lld, vocabulary "
      "%lld\n",
      static_cast<long long>(c.num_hidden_layers), static_cast<long long>(c.hidden_size),
      static_cast<long long>(c.num_attention_heads), static_cast<long long>(c.num_key_value_heads),
      static_cast<long long>(c.head_dim), static_cast<long long>(c.vocab_size));
  std::printf("size            %.1f M parameters, %s in %zu file(s), %.2f bits per parameter\n",
              static_cast<double>(found.parameters) / 1e6, format_bytes(found.bytes).c_str(),
              reader.files().size(),
              8.0 * static_cast<double>(found.bytes) / static_cast<double>(found.parameters));
  for (const auto& [scheme, count] : found.schemes) {
    std::printf("matrices        %lld %s\n", static_cast<long long>(count), scheme.c_str());
  }
  if (f.check) {
    print_audit(found);
    std::printf("check           %s\n", found.problems.empty() ? "no problem found" : "problems:");
    for (const std::string& p : found.problems) std::printf("  %s\n", p.c_str());
  }
  if (!f.tensors) return;
  for (const TensorInfo& t : reader.tensors()) {
    std::printf("%-8s %-16s %s\n", std::string(dtype_name(t.dtype)).c_str(),
                describe_shape(t.shape).c_str(), t.name.c_str());
  }
}

Result<void> run(const InspectFlags& f) {
  MX8_TRY(const HfConfig config, read_hf_config(f.model, {}));
  MX8_TRY(QuantPlan plan, read_quant_plan(f.model, config));
  CheckpointOptions options;
  options.mode = *parse_load_mode(f.load);
  MX8_TRY(std::unique_ptr<CheckpointReader> reader, CheckpointReader::open(f.model, options));
  const std::string prefix = prefix_before(*reader);
  if (!prefix.empty()) plan.add_name_prefix({prefix, ""});
  const std::string tied_head = config.tie_word_embeddings ? str_cat(prefix, "lm_head") : "";
  MX8_TRY(const Findings found, look(*reader, plan, tied_head, f.check));
  if (f.json) {
    print_json(f, config, plan, *reader, found);
  } else {
    print_text(f, config, plan, *reader, found);
  }
  if (f.check && !found.problems.empty()) {
    return corrupt(str_cat(f.model, " has ", found.problems.size(), " problem(s)"));
  }
  return {};
}

}  // namespace

VerbRunner add_inspect(CLI::App& app) {
  auto f = std::make_shared<InspectFlags>();
  app.add_option("model", f->model, "Model folder")->required();
  app.add_option("--load", f->load, "How weight files are read: auto, mmap or read")
      ->check(CLI::IsMember({"auto", "mmap", "read"}))
      ->capture_default_str();
  app.add_flag("--tensors", f->tensors, "List every tensor");
  app.add_flag("--check", f->check,
               "Read every weight: finite values, scales, config against files");
  app.add_flag("--json", f->json, "Machine-readable");
  return [f]() -> Result<void> { return run(*f); };
}

}  // namespace mx8
