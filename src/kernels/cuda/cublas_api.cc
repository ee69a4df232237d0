#include "kernels/cuda/cublas_api.h"

#include <dlfcn.h>

#include <utility>

#include "base/strings.h"
#include "runtime/cuda_device.h"

namespace mx8::cuda {
namespace {

template <class F>
bool bind(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(dlsym(library, name));
  return f != nullptr;
}

Result<const CublasLtApi*> open_api() {
  static CublasLtApi api;
  MX8_TRY(void* lib, cublaslt_library());
  const bool all = bind(lib, "cublasLtCreate", api.create) &&
                   bind(lib, "cublasLtDestroy", api.destroy) &&
                   bind(lib, "cublasLtMatmul", api.matmul) &&
                   bind(lib, "cublasLtMatmulDescCreate", api.desc_create) &&
                   bind(lib, "cublasLtMatmulDescDestroy", api.desc_destroy) &&
                   bind(lib, "cublasLtMatmulDescSetAttribute", api.desc_set) &&
                   bind(lib, "cublasLtMatrixLayoutCreate", api.layout_create) &&
                   bind(lib, "cublasLtMatrixLayoutDestroy", api.layout_destroy) &&
                   bind(lib, "cublasLtMatmulPreferenceCreate", api.preference_create) &&
                   bind(lib, "cublasLtMatmulPreferenceDestroy", api.preference_destroy) &&
                   bind(lib, "cublasLtMatmulPreferenceSetAttribute", api.preference_set) &&
                   bind(lib, "cublasLtMatmulAlgoGetHeuristic", api.heuristic);
  if (!all) return unsupported("cuBLASLt lacks a function that mx8 calls");
  return &api;
}

// Frees a cuBLASLt object at the end of a scope.
template <class T>
struct Scoped {
  T object = nullptr;
  cublasStatus_t (*destroy)(T) = nullptr;
  ~Scoped() {
    if (object) destroy(object);
  }
};

Error failed(const char* what, cublasStatus_t status, const LtGemm& g) {
  return internal_error(str_cat("cuBLASLt: ", what, " failed with status ",
                                static_cast<int>(status), " for M ", g.m, ", N ", g.n, ", K ",
                                g.k));
}

}  // namespace

Result<const CublasLtApi*> cublaslt_api() {
  static const Result<const CublasLtApi*> api = open_api();
  return api;
}

Result<CublasLt> CublasLt::create() {
  CublasLt lt;
  MX8_TRY(lt.api_, cublaslt_api());
  const cublasStatus_t status = lt.api_->create(&lt.handle_);
  if (status != CUBLAS_STATUS_SUCCESS)
    return internal_error(str_cat("cuBLASLt: no handle, status ", static_cast<int>(status)));
  return lt;
}

CublasLt::CublasLt(CublasLt&& other) noexcept { *this = std::move(other); }
CublasLt& CublasLt::operator=(CublasLt&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(handle_, other.handle_);
  return *this;
}
CublasLt::~CublasLt() {
  if (handle_) api_->destroy(handle_);
}

// cuBLASLt is column-major: D^T [n, m] = B [n, k] * A^T, so B comes first, transposed.
Result<void> CublasLt::matmul(const LtGemm& g, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) const {
  if (g.m == 0 || g.n == 0) return {};
  Scoped<cublasLtMatmulDesc_t> desc{nullptr, api_->desc_destroy};
  cublasStatus_t s = api_->desc_create(&desc.object, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  if (s != CUBLAS_STATUS_SUCCESS) return failed("description", s, g);
  const cublasOperation_t transpose = CUBLAS_OP_T, plain = CUBLAS_OP_N;
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    if (s == CUBLAS_STATUS_SUCCESS)
      s = api_->desc_set(desc.object, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, transpose);
  set(CUBLASLT_MATMUL_DESC_TRANSB, plain);
  if (g.a_scale) {
    const cublasLtMatmulMatrixScale_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, g.b_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, g.a_scale);
  }
  if (g.a_block_scale) {
    const cublasLtMatmulMatrixScale_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, g.b_block_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, g.a_block_scale);
  }
  if (s != CUBLAS_STATUS_SUCCESS) return failed("description", s, g);
  Scoped<cublasLtMatrixLayout_t> a{nullptr, api_->layout_destroy}, b{nullptr, api_->layout_destroy},
      c{nullptr, api_->layout_destroy}, d{nullptr, api_->layout_destroy};
  auto layout = [&](auto& to, cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld) {
    if (s == CUBLAS_STATUS_SUCCESS) s = api_->layout_create(&to.object, type, rows, cols, ld);
  };
  layout(a, g.input, g.k, g.n, g.k);
  layout(b, g.input, g.k, g.m, g.lda);
  layout(c, g.output, g.n, g.m, g.c ? g.ldc : g.ldd);
  layout(d, g.output, g.n, g.m, g.ldd);
  if (s != CUBLAS_STATUS_SUCCESS) return failed("layout", s, g);
  Scoped<cublasLtMatmulPreference_t> preference{nullptr, api_->preference_destroy};
  s = api_->preference_create(&preference.object);
  const uint64_t most = workspace_bytes;
  if (s == CUBLAS_STATUS_SUCCESS)
    s = api_->preference_set(preference.object, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                             sizeof(most));
  cublasLtMatmulHeuristicResult_t best;
  int found = 0;
  if (s == CUBLAS_STATUS_SUCCESS)
    s = api_->heuristic(handle_, desc.object, a.object, b.object, c.object, d.object,
                        preference.object, 1, &best, &found);
  if (s != CUBLAS_STATUS_SUCCESS || found == 0) return failed("choice of an algorithm", s, g);
  const float one = 1.f, beta = g.c ? 1.f : 0.f;
  s = api_->matmul(handle_, desc.object, &one, g.b, a.object, g.a, b.object, &beta, g.c ? g.c : g.d,
                   c.object, g.d, d.object, &best.algo, workspace, workspace_bytes, stream);
  if (s != CUBLAS_STATUS_SUCCESS) return failed("matmul", s, g);
  return {};
}

}  // namespace mx8::cuda
