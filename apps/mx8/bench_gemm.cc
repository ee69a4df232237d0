// `mx8 bench gemm`: hands its arguments to the GEMM benchmark.
#include <vector>

#include "bench_verbs.h"
#include "gemm_bench.h"

namespace mx8 {

VerbRunner add_bench_gemm(CLI::App& app) {
  app.allow_extras();
  app.prefix_command();
  return [&app]() -> Result<void> {
    std::vector<std::string> words = {"mx8 bench gemm"};
    for (std::string& word : app.remaining()) words.push_back(std::move(word));
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    const int status = bench::gemm_bench_main(static_cast<int>(argv.size()), argv.data());
    if (status != 0)
      return internal_error("bench gemm: a result was wrong or a library is missing (above)");
    return {};
  };
}

}  // namespace mx8
