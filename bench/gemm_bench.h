// The GEMM benchmark, as the program mx8_gemm_bench and as the verb `mx8 bench gemm`.
#pragma once

namespace mx8::bench {

// Arguments as a program's (argv[0] is ignored); gemm_bench.cc lists them. The exit status.
int gemm_bench_main(int argc, char** argv);

}  // namespace mx8::bench
