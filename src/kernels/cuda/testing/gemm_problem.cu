#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/testing/gemm_problem.h"
#include "mx/e4m3.h"

namespace mx8::cuda::testing {
namespace {

__host__ __device__ uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
__device__ float2 normal_pair(uint64_t seed, uint64_t i) {
  const uint64_t h = mix(seed * 0x100000001ull + i);
  const float u = (static_cast<uint32_t>(h) + 0.5f) * 2.3283064e-10f;
  const float v = static_cast<float>(h >> 32) * 2.3283064e-10f;
  const float r = sqrtf(-2.f * __logf(u));
  float s, c;
  __sincosf(6.2831853f * v, &s, &c);
  return make_float2(r * c, r * s);
}

__global__ void weights_kernel(uint8_t* codes, uint8_t* scales, int64_t blocks, uint64_t seed,
                               float sd) {
  const int64_t b = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (b >= blocks) return;
  float v[32], amax = 0;
  for (int i = 0; i < 16; ++i) {
    const float2 two = normal_pair(seed, b * 16 + i);
    v[2 * i] = two.x * sd;
    v[2 * i + 1] = two.y * sd;
    amax = fmaxf(amax, fmaxf(fabsf(v[2 * i]), fabsf(v[2 * i + 1])));
  }
  const int e = max(0, static_cast<int>((__float_as_uint(amax) + 0x1FFFFFu) >> 23) - 8);
  scales[b] = static_cast<uint8_t>(e);
  for (int i = 0; i < 32; ++i)
    codes[b * 32 + i] = __nv_cvt_float_to_fp8(ldexpf(v[i], 127 - e), __NV_SATFINITE, __NV_E4M3);
}

__global__ void values_kernel(void* out, int64_t count, uint64_t seed, Act type, float sd) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (2 * i >= count) return;
  const float2 two = normal_pair(seed, i);
  const float v[2] = {two.x * sd, two.y * sd};
  for (int j = 0; j < 2 && 2 * i + j < count; ++j) {
    if (type == Act::kBf16) static_cast<__nv_bfloat16*>(out)[2 * i + j] = __float2bfloat16(v[j]);
    if (type == Act::kFp16) static_cast<__half*>(out)[2 * i + j] = __float2half(v[j]);
    if (type == Act::kFp8) static_cast<float*>(out)[2 * i + j] = v[j];
  }
}

__global__ void differences_kernel(const uint8_t* a, const uint8_t* b, size_t bytes,
                                   unsigned long long* differing) {
  unsigned long long mine = 0;
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  const size_t first = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  const auto* wide_a = reinterpret_cast<const uint4*>(a);
  const auto* wide_b = reinterpret_cast<const uint4*>(b);
  for (size_t i = first; i < bytes / 16; i += step) {
    const uint4 x = wide_a[i], y = wide_b[i];
    if (x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w) continue;
    for (size_t at = 16 * i; at < 16 * i + 16; ++at) mine += a[at] != b[at];
  }
  for (size_t at = bytes / 16 * 16 + first; at < bytes; at += step) mine += a[at] != b[at];
  if (mine != 0) atomicAdd(differing, mine);
}

__device__ double weight_at(const ReferenceInput& in, int64_t row, int64_t packed, int k) {
  const uint8_t code = in.codes[row * in.k + k];
  const int e = in.scales[row * (in.k / 32) + k / 32];
  if (e == 255) return __longlong_as_double(0x7FF8000000000000ll);
  double v = e4m3_decode(code);
  if (in.row_scale) {
    const int fold = ilogbf(in.row_scale[packed]) + 127;
    return e4m3_decode(e4m3_encode(ldexpf(static_cast<float>(v), e - fold))) *
           static_cast<double>(in.row_scale[packed]);
  }
  return ldexp(v, e - 127);
}
__device__ double half_at(const void* p, int64_t i, bool fp16) {
  return fp16 ? __half2float(static_cast<const __half*>(p)[i])
              : __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
}
__device__ double token_at(const ReferenceInput& in, int m, int k) {
  if (in.act != Act::kFp8) return half_at(in.x, m * in.ldx + k, in.act == Act::kFp16);
  const int o = k & 15, slot = 4 * ((o & 7) >> 1) + (o >> 3) + 2 * (o & 1);
  return static_cast<double>(e4m3_decode(in.x_codes[m * in.ldx + (k & ~15) + slot])) *
         in.token_scale[m];
}

// Packed row of feature n (of its gate with silu_mul).
__device__ int64_t packed_row(const ReferenceInput& in, int n) {
  return in.order == RowOrder::kPlain ? n : (n / 8) * 16 + n % 8;
}

// Sum over K of row `packed`, by the 128 threads of the CTA; valid in thread 0.
__device__ double2 dot(const ReferenceInput& in, int64_t packed, int m, double2* shared) {
  const int64_t row = fragment_source_row(packed, in.rows, in.order);
  double sum = 0, magnitude = 0;
  for (int k = threadIdx.x; k < in.k; k += blockDim.x) {
    const double t = weight_at(in, row, packed, k) * token_at(in, m, k);
    sum += t;
    magnitude += fabs(t);
  }
  shared[threadIdx.x] = make_double2(sum, magnitude);
  __syncthreads();
  for (int o = 64; o > 0; o >>= 1) {
    if (threadIdx.x < o) {
      shared[threadIdx.x].x += shared[threadIdx.x + o].x;
      shared[threadIdx.x].y += shared[threadIdx.x + o].y;
    }
    __syncthreads();
  }
  double2 total = shared[0];
  __syncthreads();
  if (in.bias) {
    total.x += in.bias[packed];
    total.y += fabs(static_cast<double>(in.bias[packed]));
  }
  return total;
}

__global__ void reference_kernel(ReferenceInput in, const Position* positions, Expected* out) {
  __shared__ double2 shared[128];
  const Position at = positions[blockIdx.x];
  const int64_t packed = packed_row(in, at.n);
  double2 v = dot(in, packed, at.m, shared);
  if (in.silu_mul) {
    const double2 up = dot(in, packed + 8, at.m, shared);
    const double gate = v.x / (1 + exp(-v.x));
    v = make_double2(gate * up.x, v.y * fabs(up.x) * 1.1 + fabs(gate) * up.y);
  }
  if (in.residual) {
    const double r = half_at(in.residual, at.m * in.ld_residual + at.n, in.out == Out::kFp16);
    v.x += r;
    v.y += fabs(r);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = {v.x, v.y};
}

unsigned grid_for(int64_t work, int per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

}  // namespace

void generate_weights(uint8_t* codes, uint8_t* scales, int64_t n, int64_t k, uint64_t seed,
                      float sd) {
  weights_kernel<<<grid_for(n * k / 32, 128), 128>>>(codes, scales, n * k / 32, seed, sd);
  MX8_CUDA_OK(cudaGetLastError());
}
void generate_values(void* out, int64_t count, uint64_t seed, Act type, float sd) {
  if (count == 0) return;
  values_kernel<<<grid_for((count + 1) / 2, 256), 256>>>(out, count, seed, type, sd);
  MX8_CUDA_OK(cudaGetLastError());
}

void count_differences(const void* a, const void* b, size_t bytes, unsigned long long* differing) {
  differences_kernel<<<1024, 256>>>(static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b),
                                    bytes, differing);
  MX8_CUDA_OK(cudaGetLastError());
}

std::vector<Position> choose_positions(int n, int m, int cap) {
  std::vector<Position> p;
  if (static_cast<int64_t>(n) * m <= cap) {
    for (int j = 0; j < m; ++j)
      for (int i = 0; i < n; ++i) p.push_back({i, j});
  } else {
    for (int i = 0; i < cap; ++i) {
      const uint64_t h = mix(i * 77ull + n);
      p.push_back({static_cast<int>(h % n), static_cast<int>((h >> 32) % m)});
    }
  }
  return p;
}

std::vector<Expected> reference(const ReferenceInput& in, const std::vector<Position>& positions) {
  if (positions.empty()) return {};
  DeviceArray<Position> at(positions.size());
  at.upload(positions);
  DeviceArray<Expected> out(positions.size());
  reference_kernel<<<static_cast<unsigned>(positions.size()), 128>>>(in, at.get(), out.get());
  MX8_CUDA_OK(cudaGetLastError());
  return out.download();
}

}  // namespace mx8::cuda::testing
