// Parallel loops over a pool of threads with another owner (XLA, in a handler).
//
// The calling thread works too. It waits only for pieces that a helper has begun, so a call never
// waits for a thread: where the pool is busy, the caller does all pieces itself.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace jaxspv {

// How a task reaches another thread. `schedule` returns false if no thread will run it.
struct Pool {
  void* context = nullptr;
  bool (*schedule)(void* context, void (*task)(void*), void* data) = nullptr;
  int threads = 1;
};

// A reference to a function of (index, member), so that loops are compiled once for all bodies.
class Work {
 public:
  template <class F>
  explicit Work(const F& f)
      : body_(&f), run_([](const void* body, int64_t i, int member) { (*static_cast<const F*>(body))(i, member); }) {}
  void operator()(int64_t i, int member) const { run_(body_, i, member); }

 private:
  const void* body_;
  void (*run_)(const void*, int64_t, int);
};

class Team {
 public:
  Team() = default;  // the calling thread alone
  explicit Team(Pool pool) : pool_(pool), size_(pool.schedule ? std::max(1, pool.threads) : 1) {}
  int size() const { return size_; }

  // work(piece, member) for every piece of [0, pieces); members, in [0, size()), are threads.
  // The first exception of a piece is thrown again here, when all pieces have ended.
  template <class F>
  void each(int64_t pieces, const F& work) {
    run_all(pieces, Work(work));
  }

  // work(begin, end, member) over [0, n) in blocks; a multiple of 64 keeps words of bits apart.
  template <class F>
  void blocks(int64_t n, int64_t block, const F& work) {
    if (n <= 0) return;
    if (size_ == 1) block = n;
    each((n + block - 1) / block,
         [&](int64_t i, int member) { work(i * block, std::min(n, (i + 1) * block), member); });
  }

 private:
  void run_all(int64_t pieces, Work work) {
    if (size_ == 1 || pieces <= 1) {
      for (int64_t i = 0; i < pieces; ++i) work(i, 0);
      return;
    }
    auto shared = std::make_shared<Shared>(pieces, work);
    const int helpers = int(std::min<int64_t>(size_, pieces)) - 1;
    for (int i = 0; i < helpers; ++i) {
      auto* data = new std::shared_ptr<Shared>(shared);
      if (!pool_.schedule(pool_.context, &help, data)) {
        delete data;
        break;
      }
    }
    run(*shared, 0);
    while (shared->done.load(std::memory_order_acquire) < pieces) std::this_thread::yield();
    if (shared->error) std::rethrow_exception(shared->error);
  }

  // Helpers that start late find no piece left; `work` is not called after `each` has returned.
  struct Shared {
    Shared(int64_t count, Work body) : pieces(count), work(body) {}
    std::atomic<int64_t> next{0}, done{0};
    std::atomic<int> members{1};
    const int64_t pieces;
    const Work work;
    std::mutex mutex;
    std::exception_ptr error;
  };

  static void run(Shared& shared, int member) {
    for (int64_t i; (i = shared.next.fetch_add(1)) < shared.pieces;) {
      try {
        shared.work(i, member);
      } catch (...) {
        std::lock_guard<std::mutex> lock(shared.mutex);
        if (!shared.error) shared.error = std::current_exception();
      }
      shared.done.fetch_add(1, std::memory_order_acq_rel);
    }
  }

  static void help(void* data) {
    std::unique_ptr<std::shared_ptr<Shared>> shared(static_cast<std::shared_ptr<Shared>*>(data));
    if ((*shared)->next.load() < (*shared)->pieces) run(**shared, (*shared)->members.fetch_add(1));
  }

  Pool pool_;
  int size_ = 1;
};

}  // namespace jaxspv
