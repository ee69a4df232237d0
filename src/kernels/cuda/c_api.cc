// The C ABI of include/mx8/kernels.h over PlannedGemm, the packers and the quantiser.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/strings.h"
#include "kernels/cuda/gemm_launch.h"
#include "kernels/cuda/pack_mma_fragment.h"
#include "kernels/cuda/quantize_tokens.h"
#include "kernels/select.h"
#include "mx8/kernels.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_scope.h"

struct mx8_gemm {
  mx8::cuda::PlannedGemm planned;
  int device = 0;
  std::vector<std::string> names;  // of planned.launches()
};

namespace mx8::cuda {
namespace {

thread_local std::string last_error = "no error";

mx8_status fail(mx8_status status, std::string message) {
  last_error = std::move(message);
  return status;
}
mx8_status fail(const Error& e) {
  const bool unsupported = e.code == ErrorCode::kUnsupported || e.code == ErrorCode::kNotFound;
  const mx8_status status = e.code == ErrorCode::kInvalidArgument ? MX8_INVALID_ARGUMENT
                            : unsupported                         ? MX8_UNSUPPORTED
                                                                  : MX8_CUDA_ERROR;
  return fail(status, e.message);
}
mx8_status fail(const char* what, cudaError_t e) {
  const bool absent = e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver;
  return fail(absent ? MX8_NO_DEVICE : MX8_CUDA_ERROR, str_cat(what, ": ", cudaGetErrorString(e)));
}

// Copies what the caller knows of a struct; fields it does not know stay zero.
template <class T>
bool read_struct(const T* in, T& out) {
  std::memset(static_cast<void*>(&out), 0, sizeof(T));
  if (in == nullptr || in->struct_size < sizeof(uint32_t) || in->struct_size > sizeof(T))
    return false;
  std::memcpy(static_cast<void*>(&out), in, in->struct_size);
  return true;
}
template <class T>
mx8_status bad_struct(const T* in, const char* name) {
  return fail(MX8_INVALID_ARGUMENT, in == nullptr
                                        ? str_cat(name, " is NULL")
                                        : str_cat(name, ": struct_size is ", in->struct_size,
                                                  ", this library knows ", sizeof(T)));
}

Result<FragmentShape> shape_of(const mx8_weight_desc& d) {
  if (d.n < 1 || d.k < 32 || d.k % 32 != 0)
    return invalid_argument(
        str_cat("W is ", d.n, " x ", d.k, ": N must be at least 1 and K a multiple of 32"));
  if (d.gate_up && d.n % 2 != 0) return invalid_argument(str_cat("gate_up with an odd N, ", d.n));
  if (d.activations < MX8_BF16 || d.activations > MX8_FP8)
    return invalid_argument(
        str_cat("activations ", static_cast<int>(d.activations), " is none of mx8_activations"));
  const FragmentKind kind = d.activations == MX8_BF16   ? FragmentKind::kBf16
                            : d.activations == MX8_FP16 ? FragmentKind::kFp16
                                                        : FragmentKind::kFolded;
  return FragmentShape{d.n, d.k, kind, d.gate_up ? RowOrder::kGateUpInterleaved : RowOrder::kPlain};
}

}  // namespace
}  // namespace mx8::cuda

using namespace mx8;        // NOLINT: the C functions below live outside
using namespace mx8::cuda;  // NOLINT

