/* mx8 kernels: MXFP8 GEMM on NVIDIA GPUs for other engines. Plain C; no exceptions, no globals but the error
 * message of each thread.
 *
 *   Y[M, N] = X[M, K] * W[N, K]^T, then: * scales, + bias, silu(gate) * up, + residual, round.
 *
 * W is MXFP8 as in checkpoint files: E4M3 codes [N, K] row-major and one E8M0 byte per 32 along K,
 * [N, K / 32]; K is a multiple of 32. All pointers in args structs are device memory of the stream's device
 * unless said otherwise. Launches are asynchronous, allocate nothing, synchronise nothing, and can be
 * captured in a CUDA graph (then with the stream's device current). `stream` is a cudaStream_t (NULL: the
 * default stream of the current device).
 *
 * Structs start with struct_size = sizeof(the struct): a library newer than the caller reads missing fields
 * as zero; an older one refuses a larger struct.
 *
 * Threads: a plan may be used by several threads at once, each with a workspace of its own.
 */
#ifndef MX8_KERNELS_H_
#define MX8_KERNELS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define MX8_API
#else
#define MX8_API __attribute__((visibility("default")))
#endif

typedef enum mx8_status {
  MX8_OK = 0,
  MX8_INVALID_ARGUMENT = 1, /* a value the caller gave is wrong */
  MX8_UNSUPPORTED = 2,      /* this GPU, build or matrix cannot do it */
  MX8_NO_DEVICE = 3,        /* no usable GPU or driver */
  MX8_CUDA_ERROR = 4        /* the CUDA runtime reported an error */
} mx8_status;

/* What the activations are and what the weights are packed for. */
typedef enum mx8_activations {
  MX8_BF16 = 0,
  MX8_FP16 = 1,
  MX8_FP8 = 2 /* E4M3 with one FP32 scale a token (mx8_quantize_tokens); weights row-folded. SM89, SM90 */
} mx8_activations;

typedef enum mx8_output { MX8_OUT_BF16 = 0, MX8_OUT_FP16 = 1, MX8_OUT_FP32 = 2 } mx8_output;

/* The message of the last call of this thread that did not return MX8_OK. Never NULL. */
MX8_API const char* mx8_last_error(void);
/* "0.1.0" */
MX8_API const char* mx8_kernels_version(void);

typedef struct mx8_weight_desc {
  uint32_t struct_size;
  int64_t n;                   /* rows of W */
  int64_t k;                   /* multiple of 32 */
  mx8_activations activations;
  int32_t gate_up;             /* 1: W is [gate; up]; Y has N / 2 columns, silu(gate) * up */
} mx8_weight_desc;

/* Sizes of a packed matrix: bytes of records, and FP32 entries of the row scales (0 for MX8_BF16). */
MX8_API mx8_status mx8_packed_size(const mx8_weight_desc* desc, size_t* packed_bytes, size_t* row_scales);
/* Packs codes and scales on the GPU. MX8_BF16 keeps every byte; kernels are exact for scale bytes 3..134 and
 * matrices without NaN codes (the caller checks; the emulation kernel takes the rest). MX8_FP16 needs every
 * non-zero block within 2^15 of the largest of its row, MX8_FP8 a fold error the caller accepts. */
MX8_API mx8_status mx8_pack(const mx8_weight_desc* desc, const void* codes, const void* scales, void* packed,
                            float* row_scales, void* stream);
/* The same on the CPU, CPU memory; also checks the matrix (MX8_UNSUPPORTED with the reason). */
MX8_API mx8_status mx8_pack_cpu(const mx8_weight_desc* desc, const void* codes, const void* scales, void* packed,
                                float* row_scales);

typedef struct mx8_quantize_args {
  uint32_t struct_size;
  const void* x;            /* [m, k] BF16 or FP16, rows 16-byte aligned */
  int64_t ldx;              /* elements */
  int32_t x_fp16;
  int32_t power_of_two;     /* 0: scale amax / 448; 1: the next power of two */
  int32_t m, k;
  void* codes;              /* [m, ld_codes], ld_codes a multiple of 16 */
  int64_t ld_codes;
  float* scales;            /* [m] */
} mx8_quantize_args;
MX8_API mx8_status mx8_quantize_tokens(const mx8_quantize_args* args, void* stream);

/* A plan: which kernel runs for which number of tokens, fixed when it is made. */
typedef struct mx8_gemm mx8_gemm;

typedef struct mx8_gemm_desc {
  uint32_t struct_size;
  mx8_weight_desc weight;
  int32_t max_m;
  const char* force_kernel; /* NULL, or a kernel for every M: "gemm/128x256/whole", "emulation", ... */
} mx8_gemm_desc;
/* For the current device. */
MX8_API mx8_status mx8_gemm_create(const mx8_gemm_desc* desc, mx8_gemm** plan);
MX8_API void mx8_gemm_destroy(mx8_gemm* plan);
MX8_API size_t mx8_gemm_workspace_size(const mx8_gemm* plan);
/* Once for each workspace, before its first launch. */
MX8_API mx8_status mx8_gemm_workspace_init(const mx8_gemm* plan, void* workspace, void* stream);
/* The kernel for m tokens; NULL when m is above max_m. Valid as long as the plan. */
MX8_API const char* mx8_gemm_kernel(const mx8_gemm* plan, int32_t m);

typedef struct mx8_gemm_args {
  uint32_t struct_size;
  const void* packed;
  const float* row_scales; /* NULL for MX8_BF16 */
  const void* x;           /* [m, k], rows 16-byte aligned */
  int64_t ldx;             /* elements */
  const float* token_scales; /* MX8_FP8 */
  void* y;                 /* [m, n] */
  int64_t ldy;
  mx8_output output;
  const float* bias;       /* NULL, or one a packed row: n (gate_up: as mx8_pack orders them), padded to 64 */
  const void* residual;    /* NULL, or [m, n] of y's type (not FP32); may be y */
  int64_t ld_residual;
  int32_t m;
  const int32_t* m_device; /* NULL, or the number of tokens is min(*m_device, m), read when the kernel runs */
  int32_t dependent_launch; /* 1: may start before the previous kernel of the stream has ended (it waits by
                               itself before it touches x, y, residual and workspace) */
  void* workspace;
} mx8_gemm_args;
MX8_API mx8_status mx8_gemm_launch(const mx8_gemm* plan, const mx8_gemm_args* args, void* stream);

#ifdef __cplusplus
}
#endif
#endif /* MX8_KERNELS_H_ */
