#include "bench_verbs.h"

namespace mx8 {

VerbRunner add_bench(CLI::App& app) {
  app.require_subcommand(1);
  CLI::App* model = app.add_subcommand("model", "Prompt and decode rates of a model");
  CLI::App* kernels =
      app.add_subcommand("kernels", "Matrix kernels against what the machine can do");
  const VerbRunner run_model = add_bench_model(*model);
  const VerbRunner run_kernels = add_bench_kernels(*kernels);
  return [=]() -> Result<void> { return model->parsed() ? run_model() : run_kernels(); };
}

}  // namespace mx8
