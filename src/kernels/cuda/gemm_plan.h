// Which kernel runs a GEMM for each number of tokens: a table measured on an H200, and a rule for
// shapes that are not in it. Pure CPU code: kernels are named here and looked up by the launcher,
// so plans for any GPU can be made and tested anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

// One kernel: family, instance and the way K is shared out. Written "stream/g1w4s3/s4",
// "gemm/128x256/streamk", "gemm/64x64lc/cluster3", "sm80/128x64/s2", "emulation".
struct GemmChoice {
  enum class Family : uint8_t { kStream, kGemm, kSm80, kEmulation };
  enum class Split : uint8_t { kWhole, kStreamK, kStreamKOne, kCluster };
  Family family = Family::kEmulation;
  std::string instance;
  Split split = Split::kWhole;
  int parts = 1;  // stream and sm80: CTAs that share K; cluster: its size

  // Of a name that comes from a user: one that is none is an error.
  static Result<GemmChoice> try_parse(std::string_view name);
  // Of a name that this program made; MX8_CHECK on one that is none.
  static GemmChoice parse(std::string_view name) { return try_parse(name).value(); }
  std::string name() const;
  bool operator==(const GemmChoice&) const = default;
};

struct GemmBucket {
  int max_m = 0;  // inclusive
  GemmChoice choice;
};

struct GemmProblem {
  Act act = Act::kBf16;
  int64_t rows = 0;  // of W (packed)
  int64_t k = 0;
  int max_m = 8192;
  int sm = 90;
  int sms = 132;
};

// Buckets in ascending order of max_m, the last reaching max_m. Deterministic; never looks at a
// device. GPUs without an instruction for the element type get emulation.
std::vector<GemmBucket> plan_gemm(const GemmProblem& problem);
const GemmChoice& choice_for(const std::vector<GemmBucket>& buckets, int m);

// The ratio of BF16 cuBLAS to the planned kernel at the nearest measured shape, for doctor: below 1
// cuBLAS was faster. 0 when nothing comparable was measured: another GPU, FP16, or a shape of which
// no neighbour within a factor of two (four in K) was.
double measured_ratio_to_bf16(const GemmProblem& problem, int m);

// The measured rows behind the plans.
struct GemmMeasurement {
  Act act;
  int rows, k, m;
  const char* kernel;
  float us;         // interleaved median, programmatic dependent launch
  float cublas_us;  // BF16 cuBLAS in the same process, interleaved
};
const std::vector<GemmMeasurement>& gemm_measurements();

}  // namespace mx8::cuda
