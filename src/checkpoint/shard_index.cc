#include "checkpoint/shard_index.h"

#include <algorithm>

#include "base/strings.h"
#include "checkpoint/json.h"

namespace mx8 {

namespace {

// A name that stays inside the folder.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& path) {
  MX8_TRY(const json::Json root, json::parse(text, path));
  if (!root.is_object()) return corrupt(str_cat(path, ": it must hold a JSON object"));
  MX8_TRY(const auto map, json::Fields(root, path).object("weight_map"));
  if (!map || map->json().empty()) {
    return corrupt(str_cat(path,
                           ": \"weight_map\" is missing or empty; it must map every tensor "
                           "to its file"));
  }
  ShardIndex index;
  for (const auto& [tensor, file] : map->json().items()) {
    if (!file.is_string() || !is_plain_file_name(file.get<std::string>())) {
      return corrupt(str_cat(path, ": tensor \"", tensor, "\" is mapped to ", json::shown(file),
                             "; it must be the name of a file in the same folder"));
    }
    index.files.push_back(file.get<std::string>());
  }
  std::sort(index.files.begin(), index.files.end());
  index.files.erase(std::unique(index.files.begin(), index.files.end()), index.files.end());
  for (const auto& [tensor, file] : map->json().items()) {
    const auto at = std::lower_bound(index.files.begin(), index.files.end(),
                                     file.get_ref<const std::string&>());
    index.tensors.emplace_back(tensor, static_cast<uint32_t>(at - index.files.begin()));
  }
  std::sort(index.tensors.begin(), index.tensors.end());
  return index;
}

}  // namespace mx8
