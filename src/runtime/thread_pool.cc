#include "runtime/thread_pool.h"

#include <sched.h>

#include <cstdlib>

#include "base/check.h"
#include "base/clock.h"
#include "base/strings.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mx8 {

namespace {

constexpr int kIndexBits = 24;
constexpr uint64_t kIndexMask = (uint64_t{1} << kIndexBits) - 1;
constexpr int64_t kMaxChunks = int64_t{1} << (kIndexBits - 1);

uint64_t next_of(uint64_t state) { return state & kIndexMask; }
uint64_t chunks_of(uint64_t state) { return state >> kIndexBits & kIndexMask; }
uint64_t epoch_of(uint64_t state) { return state >> (2 * kIndexBits); }

void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// E4M3 subnormals decode to FP32 subnormals: a thread that flushes those computes wrong weights. A
// library may have changed the flags of the thread that made us.
void set_exact_float_mode() {
#if defined(__x86_64__)
  _mm_setcsr(0x1F80);
#endif
}

}  // namespace

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(int threads) {
  spin_seconds_ = 200e-6;
  if (const auto us = env("MX8_SPIN_US")) spin_seconds_ = std::atof(us->c_str()) * 1e-6;
  if (threads <= 0) threads = available_processors();
  set_exact_float_mode();
  for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { worker(t); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& t : workers_) t.join();
}

bool ThreadPool::drain(int thread) {
  bool ran = false;
  uint64_t state = state_.load(std::memory_order_acquire);
  while (next_of(state) < chunks_of(state)) {
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      continue;
    }
    // The claimed chunk keeps the region alive, so its function and context are the current ones.
    fn_.load(std::memory_order_relaxed)(ctx_.load(std::memory_order_relaxed),
                                        static_cast<int64_t>(next_of(state)), thread);
    completed_.fetch_add(1, std::memory_order_release);
    ran = true;
    state = state_.load(std::memory_order_acquire);
  }
  return ran;
}

void ThreadPool::run(int64_t chunks, void (*fn)(void*, int64_t, int), void* ctx) {
  MX8_CHECK(chunks >= 0 && chunks < kMaxChunks, chunks);
  if (chunks == 0) return;
  if (workers_.empty() || chunks == 1) {
    for (int64_t c = 0; c < chunks; ++c) fn(ctx, c, 0);
    return;
  }
  fn_.store(fn, std::memory_order_relaxed);
  ctx_.store(ctx, std::memory_order_relaxed);
  completed_.store(0, std::memory_order_relaxed);
  const uint64_t epoch = (epoch_of(state_.load(std::memory_order_relaxed)) + 1) & 0xFFFF;
  state_.store(epoch << (2 * kIndexBits) | static_cast<uint64_t>(chunks) << kIndexBits,
               std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    wake_.notify_all();
  }
  drain(0);
  for (int spins = 0; completed_.load(std::memory_order_acquire) < chunks; ++spins) {
    // A worker that lost its processor must get it back to finish its chunk.
    if (spins > 2000) {
      std::this_thread::yield();
    } else {
      cpu_relax();
    }
  }
}

void ThreadPool::worker(int thread) {
  set_exact_float_mode();
  double last_work = now_seconds();
  int spins = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (drain(thread)) {
      last_work = now_seconds();
      spins = 0;
      continue;
    }
    cpu_relax();
    if (++spins < 256) continue;
    spins = 0;
    if (now_seconds() - last_work < spin_seconds_) continue;
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [this] {
      const uint64_t state = state_.load(std::memory_order_seq_cst);
      return stop_.load() || next_of(state) < chunks_of(state);
    });
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    last_work = now_seconds();
  }
}

}  // namespace mx8
