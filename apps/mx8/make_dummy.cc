#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "base/text_file.h"
#include "checkpoint/companions.h"
#include "checkpoint/dummy_source.h"
#include "checkpoint/safetensors_writer.h"
#include "common.h"
#include "model/registry.h"

namespace mx8 {

namespace fs = std::filesystem;

namespace {

struct DummyFlags {
  std::string config;
  std::string out;
  uint64_t seed = 0;
  std::string shard_size = "5GB";
};

// The tokenizer and templates, and what says how the weights are stored.
Result<void> copy_texts(const std::string& from, const std::string& to, Companions which) {
  MX8_RETURN_IF_ERROR(copy_companions(from, to, which));
  for (const char* name : {"/config.json", "/hf_quant_config.json"}) {
    if (!file_exists(from + name)) continue;
    std::error_code ec;
    fs::copy_file(from + name, to + name, fs::copy_options::overwrite_existing, ec);
    if (ec) return io_error(str_cat("cannot copy ", from, name, ": ", ec.message()));
  }
  return {};
}

Result<void> run(const DummyFlags& f) {
  const bool is_folder = fs::is_directory(f.config);
  const fs::path folder = is_folder ? fs::path(f.config) : fs::path(f.config).parent_path();
  if (!is_folder && fs::path(f.config).filename() != "config.json") {
    return invalid_argument(str_cat(f.config, " is neither a folder nor a config.json"));
  }
  if (fs::exists(f.out)) return invalid_argument(str_cat(f.out, " exists; choose another folder"));
  MX8_TRY(const uint64_t shard, parse_bytes(f.shard_size, "--shard-size"));
  const std::string source_folder = folder.empty() ? "." : folder.string();
  MX8_TRY(const HfConfig config, read_hf_config(source_folder, supported_architectures()));
  MX8_TRY(const QuantPlan plan, read_quant_plan(source_folder, config));
  MX8_TRY(const std::vector<TensorRequest> requests, list_tensors(config, plan));

  const fs::path partial = fs::path(f.out).lexically_normal().string() + ".partial";
  std::error_code ec;
  fs::remove_all(partial, ec);
  fs::create_directories(partial, ec);
  if (ec) return io_error(str_cat("cannot make ", partial.string(), ": ", ec.message()));
  std::vector<TensorDecl> decls;
  for (const TensorRequest& r : requests) decls.push_back({r.name, r.dtypes.front(), r.shape});
  MX8_TRY(SafetensorsWriter writer,
          SafetensorsWriter::create(partial.string(), decls, shard,
                                    {{"format", "pt"}, {"mx8_dummy_seed", str_cat(f.seed)}}));
  DummySource source(f.seed);
  for (const TensorRequest& r : requests) {
    MX8_TRY(const TensorData data, source.load(r));
    MX8_RETURN_IF_ERROR(writer.write(r.name, data.bytes()));
  }
  MX8_RETURN_IF_ERROR(writer.finish());
  // A lone config.json may lie among files of any kind.
  const Companions which = is_folder ? Companions::kAll : Companions::kNamed;
  MX8_RETURN_IF_ERROR(copy_texts(source_folder, partial.string(), which));
  fs::rename(partial, f.out, ec);
  if (ec) return io_error(str_cat("cannot rename ", partial.string(), ": ", ec.message()));
  std::printf("Wrote %s: %zu tensors, %s, seed %llu\n", f.out.c_str(), requests.size(),
              format_bytes(writer.total_bytes()).c_str(), static_cast<unsigned long long>(f.seed));
  return {};
}

}  // namespace

VerbRunner add_make_dummy(CLI::App& app) {
  auto f = std::make_shared<DummyFlags>();
  app.add_option(
         "config", f->config,
         "Model folder, whose other files come along, or a config.json, with which only the "
         "tokenizer, templates and generation_config.json beside it do")
      ->required();
  app.add_option("out", f->out, "Folder to write")->required();
  app.add_option("--seed", f->seed, "Seed of the weights")->capture_default_str();
  app.add_option("--shard-size", f->shard_size, "Largest weight file")->capture_default_str();
  return [f]() -> Result<void> { return run(*f); };
}

}  // namespace mx8
