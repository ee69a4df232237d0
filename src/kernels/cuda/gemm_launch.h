// A plan with its kernels looked up, and the launch by number of tokens.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/cuda/cublas_api.h"
#include "kernels/cuda/gemm_plan.h"
#include "kernels/cuda/sm80_mxfp8_gemm.h"
#include "kernels/cuda/sm90_mxfp8_gemm.h"
#include "kernels/cuda/sm90_mxfp8_stream.h"
#include "pack/mma_fragment.h"

namespace mx8::cuda {

struct GemmLaunch {
  GemmChoice choice;
  int max_m = 0;
  StreamConfig stream;
  GemmConfig gemm;
  Sm80Config sm80;
};

// Kernels read and write rows 16 bytes at a time. `name`: of the matrix, for the message.
Result<void> check_rows(std::string_view name, const void* rows, int64_t stride,
                        int64_t element_bytes);

class PlannedGemm {
 public:
  // Looks every kernel of `buckets` up in this program; the last reaches problem.max_m.
  static Result<PlannedGemm> make(const FragmentShape& shape, const GemmProblem& problem,
                                  const std::vector<GemmBucket>& buckets);
  // The same for plan_gemm(problem), or for the one kernel that `force` names, as GemmChoice does,
  // at every number of tokens.
  static Result<PlannedGemm> make(const FragmentShape& shape, const GemmProblem& problem,
                                  const std::string& force = "");

  const GemmLaunch& launch_for(int m) const;
  // Scratch for every launch of the plan; zero its first flag_bytes() once. One launch at a time.
  size_t workspace_bytes() const { return workspace_bytes_; }
  static size_t flag_bytes();

  // p.w, x, y and the epilogue are the caller's; the shape fields are filled in here. Asynchronous,
  // no allocation, no synchronisation; capturable. p.m = 0 does nothing.
  Result<void> launch(GemmParams p, void* workspace, cudaStream_t stream, bool pdl) const;

  const FragmentShape& shape() const { return shape_; }
  const GemmProblem& problem() const { return problem_; }
  std::span<const GemmLaunch> launches() const { return launches_; }

 private:
  FragmentShape shape_;
  GemmProblem problem_;
  std::vector<GemmLaunch> launches_;
  size_t workspace_bytes_ = 0;
  CublasLt lt_;
};

}  // namespace mx8::cuda