extern "C" {

const char* mx8_last_error(void) { return last_error.c_str(); }
const char* mx8_kernels_version(void) { return MX8_VERSION; }

mx8_status mx8_packed_size(const mx8_weight_desc* desc, size_t* packed_bytes, size_t* row_scales) {
  mx8_weight_desc d;
  if (!read_struct(desc, d)) return bad_struct(desc, "mx8_weight_desc");
  const auto shape = shape_of(d);
  if (!shape.ok()) return fail(shape.error());
  if (packed_bytes) *packed_bytes = static_cast<size_t>(shape->bytes());
  if (row_scales) *row_scales = static_cast<size_t>(shape->row_scales());
  return MX8_OK;
}

mx8_status mx8_pack(const mx8_weight_desc* desc, const void* codes, const void* scales,
                    void* packed, float* row_scales, void* stream) {
  mx8_weight_desc d;
  if (!read_struct(desc, d)) return bad_struct(desc, "mx8_weight_desc");
  const auto shape = shape_of(d);
  if (!shape.ok()) return fail(shape.error());
  if (!codes || !scales || !packed || (shape->row_scales() > 0 && !row_scales))
    return fail(MX8_INVALID_ARGUMENT, "mx8_pack: a pointer is NULL");
  const auto s = static_cast<cudaStream_t>(stream);
  const CudaScope scope(s);
  if (scope.error() != cudaSuccess) return fail("mx8_pack", scope.error());
  const cudaError_t e = pack_mma_fragment_device(*shape, static_cast<const uint8_t*>(codes),
                                                 static_cast<const uint8_t*>(scales),
                                                 static_cast<uint8_t*>(packed), row_scales, s);
  return e == cudaSuccess ? MX8_OK : fail("mx8_pack", e);
}

mx8_status mx8_pack_cpu(const mx8_weight_desc* desc, const void* codes, const void* scales,
                        void* packed, float* row_scales) {
  mx8_weight_desc d;
  if (!read_struct(desc, d)) return bad_struct(desc, "mx8_weight_desc");
  const auto shape = shape_of(d);
  if (!shape.ok()) return fail(shape.error());
  if (!codes || !scales || !packed || (shape->row_scales() > 0 && !row_scales))
    return fail(MX8_INVALID_ARGUMENT, "mx8_pack_cpu: a pointer is NULL");
  const MxView view{static_cast<const uint8_t*>(codes), static_cast<const uint8_t*>(scales), d.n,
                    d.k};
  const auto m = pack_mma_fragment(view, shape->kind, shape->order);
  if (!m.ok()) return fail(m.error());
  std::memcpy(packed, m->records.data(), m->records.size());
  if (!m->row_scales.empty())
    std::memcpy(row_scales, m->row_scales.data(), m->row_scales.size() * sizeof(float));
  return MX8_OK;
}

mx8_status mx8_quantize_tokens(const mx8_quantize_args* args, void* stream) {
  mx8_quantize_args a;
  if (!read_struct(args, a)) return bad_struct(args, "mx8_quantize_args");
  if (a.m < 0 || a.k < 32 || a.k % 32 != 0 || a.k > 32768 || a.ldx < a.k || a.ld_codes < a.k)
    return fail(MX8_INVALID_ARGUMENT,
                str_cat("mx8_quantize_tokens: m ", a.m, ", k ", a.k, ", ldx ", a.ldx, ", ld_codes ",
                        a.ld_codes, ": K is a multiple of 32 up to 32768, rows hold at least K"));
  if (!a.codes || !a.scales || (a.m > 0 && !a.x))
    return fail(MX8_INVALID_ARGUMENT, "mx8_quantize_tokens: a pointer is NULL");
  for (const auto& aligned :
       {check_rows("X", a.x, a.ldx, 2), check_rows("codes", a.codes, a.ld_codes, 1)})
    if (!aligned.ok()) return fail(aligned.error());
  const auto s = static_cast<cudaStream_t>(stream);
  const CudaScope scope(s);
  if (scope.error() != cudaSuccess) return fail("mx8_quantize_tokens", scope.error());
  QuantizeParams q;
  q.x = a.x, q.ldx = a.ldx, q.type = a.x_fp16 ? Act::kFp16 : Act::kBf16;
  q.codes = static_cast<uint8_t*>(a.codes), q.ld_codes = a.ld_codes, q.scales = a.scales;
  q.rule = a.power_of_two ? TokenScale::kPowerOfTwo : TokenScale::kReal;
  q.m = a.m, q.k = a.k;
  const cudaError_t e = quantize_tokens(q, s, false);
  return e == cudaSuccess ? MX8_OK : fail("mx8_quantize_tokens", e);
}

mx8_status mx8_gemm_create(const mx8_gemm_desc* desc, mx8_gemm** plan) {
  mx8_gemm_desc d;
  if (!read_struct(desc, d)) return bad_struct(desc, "mx8_gemm_desc");
  mx8_weight_desc w;
  if (!read_struct(&desc->weight, w)) return bad_struct(&desc->weight, "mx8_gemm_desc.weight");
  const auto shape = shape_of(w);
  if (!shape.ok()) return fail(shape.error());
  if (plan == nullptr || d.max_m < 1)
    return fail(MX8_INVALID_ARGUMENT, "mx8_gemm_create: max_m must be at least 1");
  const auto count = cuda_device_count();  // its reasons say more than cudaGetDevice's
  if (!count.ok()) return fail(MX8_NO_DEVICE, count.error().message);
  int device = 0;
  const cudaError_t e = cudaGetDevice(&device);
  if (e != cudaSuccess) return fail("mx8_gemm_create", e);
  const auto caps = detect_cuda_caps(device);
  if (!caps.ok()) return fail(MX8_NO_DEVICE, caps.error().message);
  LinearProblem layer;
  layer.n = shape->n, layer.k = shape->k, layer.max_m = d.max_m, layer.order = shape->order;
  const GemmProblem problem = gemm_problem(*caps, layer,
                                           w.activations == MX8_FP8 ? ActLayout::kFp8TokenFragment
                                           : w.activations == MX8_FP16 ? ActLayout::kFp16
                                                                       : ActLayout::kBf16);
  if (problem.act == Act::kFp8 && problem.sm != 89 && problem.sm != 90)
    return fail(MX8_UNSUPPORTED, str_cat("MX8_FP8 needs SM89 or SM90, this is SM", problem.sm));
  auto planned = PlannedGemm::make(*shape, problem, d.force_kernel ? d.force_kernel : "");
  if (!planned.ok()) return fail(planned.error());
  auto out = std::make_unique<mx8_gemm>();
  out->planned = std::move(planned).value();
  out->device = device;
  for (const GemmLaunch& l : out->planned.launches()) out->names.push_back(l.choice.name());
  *plan = out.release();
  return MX8_OK;
}

void mx8_gemm_destroy(mx8_gemm* plan) { delete plan; }
size_t mx8_gemm_workspace_size(const mx8_gemm* plan) {
  return plan ? plan->planned.workspace_bytes() : 0;
}

mx8_status mx8_gemm_workspace_init(const mx8_gemm* plan, void* workspace, void* stream) {
  if (!plan || !workspace)
    return fail(MX8_INVALID_ARGUMENT, "mx8_gemm_workspace_init: a pointer is NULL");
  const CudaScope scope(static_cast<cudaStream_t>(stream));
  if (scope.error() != cudaSuccess) return fail("mx8_gemm_workspace_init", scope.error());
  const cudaError_t e =
      cudaMemsetAsync(workspace, 0, PlannedGemm::flag_bytes(), static_cast<cudaStream_t>(stream));
  return e == cudaSuccess ? MX8_OK : fail("mx8_gemm_workspace_init", e);
}

const char* mx8_gemm_kernel(const mx8_gemm* plan, int32_t m) {
  if (!plan || m < 0 || m > plan->planned.problem().max_m) return nullptr;
  const GemmLaunch& l = plan->planned.launch_for(m);
  return plan->names[static_cast<size_t>(&l - plan->planned.launches().data())].c_str();
}

mx8_status mx8_gemm_launch(const mx8_gemm* plan, const mx8_gemm_args* args, void* stream) {
  mx8_gemm_args a;
  if (!read_struct(args, a)) return bad_struct(args, "mx8_gemm_args");
  const bool fp8 = plan && plan->planned.problem().act == Act::kFp8;
  if (!plan || !a.packed || !a.workspace || (a.m > 0 && (!a.x || !a.y)) ||
      (fp8 && !a.token_scales) || (plan->planned.shape().row_scales() > 0 && !a.row_scales))
    return fail(MX8_INVALID_ARGUMENT, "mx8_gemm_launch: a pointer is NULL");
  const auto s = static_cast<cudaStream_t>(stream);
  const CudaScope scope(s);
  if (scope.error() != cudaSuccess) return fail("mx8_gemm_launch", scope.error());
  if (scope.device() != plan->device)
    return fail(MX8_INVALID_ARGUMENT,
                str_cat("mx8_gemm_launch: the plan is for device ", plan->device,
                        ", the stream belongs to device ", scope.device()));
  GemmParams p;
  p.w = static_cast<const uint8_t*>(a.packed), p.row_scale = a.row_scales;
  p.x = a.x, p.ldx = a.ldx, p.token_scale = a.token_scales;
  p.y = a.y, p.ldy = a.ldy, p.out = static_cast<Out>(a.output);
  p.bias = a.bias, p.residual = a.residual, p.ld_residual = a.ld_residual;
  p.m = a.m, p.m_device = a.m_device;
  const auto done = plan->planned.launch(p, a.workspace, s, a.dependent_launch != 0);
  return done.ok() ? MX8_OK : fail(done.error());
}

}  // extern "C"
