// A pool of threads for the parallel regions of a forward pass.
//
// A region is cut into chunks that the caller and the workers claim from one atomic counter, so a
// worker that the system holds back costs one chunk, not a share. Workers spin between regions,
// because waking a sleeping thread costs more than many regions take (83 us against 0.07 us on a
// virtual machine), and sleep once no region came for the spin budget (MX8_SPIN_US, 200 by default).
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace mx8 {

class ThreadPool {
 public:
  // `threads` counts the caller: 1 means no workers. 0 means one per available processor.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs fn(ctx, chunk, thread) for every chunk in [0, chunks), thread in [0, size()); returns when
  // all are done. One region at a time; not to be called from inside a region.
  void run(int64_t chunks, void (*fn)(void*, int64_t chunk, int thread), void* ctx);

  // body(chunk, thread) for every chunk in [0, chunks).
  template <class Body>
  void for_each(int64_t chunks, Body&& body) {
    using Fn = std::remove_reference_t<Body>;
    run(chunks,
        [](void* ctx, int64_t chunk, int thread) { (*static_cast<Fn*>(ctx))(chunk, thread); },
        const_cast<std::remove_const_t<Fn>*>(&body));
  }

  // body(begin, end, thread) over [0, total) in ranges of at most `grain`.
  template <class Body>
  void for_range(int64_t total, int64_t grain, Body&& body) {
    for_each((total + grain - 1) / grain, [&](int64_t chunk, int thread) {
      body(chunk * grain, std::min(total, (chunk + 1) * grain), thread);
    });
  }

 private:
  void worker(int thread);
  // Claims and runs chunks until none is left; true if it ran any.
  bool drain(int thread);

  // One word holds everything a claim depends on, so that a claim by compare-and-swap can only
  // succeed on a region that still has the chunk: epoch (16 bits), chunks (24), next chunk (24).
  std::atomic<uint64_t> state_{0};
  std::atomic<int64_t> completed_{0};
  std::atomic<void (*)(void*, int64_t, int)> fn_{nullptr};
  std::atomic<void*> ctx_{nullptr};

  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  double spin_seconds_;
  std::vector<std::thread> workers_;
};

// The number of processors this process may use.
int available_processors();

}  // namespace mx8
