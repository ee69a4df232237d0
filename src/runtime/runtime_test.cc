#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/buffer.h"
#include "runtime/cuda_device.h"
#include "runtime/device_caps.h"
#include "runtime/thread_pool.h"

namespace mx8 {
namespace {

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t chunks : {0, 1, 2, 3, 17, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(chunks));
      pool.for_each(chunks, [&](int64_t c, int thread) {
        EXPECT_LT(thread, threads);
        hits[static_cast<size_t>(c)].fetch_add(1);
      });
      for (auto& h : hits) EXPECT_EQ(h.load(), 1);
    }
  }
}

TEST(ThreadPool, ManySmallRegionsSeeEachOthersWrites) {
  ThreadPool pool(3);
  std::vector<int64_t> data(64, 0);
  for (int region = 0; region < 20000; ++region) {
    pool.for_each(8, [&](int64_t c, int) {
      for (int i = 0; i < 8; ++i) data[static_cast<size_t>((c * 8 + i + region) % 64)] += 1;
    });
  }
  for (int64_t v : data) EXPECT_EQ(v, 20000);
}

TEST(ThreadPool, WakesAfterSleeping) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> sum{0};
    pool.for_range(100, 7, [&](int64_t begin, int64_t end, int) {
      sum.fetch_add(static_cast<int>(end - begin));
    });
    EXPECT_EQ(sum.load(), 100);
  }
}

#if defined(__x86_64__)
TEST(ThreadPool, WorkersKeepSubnormals) {
  _mm_setcsr(_mm_getcsr() | 0x8040);  // DAZ and FTZ, as -ffast-math start-up code sets them
  ThreadPool pool(3);
  std::atomic<int> flushed{0};
  pool.for_each(64, [&](int64_t, int) {
    volatile float tiny = 0x1p-140f;
    const float product = tiny * 1.0f;
    if (product == 0) flushed.fetch_add(1);
  });
  EXPECT_EQ(flushed.load(), 0);
}
#endif

TEST(Buffer, AlignedAndWritable) {
  for (size_t size : {size_t{1}, size_t{1000}, size_t{9} << 20}) {
    Buffer b(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % kCacheLine, 0u);
    std::memset(b.data(), 7, size);
    Buffer moved = std::move(b);
    EXPECT_EQ(moved.size(), size);
    EXPECT_EQ(moved.data()[size - 1], std::byte{7});
  }
}

TEST(Arena, ReusesMemoryAfterWarmUp) {
  Arena arena;
  auto step = [&] {
    Arena::Scope scope(arena);
    float* a = arena.alloc<float>(1000);
    {
      Arena::Scope inner(arena);
      float* b = arena.alloc<float>(700000);
      b[0] = b[699999] = 1;
    }
    float* c = arena.alloc<float>(300000);
    a[999] = c[299999] = 2;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(c) % kCacheLine, 0u);
    return std::pair(a, c);
  };
  step();
  step();
  const size_t capacity = arena.capacity();
  const auto first = step();
  EXPECT_EQ(step(), first);
  EXPECT_EQ(arena.capacity(), capacity);
}

TEST(DeviceCaps, EveryForcibleNameIsKnown) {
  std::set<std::string> names;
  for (const std::string& name : forcible_caps()) {
    const auto caps = forced_caps(name);
    ASSERT_TRUE(caps.ok()) << name;
    EXPECT_TRUE(caps->forced);
    names.insert(name);
  }
  EXPECT_TRUE(names.count("sm90") && names.count("cpu-amx") && names.count("sm121"));
  EXPECT_NE(forced_caps("sm99").error().message.find("sm120"), std::string::npos);
  EXPECT_FALSE(forced_caps("cpu-neon").ok());
}

// Machines and programs without CUDA give the reason; with a GPU the record is filled.
TEST(CudaDevice, AbsenceIsAReason) {
  const auto count = cuda_device_count();
  const auto first = detect_cuda_caps(0);
  if (!count.ok()) {
    EXPECT_FALSE(count.error().message.empty());
    ASSERT_FALSE(first.ok());
    EXPECT_EQ(first.error().message, count.error().message);
    return;
  }
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->kind, DeviceKind::kCuda);
  EXPECT_FALSE(first->forced);
  EXPECT_GE(first->sm, 50);
  EXPECT_GT(first->multiprocessors, 0);
  EXPECT_GT(first->memory_bytes, 0u);
  EXPECT_NE(detect_cuda_caps(*count).error().message.find("there is no GPU"), std::string::npos);
}

TEST(DeviceCaps, IsaFromTheEnvironment) {
  setenv("MX8_ISA", "scalar", 1);
  EXPECT_EQ(detect_cpu_caps()->isa, CpuIsa::kScalar);
  setenv("MX8_ISA", "sse9", 1);
  EXPECT_NE(detect_cpu_caps().error().message.find("sse9"), std::string::npos);
  unsetenv("MX8_ISA");
  EXPECT_TRUE(detect_cpu_caps().ok());
}

}  // namespace
}  // namespace mx8
