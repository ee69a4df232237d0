// Turns a BF16, FP16 or FP32 checkpoint folder into an MXFP8 one, tensor by tensor: the memory it
// needs is that of the largest tensor and a constant. Rounding is to nearest; no calibration data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mx/block.h"
#include "runtime/thread_pool.h"
#include "tensor/quant.h"

namespace mx8 {

enum class CheckpointFormat : uint8_t { kCompressedTensors, kModelOpt };

struct QuantizeOptions {
  CheckpointFormat format = CheckpointFormat::kCompressedTensors;
  ScaleRule scale_rule = ScaleRule::kRceil;
  ActivationScheme activations =
      ActivationScheme::kDynamicMxfp8;  // what the written config asks for
  // Regular expressions, searched for in module names ("model.layers.0.mlp.down_proj"). Linear
  // layers of the blocks are quantised; lm_head, embeddings and routers only if `include` matches;
  // what `exclude` matches never is.
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  uint64_t max_shard_bytes = uint64_t{5} << 30;
  bool overwrite = false;  // replace an existing output folder
  bool verify = false;     // re-read the result and recompute random blocks of every tensor
  std::string version;     // of mx8, for the metadata
  // Called after each tensor with the bytes read so far and in all.
  std::function<void(uint64_t done, uint64_t total, const std::string& tensor)> progress;
};

struct QuantizeReport {
  int64_t quantised_modules = 0;
  std::vector<std::string> plain_modules;  // linear layers that stayed as they were
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  // ||quantised - original||_F / ||original||_F over all quantised weights.
  double relative_error = 0;
  int64_t verified_blocks = 0;
  std::vector<std::string> files;  // weight files written
};

// `out` must not exist or be empty; with options.overwrite it may also be a checkpoint, which stays
// until the new one is complete, but never hold `in`. The work is done in "<out>.partial", which is
// renamed at the end: an interrupted run leaves nothing that looks like a model.
Result<QuantizeReport> quantize_checkpoint(const std::string& in, const std::string& out,
                                           const QuantizeOptions& options, ThreadPool& pool);

// What the name of a module says about it. For tests and `inspect`.
enum class ModuleRole : uint8_t { kBlockLinear, kRouter, kLmHead, kEmbedding, kOther };
ModuleRole module_role(const std::string& module);

}  // namespace mx8
