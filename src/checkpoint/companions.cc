#include "checkpoint/companions.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/strings.h"

namespace mx8 {
namespace {

namespace fs = std::filesystem;

bool is_companion(const std::string& name) {
  constexpr std::array<std::string_view, 8> kWeights = {
      ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"};
  const bool weights = std::any_of(kWeights.begin(), kWeights.end(),
                                   [&](std::string_view suffix) { return name.ends_with(suffix); });
  return !weights && name != "config.json" && name != "hf_quant_config.json" &&
         !name.ends_with(".index.json") && !name.starts_with(".");
}

bool is_named_companion(const std::string& name) {
  return name == "generation_config.json" ||
         (name.starts_with("tokenizer") && name.ends_with(".json")) ||
         (name.starts_with("chat_template") && name.ends_with(".jinja"));
}

}  // namespace

Result<void> copy_companions(const std::string& from, const std::string& to, Companions which) {
  const auto wanted = which == Companions::kAll ? is_companion : is_named_companion;
  std::error_code error;
  fs::directory_iterator entries(from, error);
  if (error) return io_error(str_cat("cannot list ", from, ": ", error.message()));
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    const std::string name = path.filename().string();
    if (!wanted(name) || !entries->is_regular_file(error)) continue;
    fs::copy_file(path, fs::path(to) / name, fs::copy_options::overwrite_existing, error);
    if (error) return io_error(str_cat("cannot copy ", path.string(), ": ", error.message()));
  }
  if (error) return io_error(str_cat("cannot list ", from, ": ", error.message()));
  return {};
}

}  // namespace mx8
