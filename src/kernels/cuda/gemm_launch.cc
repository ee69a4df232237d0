#include "kernels/cuda/gemm_launch.h"

#include <algorithm>

#include "base/strings.h"
#include "kernels/cuda/emulated_gemm.h"

namespace mx8::cuda {
namespace {

// The instance named `name`, or -1.
template <class Count, class Info>
int find_instance(Act act, const std::string& name, Count count, Info info) {
  for (int i = 0; i < count(act); ++i)
    if (name == info(act, i).name) return i;
  return -1;
}

// "" or why the GPU, the element type or K rules a kernel out. Plans never meet this; kernels that
// a user forces do.
std::string refusal(const GemmChoice& c, const GemmProblem& problem) {
  using Family = GemmChoice::Family;
  const int64_t k_records = fragment_k_records(problem.k);
  switch (c.family) {
    case Family::kStream:
    case Family::kGemm:
      if (problem.sm != 90) return str_cat("runs on SM90, this is SM", problem.sm);
      return c.parts <= 8 ? "" : "shares K among at most 8";
    case Family::kSm80:
      if (problem.act == Act::kFp8 && problem.sm != 89 && problem.sm != 90)
        return str_cat("needs SM89 or SM90 for FP8 activations, this is SM", problem.sm);
      if (problem.sm < 80) return str_cat("needs SM80 or later, this is SM", problem.sm);
      if (c.instance != "128x16" && c.instance != "128x64" && c.instance != "128x128")
        return "does not exist; sm80 has the tiles 128x16, 128x64 and 128x128";
      if (c.parts > 16 || c.parts > k_records)
        return str_cat("shares K = ", problem.k, " among at most ",
                       std::min<int64_t>(16, k_records));
      return "";
    case Family::kEmulation:
      if (problem.act != Act::kFp8) return "";
      return problem.sm == 89 || problem.sm == 90
                 ? "does not take FP8 activations"
                 : str_cat("does not take FP8 activations, and SM", problem.sm,
                           " has no kernel that does; 16-bit activations would run");
  }
  return "";
}

Result<GemmLaunch> look_up(const GemmProblem& problem, const GemmBucket& bucket) {
  GemmLaunch l;
  l.choice = bucket.choice;
  l.max_m = bucket.max_m;
  const GemmChoice& c = bucket.choice;
  const std::string reason = refusal(c, problem);
  if (!reason.empty()) return unsupported(str_cat(c.name(), " ", reason));
  int index = 0;
#ifdef MX8_CUDA_SM90
  const Act act = problem.act;
  if (c.family == GemmChoice::Family::kStream) {
    index = find_instance(act, c.instance, stream_variant_count, stream_variant);
    l.stream = {index, c.parts};
    if (index >= 0 && bucket.max_m > stream_variant(act, index).max_tokens)
      return invalid_argument(
          str_cat(c.name(), " takes at most ", stream_variant(act, index).max_tokens, " tokens"));
  } else if (c.family == GemmChoice::Family::kGemm) {
    index = find_instance(act, c.instance, gemm_variant_count, gemm_variant);
    l.gemm = {index, static_cast<GemmSplit>(c.split), c.parts};
    if (index >= 0 && !gemm_variant(act, index).takes(l.gemm.split))
      return invalid_argument(str_cat(c.name(), " does not exist"));
    const int64_t steps =
        index < 0 ? c.parts
                  : fragment_k_records(problem.k) * kFragmentCols / gemm_variant(act, index).tile_k;
    if (c.parts > steps)
      return invalid_argument(
          str_cat(c.name(), " shares K = ", problem.k, " among at most ", steps));
  }
#else
  if (c.family == GemmChoice::Family::kStream || c.family == GemmChoice::Family::kGemm) index = -1;
#endif
  if (c.family == GemmChoice::Family::kSm80) l.sm80 = {std::atoi(c.instance.c_str() + 4), c.parts};
  if (index < 0) return not_found(str_cat(c.name(), " is not part of this program"));
  return l;
}

size_t workspace_of(const GemmLaunch& l, const FragmentShape& shape, const GemmProblem& problem) {
  GemmParams p;
  p.m = l.max_m, p.row_blocks = static_cast<int>(shape.row_blocks());
  switch (l.choice.family) {
    case GemmChoice::Family::kStream:
      return 0;
#ifdef MX8_CUDA_SM90
    case GemmChoice::Family::kGemm:
      return gemm_workspace_bytes(problem.sms);
#else
    case GemmChoice::Family::kGemm:
      return 0;
#endif
    case GemmChoice::Family::kSm80:
      return sm80_workspace_bytes(p, l.sm80);
    case GemmChoice::Family::kEmulation:
      break;
  }
  return PlannedGemm::flag_bytes() + emulation_workspace_bytes(shape, p);
}

Result<void> checked(cudaError_t e, const GemmLaunch& l, const GemmParams& p) {
  if (e == cudaSuccess) return {};
  return internal_error(str_cat(l.choice.name(), " for M ", p.m, ", N ", p.n, ", K ", p.k, ": ",
                                cudaGetErrorString(e)));
}

}  // namespace

Result<void> check_rows(std::string_view name, const void* rows, int64_t stride,
                        int64_t element_bytes) {
  const uintptr_t past = reinterpret_cast<uintptr_t>(rows) % 16;
  if (past == 0 && stride * element_bytes % 16 == 0) return {};
  return invalid_argument(str_cat("rows of ", name,
                                  " must be 16-byte aligned, found an address of ", past,
                                  " mod 16 and a row stride of ", stride, " elements of ",
                                  element_bytes, element_bytes == 1 ? " byte" : " bytes"));
}

size_t PlannedGemm::flag_bytes() { return sm80_ticket_bytes(); }

Result<PlannedGemm> PlannedGemm::make(const FragmentShape& shape, const GemmProblem& problem,
                                      const std::string& force) {
  if (force.empty()) return make(shape, problem, plan_gemm(problem));
  MX8_TRY(GemmChoice choice, GemmChoice::try_parse(force));
  return make(shape, problem, {{problem.max_m, std::move(choice)}});
}

Result<PlannedGemm> PlannedGemm::make(const FragmentShape& shape, const GemmProblem& problem,
                                      const std::vector<GemmBucket>& buckets) {
  MX8_CHECK(!buckets.empty() && buckets.back().max_m == problem.max_m, problem.max_m);
  PlannedGemm g;
  g.shape_ = shape;
  g.problem_ = problem;
  for (const GemmBucket& b : buckets) {
    MX8_TRY(GemmLaunch l, look_up(problem, b));
    g.workspace_bytes_ = std::max(g.workspace_bytes_, workspace_of(l, shape, problem));
    g.launches_.push_back(std::move(l));
  }
  g.workspace_bytes_ = std::max(g.workspace_bytes_, flag_bytes());
  const bool library = std::any_of(g.launches_.begin(), g.launches_.end(), [](const GemmLaunch& l) {
    return l.choice.family == GemmChoice::Family::kEmulation;
  });
  if (library) {
    auto lt = CublasLt::create();
    if (!lt.ok()) return lt.error();
    g.lt_ = std::move(lt).value();
  }
  return g;
}

const GemmLaunch& PlannedGemm::launch_for(int m) const {
  for (const GemmLaunch& l : launches_)
    if (m <= l.max_m) return l;
  MX8_CHECK(false, "more tokens than planned for", m, problem_.max_m);
  return launches_.back();
}

Result<void> PlannedGemm::launch(GemmParams p, void* workspace, cudaStream_t stream,
                                 bool pdl) const {
  if (p.m < 0 || p.m > problem_.max_m)
    return invalid_argument(str_cat(p.m, " tokens, planned for at most ", problem_.max_m));
  p.silu_mul = shape_.order == RowOrder::kGateUpInterleaved;
  p.n = static_cast<int>(p.silu_mul ? shape_.n / 2 : shape_.n);
  p.k = static_cast<int>(shape_.k);
  p.row_blocks = static_cast<int>(shape_.row_blocks());
  p.k_records = static_cast<int>(shape_.k_records());
  if (p.m == 0) return {};
  MX8_RETURN_IF_ERROR(check_rows("X", p.x, p.ldx, problem_.act == Act::kFp8 ? 1 : 2));
  if (p.out == Out::kFp32 && p.residual)
    return invalid_argument("an FP32 output takes no residual");
  const GemmLaunch& l = launch_for(p.m);
  switch (l.choice.family) {
#ifdef MX8_CUDA_SM90
    case GemmChoice::Family::kStream:
      return checked(launch_sm90_mxfp8_stream(problem_.act, p, l.stream, stream, pdl), l, p);
    case GemmChoice::Family::kGemm:
      return checked(
          launch_sm90_mxfp8_gemm(problem_.act, p, l.gemm, problem_.sms, workspace, stream, pdl), l,
          p);
#else
    case GemmChoice::Family::kStream:
    case GemmChoice::Family::kGemm:
      break;
#endif
    case GemmChoice::Family::kSm80:
      return checked(launch_sm80_mxfp8_gemm(problem_.act, p, l.sm80, workspace, stream), l, p);
    case GemmChoice::Family::kEmulation:
      return emulated_gemm(lt_, problem_.act, shape_, p,
                           static_cast<char*>(workspace) + flag_bytes(),
                           workspace_bytes_ - flag_bytes(), stream);
  }
  return internal_error(str_cat(l.choice.name(), " is not part of this program"));
}

}  // namespace mx8::cuda
