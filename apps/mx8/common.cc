#include "common.h"

#include <sys/resource.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "base/text_file.h"
#include "config.h"
#include "text/utf8.h"

namespace mx8 {

void print_error(const Error& error) { std::fprintf(stderr, "mx8: %s\n", error.message.c_str()); }

void print_note(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

const char* version_string() { return MX8_VERSION; }

void add_activations_option(CLI::App& app, std::string& value) {
  app.add_option("--activations", value, "What may be done to activations: auto, bf16 or fp8")
      ->check(CLI::IsMember({"auto", "bf16", "fp8"}))
      ->capture_default_str();
}

ActivationMode parse_activations(const std::string& value) {
  return value == "fp8"    ? ActivationMode::kFp8
         : value == "bf16" ? ActivationMode::kBf16
                           : ActivationMode::kAuto;
}

void ModelFlags::add_to(CLI::App& app) {
  app.add_option("model", model, "Model folder: config.json, model.safetensors, tokenizer.json")
      ->required();
  app.add_option("--load", load, "How weight files are read: auto, mmap or read")
      ->check(CLI::IsMember({"auto", "mmap", "read"}))
      ->capture_default_str();
  app.add_option("--load-format", load_format, "auto, or dummy for seeded random weights")
      ->check(CLI::IsMember({"auto", "dummy"}))
      ->capture_default_str();
  app.add_option("--dummy-seed", dummy_seed, "Seed of --load-format dummy")->capture_default_str();
  app.add_option("--quantization", quantization,
                 "mxfp8: quantise a plain checkpoint while loading it")
      ->check(CLI::IsMember({"mxfp8"}));
  app.add_option("--quantize-include", quantize_include,
                 "With --quantization: modules to quantise, by name, part of a name or re:REGEX");
  app.add_option("--quantize-ignore", quantize_ignore,
                 "With --quantization: modules to leave plain, likewise");
  app.add_option("--linear-backend", linear_backend,
                 "Demand a backend for MXFP8 layers (mx8 doctor lists them)")
      ->envname("MX8_LINEAR_BACKEND");
  add_activations_option(app, activations);
  app.add_option("--threads", threads, "Threads; 0 takes every processor")
      ->check(CLI::Range(0, 1024))
      ->envname("MX8_THREADS")
      ->capture_default_str();
}

Result<OpenOptions> ModelFlags::options() const {
  OpenOptions out;
  out.checkpoint.mode = *parse_load_mode(load);
  out.dummy_weights = load_format == "dummy";
  out.dummy_seed = dummy_seed;
  out.quantization.enabled = !quantization.empty();
  out.quantization.include = quantize_include;
  out.quantization.ignore = quantize_ignore;
  if (!out.quantization.enabled && !(quantize_include.empty() && quantize_ignore.empty())) {
    return invalid_argument("--quantize-include and --quantize-ignore need --quantization mxfp8");
  }
  out.preference.backend = linear_backend;
  out.preference.activations = parse_activations(activations);
  out.threads = threads;
  return out;
}

Result<OpenedModel> ModelFlags::open(const Wants& wants) const {
  MX8_TRY(OpenOptions open, options());
  open.max_step_tokens = wants.max_step_tokens;
  open.max_model_len = wants.max_model_len;
  open.default_model_len = wants.default_model_len;
  open.text = wants.text;
  MX8_TRY(OpenedModel opened, open_model(model, open));
  if (!wants.quiet) {
    print_note(str_cat("Loaded ", model, " in ", std::round(opened.load_seconds * 100) / 100,
                       " s (", opened.dummy ? "dummy weights" : load_mode_name(opened.load_mode),
                       ", ", format_bytes(opened.model->resident_bytes()), " of weights, ",
                       opened.pool->size(), " threads)"));
    for (const std::string& line : opened.model->summary()) print_note("  " + line);
  }
  return opened;
}

void KvFlags::add_to(CLI::App& app) {
  app.add_option("--kv-cache-dtype", dtype, "bf16 or f32")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--max-model-len", max_model_len, "Tokens of a sequence, prompt and output")
      ->check(CLI::PositiveNumber);
  app.add_option("--kv-memory", memory, "Memory for the KV cache, such as 512MiB or 2GB");
}

Result<void> KvFlags::apply(EngineConfig& config, const OpenedModel& model) const {
  config.max_model_len = model.model->shape().max_positions;
  config.kv_dtype = dtype == "f32" ? DType::kF32 : DType::kBF16;
  if (!memory.empty()) {
    MX8_TRY(config.kv_memory, parse_bytes(memory, "--kv-memory"));
  }
  config.eos_ids = model.eos_ids();
  return {};
}

Result<uint64_t> parse_bytes(const std::string& text, const std::string& flag) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  static const std::map<std::string, double> kUnits = {{"", 1},
                                                       {"B", 1},
                                                       {"KB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"TB", 1e12},
                                                       {"K", 1024},
                                                       {"M", 1048576.0},
                                                       {"G", 1073741824.0},
                                                       {"KiB", 1024},
                                                       {"MiB", 1048576.0},
                                                       {"GiB", 1073741824.0},
                                                       {"TiB", 1099511627776.0}};
  const auto factor = kUnits.find(unit);
  if (end == text.c_str() || factor == kUnits.end() || !(number > 0 && number < 1e15)) {
    return invalid_argument(str_cat(flag, " is '", text,
                                    "'; write bytes, or a number with KiB, MiB,"
                                    " GiB, KB, MB or GB"));
  }
  return static_cast<uint64_t>(number * factor->second);
}

Result<std::string> read_prompt_file(const std::string& path) {
  constexpr uint64_t kMaxPrompt = uint64_t{2} << 30;
  return read_text_file(path, kMaxPrompt, FileKind::kAny);
}

Result<void> check_utf8(const std::string& text, const std::string& what) {
  const size_t valid = text::valid_utf8_prefix(text);
  if (valid == text.size()) return {};
  return invalid_argument(str_cat(what, " is not UTF-8: the byte at offset ", valid,
                                  " begins no character; convert it first (iconv -t UTF-8)"));
}

Result<void> write_stdout(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return {};
  }
  return io_error(str_cat("cannot write to standard output: ", std::strerror(errno)));
}

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_number(double value) { return nlohmann::json(value).dump(); }

uint64_t peak_rss_bytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace mx8
