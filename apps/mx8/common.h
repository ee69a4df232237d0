// What the verbs of the mx8 program share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/open_model.h"

namespace mx8 {

// Exit codes of the program.
inline constexpr int kExitDone = 0;
inline constexpr int kExitBadInput = 1;
inline constexpr int kExitBadUsage = 2;

// Tokens of a sequence where --max-model-len does not say, if the model can take so many.
inline constexpr int64_t kDefaultModelLen = 4096;

// A verb adds its options to the app and returns what runs it.
using VerbRunner = std::function<Result<void>()>;

// "mx8: <message>" on stderr; progress and notes go there too, results to stdout.
void print_error(const Error& error);
void print_note(const std::string& line);

// --activations: auto, bf16 or fp8.
void add_activations_option(CLI::App& app, std::string& value);
ActivationMode parse_activations(const std::string& value);

// The flags of every verb that opens a model.
struct ModelFlags {
  std::string model;
  std::string load = "auto";
  std::string load_format = "auto";
  uint64_t dummy_seed = 0;
  std::string quantization;
  std::vector<std::string> quantize_include;
  std::vector<std::string> quantize_ignore;
  std::string linear_backend;
  std::string activations = "auto";
  int threads = 0;

  void add_to(CLI::App& app);
  Result<OpenOptions> options() const;
  // Opens the model; prints the start-up lines to stderr unless `quiet`.
  struct Wants {
    int64_t max_step_tokens = 512;
    int64_t max_model_len = 0;      // see OpenOptions
    int64_t default_model_len = 0;  // see OpenOptions
    bool text = true;
    bool quiet = false;
  };
  Result<OpenedModel> open(const Wants& wants) const;
};

// The flags of the KV cache.
struct KvFlags {
  std::string dtype = "bf16";
  int64_t max_model_len = 0;
  std::string memory;  // "512MiB", "2GB", bytes

  void add_to(CLI::App& app);
  // Fills max_model_len (what the model was opened for), kv_dtype and kv_memory.
  Result<void> apply(EngineConfig& config, const OpenedModel& model) const;
};

// "512MiB", "2GB", "1000000": bytes.
Result<uint64_t> parse_bytes(const std::string& text, const std::string& flag);

// A text to run a model on; a pipe will do.
Result<std::string> read_prompt_file(const std::string& path);
// Fails unless `text` is UTF-8; `what` names it in the message.
Result<void> check_utf8(const std::string& text, const std::string& what);
// Writes to stdout and hands it over at once.
Result<void> write_stdout(const std::string& text);

// JSON string with quotes.
std::string json_string(const std::string& text);
// A number that JSON can hold: null for NaN and infinity.
std::string json_number(double value);

// The largest resident set of this process so far, in bytes.
uint64_t peak_rss_bytes();

// mx8's version, as `mx8 version` prints it.
const char* version_string();

VerbRunner add_generate(CLI::App& app);
VerbRunner add_quantize(CLI::App& app);
VerbRunner add_eval(CLI::App& app);
VerbRunner add_bench(CLI::App& app);
VerbRunner add_inspect(CLI::App& app);
VerbRunner add_doctor(CLI::App& app);
VerbRunner add_make_dummy(CLI::App& app);
VerbRunner add_version(CLI::App& app);

}  // namespace mx8
