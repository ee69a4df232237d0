#include "model/raw_checkpoint.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/safetensors_writer.h"

namespace mx8::test {

namespace fs = std::filesystem;

namespace {

template <class T>
T value_of(Result<T> result) {
  MX8_CHECK(result.ok(), result.error().message);
  return std::move(result).value();
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  MX8_CHECK(in.good(), path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

RawCheckpoint read_checkpoint(const std::string& folder) {
  RawCheckpoint out;
  out.config = read_text(folder + "/config.json");
  const auto reader = value_of(CheckpointReader::open(folder));
  for (const TensorInfo& info : reader->tensors()) {
    const TensorData data = value_of(reader->load_whole(info.name));
    out.tensors[info.name] = {info.dtype, info.shape, {data.bytes().begin(), data.bytes().end()}};
  }
  return out;
}

void write_checkpoint(const RawCheckpoint& checkpoint, const std::string& folder) {
  fs::create_directories(folder);
  std::ofstream(folder + "/config.json") << checkpoint.config;
  std::vector<TensorDecl> declared;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    declared.push_back({name, tensor.dtype, tensor.shape});
  }
  SafetensorsWriter writer =
      value_of(SafetensorsWriter::create(folder, declared, uint64_t{1} << 40, {{"format", "pt"}}));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto written = writer.write(name, tensor.bytes);
    MX8_CHECK(written.ok(), written.error().message);
  }
  const auto finished = writer.finish();
  MX8_CHECK(finished.ok(), finished.error().message);
}

void set_field(RawCheckpoint& checkpoint, const std::string& field, const std::string& value) {
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(checkpoint.config);
  if (value.empty()) {
    config.erase(field);
  } else {
    config[field] = nlohmann::ordered_json::parse(value);
  }
  checkpoint.config = config.dump(2);
}

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "mx8_test_XXXXXX").string();
  MX8_CHECK(mkdtemp(pattern.data()) != nullptr, pattern);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace mx8::test
