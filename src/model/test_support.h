// For the tests of this layer: models from folders, a KV cache, sequences fed in any pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/quant_config.h"
#include "model/model.h"
#include "model/registry.h"
#include "runtime/exec.h"

namespace mx8::test {

// The folder of committed test data.
std::string data_folder(const std::string& name);
// The names of the folders inside a folder, sorted.
std::vector<std::string> folders_in(const std::string& folder);

// What Transformers computes for one prompt.
struct Golden {
  std::vector<int32_t> ids;
  std::vector<float> logits;  // [ids, vocab]
  std::vector<int32_t> greedy;
};
std::vector<Golden> read_goldens(const std::string& path);

// Threads, workspace and instruction set of a test. `isa` "" is the best of this machine.
struct Machine {
  explicit Machine(int threads = 2, const std::string& isa = "");
  DeviceCaps caps;
  ThreadPool pool;
  Arena arena;
  Exec exec;
};

struct ModelOptions {
  LoadMode mode = LoadMode::kAuto;
  OnlineQuant online;
  int64_t max_context = 0;
};
Result<std::unique_ptr<Model>> load_folder(const std::string& folder, Machine& machine,
                                           const ModelOptions& options = {});

// Sequences with a KV cache, whose pages lie neither in order nor together.
class Session {
 public:
  Session(Model& model, Machine& machine, DType kv_dtype, int sequences = 1, int page_size = 16,
          int max_tokens = 128);

  struct Feed {
    int sequence = 0;
    std::vector<int32_t> ids;
  };
  // One forward pass with the next tokens of some sequences, each named at most once. The logits of
  // all of them, in order: [rows, vocab].
  std::vector<float> step(const std::vector<Feed>& feeds);
  // Feeds one sequence in pieces of `chunk` tokens.
  std::vector<float> feed(const std::vector<int32_t>& ids, size_t chunk, int sequence = 0);

 private:
  Model& model_;
  Machine& machine_;
  int page_size_;
  int max_pages_;
  std::vector<std::vector<int32_t>> pages_;  // per sequence
  std::vector<int32_t> lengths_;
  std::vector<Buffer> memory_;
  std::vector<KvLayer> layers_;
};

}  // namespace mx8::test
