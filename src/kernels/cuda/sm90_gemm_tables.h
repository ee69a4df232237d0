// The compiled instances, a few to a unit so that units build in parallel.
#pragma once

#include <span>

namespace mx8::cuda {

struct GemmEntry;
using GemmEntries = std::span<const GemmEntry>;

GemmEntries sm90_gemm_entries_bf16_few();
GemmEntries sm90_gemm_entries_bf16_many();
GemmEntries sm90_gemm_entries_bf16_odd();
GemmEntries sm90_gemm_entries_bf16_light();
GemmEntries sm90_gemm_entries_bf16_cluster();
GemmEntries sm90_gemm_entries_fp8_few();
GemmEntries sm90_gemm_entries_fp8_many();
GemmEntries sm90_gemm_entries_fp8_odd();
GemmEntries sm90_gemm_entries_fp8_light();
GemmEntries sm90_gemm_entries_fp8_cluster();
GemmEntries sm90_gemm_entries_fp16();

}  // namespace mx8::cuda
