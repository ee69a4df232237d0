#include "quantizer/quantizer.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "base/strings.h"
#include "base/text_file.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/companions.h"
#include "checkpoint/config_writer.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/quant_config.h"
#include "checkpoint/safetensors_writer.h"
#include "mx/e8m0.h"
#include "pack/quantize_matrix.h"
#include "quantizer/plan.h"
#include "tensor/plain_values.h"

namespace mx8 {

namespace fs = std::filesystem;

namespace {

Result<std::string> set_tied(const std::string& config, bool tied) {
  auto json = nlohmann::ordered_json::parse(config, nullptr, false);
  if (json.is_discarded()) return internal_error("the config to write is not JSON");
  json["tie_word_embeddings"] = tied;
  return json.dump(2) + "\n";
}

// Removes the folder, if it is still there, at the end.
class PartialFolder {
 public:
  explicit PartialFolder(fs::path path) : path_(std::move(path)) {}
  ~PartialFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Whether `path` is `folder` or lies in it; both must be canonical.
bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

// What `out` names: links followed, without a slash at the end. Refused where something is there
// that may not be replaced.
Result<fs::path> output_folder(const std::string& in, const std::string& out, bool overwrite) {
  std::error_code ec;
  fs::path path = fs::weakly_canonical(fs::absolute(out, ec), ec);
  if (!path.has_filename()) path = path.parent_path();
  if (out.empty() || ec) {
    return invalid_argument(str_cat("the output folder '", out, "' cannot be made"));
  }
  const fs::file_status there = fs::symlink_status(path, ec);
  if (!fs::exists(there)) return path;
  if (!fs::is_directory(there)) {
    return invalid_argument(str_cat(out, " is there and is not a folder; choose another name"));
  }
  if (lies_in(fs::canonical(in, ec), path)) {
    return invalid_argument(str_cat("the result cannot replace its source, ", in));
  }
  if (fs::is_empty(path, ec)) return path;
  if (!overwrite) {
    return invalid_argument(str_cat(out, " exists; choose another folder or pass --overwrite"));
  }
  if (!fs::exists(path / "config.json", ec)) {
    return invalid_argument(str_cat(out,
                                    " holds files but no config.json: it is no checkpoint, and"
                                    " --overwrite replaces nothing else"));
  }
  return path;
}

// Puts the finished folder in the place of `out`. Where the file system can, an old folder and the
// new one change places in one step; what `partial` then names is removed later.
Result<void> move_into_place(const fs::path& partial, const fs::path& out) {
  std::error_code ec;
  if (fs::exists(out, ec)) {
    if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, out.c_str(), RENAME_EXCHANGE) == 0) {
      return {};
    }
    fs::remove_all(out, ec);
  }
  fs::rename(partial, out, ec);
  if (!ec) return {};
  return io_error(
      str_cat("cannot rename ", partial.string(), " to ", out.string(), ": ", ec.message()));
}

std::vector<TensorDecl> declare(const CheckpointReader& reader, const QuantizePlan& plan) {
  std::vector<TensorDecl> decls;
  for (const PlannedTensor& t : plan.tensors) {
    const TensorInfo& info = *reader.find(t.source);
    if (t.module.empty()) {
      decls.push_back({info.name, info.dtype, info.shape});
    } else {
      decls.push_back({t.module + ".weight", DType::kF8E4M3, info.shape});
      decls.push_back(
          {t.module + ".weight_scale", DType::kU8, {info.shape[0], info.shape[1] / kMxBlock}});
    }
  }
  return decls;
}

std::span<const std::byte> as_bytes(const std::vector<uint8_t>& v) {
  return {reinterpret_cast<const std::byte*>(v.data()), v.size()};
}

// Re-reads what was written and recomputes up to 64 random blocks a tensor from the source.
Result<int64_t> verify(CheckpointReader& source, const std::string& out, const QuantizePlan& plan,
                       ScaleRule rule) {
  MX8_TRY(std::unique_ptr<CheckpointReader> written, CheckpointReader::open(out));
  std::mt19937_64 rng(20260101);
  int64_t verified = 0;
  for (const PlannedTensor& t : plan.tensors) {
    MX8_TRY(const TensorData original, source.load_whole(t.source));
    if (t.module.empty()) {
      MX8_TRY(const TensorData copy, written->load_whole(t.source));
      if (!std::ranges::equal(original.bytes(), copy.bytes())) {
        return corrupt(str_cat(out, ": ", t.source, " differs from its source after writing"));
      }
      written->release(t.source);
    } else {
      MX8_TRY(const TensorData codes, written->load_whole(t.module + ".weight"));
      MX8_TRY(const TensorData scales, written->load_whole(t.module + ".weight_scale"));
      const int64_t blocks = original.elements() / kMxBlock;
      for (int i = 0; i < 64 && i < blocks; ++i) {
        const int64_t b = static_cast<int64_t>(rng() % static_cast<uint64_t>(blocks));
        float values[kMxBlock];
        uint8_t want[kMxBlock];
        plain_to_f32(original.dtype(), original.bytes().data(), b * kMxBlock, kMxBlock, values);
        const uint8_t scale = mx_quantize_block(values, rule, want);
        const uint8_t* got = codes.as<uint8_t>().data() + b * kMxBlock;
        if (scale != scales.as<uint8_t>()[b] || !std::equal(want, want + kMxBlock, got)) {
          return corrupt(
              str_cat(out, ": block ", b, " of ", t.module, " differs from what its source gives"));
        }
        ++verified;
      }
      written->release(t.module + ".weight");
      written->release(t.module + ".weight_scale");
    }
    source.release(t.source);
  }
  return verified;
}

// Writes config.json last: without it no loader takes the folder for a model.
Result<void> write_configs(const std::string& in, const fs::path& out, const QuantizePlan& plan,
                           const QuantizeOptions& options) {
  QuantDescription description;
  description.activations = options.activations;
  description.ignore = plan.plain_modules;
  description.producer_version = options.version;
  const bool modelopt = options.format == CheckpointFormat::kModelOpt;
  if (modelopt) {
    MX8_RETURN_IF_ERROR(write_file_atomic((out / "hf_quant_config.json").string(),
                                          modelopt_side_file(description)));
  }
  const std::string path = (fs::path(in) / "config.json").string();
  MX8_TRY(const std::string text, read_text_file(path, kMaxConfigBytes));
  MX8_TRY(std::string config,
          with_quantization_config(
              text, path,
              modelopt ? modelopt_config(description) : compressed_tensors_config(description)));
  if (plan.unties_head) {
    MX8_TRY(config, set_tied(config, false));
  }
  return write_file_atomic((out / "config.json").string(), config);
}

Result<void> write_tensors(CheckpointReader& reader, const QuantizePlan& plan,
                           const QuantizeOptions& options, ThreadPool& pool,
                           SafetensorsWriter& writer, QuantizeReport& report) {
  QuantError error;
  uint64_t done = 0, total = 0;
  for (const PlannedTensor& t : plan.tensors) total += reader.find(t.source)->bytes();
  for (const PlannedTensor& t : plan.tensors) {
    MX8_TRY(const TensorData data, reader.load_whole(t.source));
    if (t.module.empty()) {
      MX8_RETURN_IF_ERROR(writer.write(t.source, data.bytes()));
    } else {
      if (!is_plain_dtype(data.dtype())) {
        return unsupported(str_cat(t.source, " is ", dtype_name(data.dtype()),
                                   "; BF16, F16 and F32 weights can be quantised"));
      }
      const QuantView view = {data.bytes().data(), nullptr, data.shape()[0], data.shape()[1],
                              QuantScheme::plain(data.dtype())};
      const MxMatrix mx = quantize_matrix(view, options.scale_rule, pool, &error);
      if (std::ranges::find(mx.scales, kE8m0Nan) != mx.scales.end()) {
        return invalid_argument(str_cat(t.source, " holds NaN or infinity: the source is damaged"));
      }
      MX8_RETURN_IF_ERROR(writer.write(t.module + ".weight", as_bytes(mx.codes)));
      MX8_RETURN_IF_ERROR(writer.write(t.module + ".weight_scale", as_bytes(mx.scales)));
      ++report.quantised_modules;
    }
    done += data.bytes().size();
    reader.release(t.source);
    if (options.progress) options.progress(done, total, t.source);
  }
  report.relative_error = error.norm > 0 ? std::sqrt(error.error / error.norm) : 0;
  return {};
}

}  // namespace

