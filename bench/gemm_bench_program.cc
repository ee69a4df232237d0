#include "gemm_bench.h"

int main(int argc, char** argv) { return mx8::bench::gemm_bench_main(argc, argv); }
