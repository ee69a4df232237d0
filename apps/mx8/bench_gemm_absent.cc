// `mx8 bench gemm` of a program built without the SM90 kernels.
#include "bench_verbs.h"

namespace mx8 {

VerbRunner add_bench_gemm(CLI::App& app) {
  app.allow_extras();
  return []() -> Result<void> {
    return unsupported(
        "bench gemm: this program was built without the SM90 kernels (CMake preset cuda has them)");
  };
}

}  // namespace mx8
