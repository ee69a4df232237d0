#include "bench_verbs.h"

namespace mx8 {

VerbRunner add_bench(CLI::App& app) {
  app.require_subcommand(1);
  CLI::App* model = app.add_subcommand("model", "Prompt and decode rates of a model");
  CLI::App* kernels =
      app.add_subcommand("kernels", "Matrix kernels against what the machine can do");
  CLI::App* gemm = app.add_subcommand("gemm", "GPU GEMM kernels against cuBLAS and recorded peers");
  const VerbRunner run_model = add_bench_model(*model);
  const VerbRunner run_kernels = add_bench_kernels(*kernels);
  const VerbRunner run_gemm = add_bench_gemm(*gemm);
  return [=]() -> Result<void> {
    return model->parsed() ? run_model() : gemm->parsed() ? run_gemm() : run_kernels();
  };
}

}  // namespace mx8
