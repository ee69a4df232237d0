#include <cstdio>

#include "common.h"
#include "config.h"

namespace mx8 {

VerbRunner add_version(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Machine-readable");
  return [json]() -> Result<void> {
    if (*json) {
      std::printf("{\"version\": \"%s\", \"compiler\": %s, \"gpu_backend\": %s}\n", MX8_VERSION,
                  json_string(MX8_COMPILER).c_str(), MX8_BUILT_WITH_CUDA ? "true" : "false");
    } else {
      std::printf("mx8 %s (%s, GPU backend %s)\n", MX8_VERSION, MX8_COMPILER,
                  MX8_BUILT_WITH_CUDA ? "built in" : "not built");
    }
    return {};
  };
}

}  // namespace mx8
