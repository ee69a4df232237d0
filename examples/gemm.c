/* One MXFP8 GEMM through the C ABI, and its check on the CPU.
 *
 *   cc gemm.c $(pkg-config --cflags --libs mx8-kernels) -lcudart -lm -I$CUDA_HOME/include
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <mx8/kernels.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MX8(call)                                                \
  do {                                                           \
    if ((call) != MX8_OK) {                                      \
      fprintf(stderr, "%s: %s\n", #call, mx8_last_error());      \
      return 1;                                                  \
    }                                                            \
  } while (0)
#define CUDA(call)                                               \
  do {                                                           \
    cudaError_t e = (call);                                      \
    if (e != cudaSuccess) {                                      \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); \
      return 1;                                                  \
    }                                                            \
  } while (0)

/* A few E4M3 codes and their values. */
static const uint8_t kCodes[4] = {0x38, 0xB8, 0x40, 0x30};
static const float kValues[4] = {1.0f, -1.0f, 2.0f, 0.5f};

int main(void) {
  enum { N = 256, K = 512, M = 3 };
  static uint8_t codes[N * K], scales[N * K / 32];
  static uint16_t x[M * K];
  for (int i = 0; i < N * K; ++i) codes[i] = kCodes[(i * 7 + i / K) % 4];
  for (int i = 0; i < N * K / 32; ++i) scales[i] = (uint8_t)(125 + i % 3);
  for (int i = 0; i < M * K; ++i) x[i] = i % 3 ? 0x3F80 : 0xBF00; /* BF16 1 and -0.5 */

  mx8_gemm_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.weight.struct_size = sizeof desc.weight;
  desc.weight.n = N, desc.weight.k = K, desc.weight.activations = MX8_BF16;
  desc.max_m = 64;
  size_t bytes, row_scales;
  MX8(mx8_packed_size(&desc.weight, &bytes, &row_scales));
  void *d_codes, *d_scales, *d_packed, *d_x, *d_y, *workspace;
  CUDA(cudaMalloc(&d_codes, sizeof codes));
  CUDA(cudaMalloc(&d_scales, sizeof scales));
  CUDA(cudaMalloc(&d_packed, bytes));
  CUDA(cudaMalloc(&d_x, sizeof x));
  CUDA(cudaMalloc(&d_y, M * N * sizeof(float)));
  CUDA(cudaMemcpy(d_codes, codes, sizeof codes, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(d_scales, scales, sizeof scales, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(d_x, x, sizeof x, cudaMemcpyHostToDevice));
  MX8(mx8_pack(&desc.weight, d_codes, d_scales, d_packed, NULL, NULL));

  mx8_gemm* plan;
  MX8(mx8_gemm_create(&desc, &plan));
  CUDA(cudaMalloc(&workspace, mx8_gemm_workspace_size(plan)));
  MX8(mx8_gemm_workspace_init(plan, workspace, NULL));
  mx8_gemm_args args;
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.packed = d_packed, args.x = d_x, args.ldx = K, args.y = d_y, args.ldy = N;
  args.output = MX8_OUT_FP32, args.m = M, args.workspace = workspace;
  MX8(mx8_gemm_launch(plan, &args, NULL));
  static float y[M * N];
  CUDA(cudaMemcpy(y, d_y, sizeof y, cudaMemcpyDeviceToHost));

  double worst = 0;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = 0;
      for (int k = 0; k < K; ++k) {
        const int i = n * K + k;
        sum += ldexp(kValues[(i * 7 + n) % 4], scales[i / 32] - 127) * ((m * K + k) % 3 ? 1.0 : -0.5);
      }
      worst = fmax(worst, fabs(y[m * N + n] - sum));
    }
  printf("%s: largest difference from the CPU %g\n", mx8_gemm_kernel(plan, M), worst);
  mx8_gemm_destroy(plan);
  return worst > 1e-3;
}
