#include "engine/open_model.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/strings.h"
#include "checkpoint/dummy_source.h"
#include "kernels/select.h"
#include "model/registry.h"

namespace mx8 {

Exec OpenedModel::exec() const {
  Exec exec;
  exec.device = caps.kind;
  exec.isa = caps.isa;
  exec.pool = pool.get();
  exec.workspace = workspace.get();
  return exec;
}

std::vector<int32_t> OpenedModel::eos_ids() const {
  std::vector<int32_t> ids(config.eos_token_ids.begin(), config.eos_token_ids.end());
  if (ids.empty() && tokenizer && tokenizer->eos_id()) ids.push_back(*tokenizer->eos_id());
  return ids;
}

Preference preference_from_environment() {
  Preference preference;
  preference.backend = env("MX8_LINEAR_BACKEND").value_or("");
  return preference;
}

namespace {

Result<std::unique_ptr<TensorSource>> open_source(const std::string& folder,
                                                  const OpenOptions& options, OpenedModel& out) {
  if (options.dummy_weights)
    return std::unique_ptr<TensorSource>(new DummySource(options.dummy_seed));
  MX8_TRY(std::unique_ptr<CheckpointReader> reader,
          CheckpointReader::open(folder, options.checkpoint));
  out.load_mode = reader->mode();
  return std::unique_ptr<TensorSource>(std::move(reader));
}

Result<void> open_text(const std::string& folder, OpenedModel& out) {
  MX8_TRY(Tokenizer tokenizer, Tokenizer::load(folder));
  if (tokenizer.vocab_size() > out.config.vocab_size) {
    return corrupt(str_cat(folder, "/tokenizer.json has ids up to ", tokenizer.vocab_size() - 1,
                           ", but config.json's vocab_size is ", out.config.vocab_size));
  }
  out.tokenizer.emplace(std::move(tokenizer));
  // A model without a usable template still completes text; chat says why it cannot.
  auto chat = ChatTemplate::load(folder);
  if (chat.ok()) {
    out.chat_template.emplace(std::move(chat).value());
  } else {
    out.no_chat_template = chat.error().message;
  }
  return {};
}

}  // namespace

Result<OpenedModel> open_model(const std::string& folder, const OpenOptions& options) {
  const double start = now_seconds();
  OpenedModel out;
  out.folder = folder;
  out.dummy = options.dummy_weights;
  if (!std::filesystem::is_directory(folder)) {
    return not_found(str_cat(folder.empty() ? "''" : folder,
                             " is not a folder; a model is a folder with config.json and"
                             " model.safetensors"));
  }
  MX8_TRY(out.config, read_hf_config(folder, supported_architectures()));
  MX8_TRY(out.quant, read_quant_plan(folder, out.config, options.quantization));
  MX8_TRY(out.caps, cpu_caps_from_environment());
  if (out.caps.forced) {
    MX8_TRY(const DeviceCaps real, detect_cpu_caps());
    if (out.caps.kind != DeviceKind::kCpu || out.caps.isa > real.isa) {
      return unsupported(str_cat("MX8_FORCE_CAPS names ", out.caps.name,
                                 ", which this machine is not; it can be asked what it would choose"
                                 " (mx8 doctor), but not run"));
    }
  }
  for (const KernelInfo* kernel : kernel_registry()) {
    if (kernel->activations != ActLayout::kF32 &&
        options.preference.backend == backend_name(kernel->backend)) {
      return unsupported(
          str_cat("the linear backend ", options.preference.backend,
                  " needs a GPU, and models run on CPUs only; on GPUs the kernels run"
                  " in programs that link them (mx8 bench gemm, the C ABI)"));
    }
  }
  if (options.text) MX8_RETURN_IF_ERROR(open_text(folder, out));
  out.pool = std::make_unique<ThreadPool>(options.threads);
  out.workspace = std::make_unique<Arena>();
  LoadOptions load;
  load.caps = out.caps;
  load.preference = options.preference;
  load.max_step_tokens = options.max_step_tokens;
  load.max_context = options.max_model_len;
  if (load.max_context == 0 && options.default_model_len > 0) {
    load.max_context = std::min(options.default_model_len, out.config.max_position_embeddings);
  }
  load.pool = out.pool.get();
  MX8_TRY(std::unique_ptr<TensorSource> source, open_source(folder, options, out));
  MX8_TRY(out.model, load_model(*source, out.config, out.quant, load));
  out.load_seconds = now_seconds() - start;
  return out;
}

}  // namespace mx8
