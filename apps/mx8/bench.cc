#include "bench_verbs.h"

namespace mx8 {

VerbRunner add_bench(CLI::App& app) {
  app.require_subcommand(1);
  CLI::App* model = app.add_subcommand("model", "Prompt and decode rates of a model");
  return add_bench_model(*model);
}

}  // namespace mx8