Result<QuantizeReport> quantize_checkpoint(const std::string& in, const std::string& out,
                                           const QuantizeOptions& options, ThreadPool& pool) {
  MX8_TRY(const HfConfig config, read_hf_config(in, {}));
  MX8_TRY(const QuantPlan source_plan, read_quant_plan(in, config));
  if (source_plan.quantised()) {
    return invalid_argument(str_cat(in, " is already quantised (", source_plan.dialect(),
                                    "); quantise its BF16 original"));
  }
  MX8_TRY(const fs::path target, output_folder(in, out, options.overwrite));
  MX8_TRY(std::unique_ptr<CheckpointReader> reader, CheckpointReader::open(in));
  MX8_TRY(const QuantizePlan plan, plan_quantisation(*reader, config.tie_word_embeddings, options));

  const PartialFolder partial(target.string() + ".partial");
  std::error_code ec;
  fs::remove_all(partial.path(), ec);
  fs::create_directories(partial.path(), ec);
  if (ec) return io_error(str_cat("cannot make ", partial.path().string(), ": ", ec.message()));

  QuantizeReport report;
  report.plain_modules = plan.plain_modules;
  report.bytes_in = reader->total_bytes();
  {
    const SafetensorsMetadata metadata = {
        {"format", "pt"},
        {"mx8_version", options.version},
        {"mx8_scale_rule", std::string(scale_rule_name(options.scale_rule))}};
    MX8_TRY(SafetensorsWriter writer,
            SafetensorsWriter::create(partial.path().string(), declare(*reader, plan),
                                      options.max_shard_bytes, metadata));
    MX8_RETURN_IF_ERROR(write_tensors(*reader, plan, options, pool, writer, report));
    MX8_RETURN_IF_ERROR(writer.finish());
    report.bytes_out = writer.total_bytes();
    report.files = writer.files();
  }
  if (options.verify) {
    MX8_TRY(report.verified_blocks,
            verify(*reader, partial.path().string(), plan, options.scale_rule));
  }
  MX8_RETURN_IF_ERROR(copy_companions(in, partial.path().string()));
  MX8_RETURN_IF_ERROR(write_configs(in, partial.path(), plan, options));
  MX8_RETURN_IF_ERROR(move_into_place(partial.path(), target));
  return report;
}

}  // namespace mx8
