// The verbs below `mx8 bench`.
#pragma once

#include "common.h"

namespace mx8 {

VerbRunner add_bench_model(CLI::App& app);
VerbRunner add_bench_kernels(CLI::App& app);
VerbRunner add_bench_gemm(CLI::App& app);

}  // namespace mx8
