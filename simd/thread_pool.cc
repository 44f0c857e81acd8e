#include "simd/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "hwy/cache_control.h"
#include "simd/context.h"

namespace lanewise {
namespace {

constexpr std::chrono::microseconds kSpinTime(50);
constexpr uint32_t kMaxBatch = uint32_t{1} << 31;

uint32_t LoopOf(uint64_t state) { return static_cast<uint32_t>(state >> 32); }
uint32_t UnclaimedOf(uint64_t state) { return static_cast<uint32_t>(state); }

// Waits for done() without giving up the CPU, for a bounded time. Returns
// whether it came.
template <class Done>
bool Spin(Done done) {
  if (done()) return true;
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      hwy::Pause();
      if (done()) return true;
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(size_t threads) {
  try {
    workers_.reserve(threads);
    for (size_t thread = 1; thread < threads; ++thread) {
      workers_.emplace_back(&ThreadPool::WorkerLoop, this, thread);
    }
  } catch (const std::exception&) {
    // No more threads (std::system_error) or memory (std::bad_alloc): those
    // that there are do the work. Out of here, it would end the program, as
    // destroying a std::thread that runs does.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
  }
  work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::TryRun(size_t tasks, Task task) {
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  if (tasks <= kMaxBatch) {
    RunBatch(static_cast<uint32_t>(tasks), task);
  } else {
    for (size_t begin = 0; begin < tasks; begin += kMaxBatch) {
      const size_t count = std::min<size_t>(kMaxBatch, tasks - begin);
      RunBatch(static_cast<uint32_t>(count),
               [&](size_t i, size_t thread) { task(begin + i, thread); });
    }
  }
  busy_.store(false, std::memory_order_release);
  return true;
}

void ThreadPool::RunBatch(uint32_t tasks, Task task) {
  task_.store(&task, std::memory_order_relaxed);
  tasks_.store(tasks, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  const uint64_t loop = LoopOf(state_.load(std::memory_order_relaxed)) + 1;
  // Sequentially consistent, as are sleeping_workers_ and WaitForWork's loads:
  // either Wake sees the sleeper or the sleeper sees the loop.
  state_.store((loop << 32) | tasks);
  Wake(tasks);
  Work(0);
  WaitForEnd(tasks);
}

void ThreadPool::Wake(uint32_t tasks) {
  const uint32_t sleeping = sleeping_workers_.load();
  if (sleeping == 0) return;
  { const std::lock_guard<std::mutex> lock(mutex_); }
  if (tasks > sleeping) {
    work_.notify_all();
  } else {
    for (uint32_t i = 1; i < tasks; ++i) work_.notify_one();
  }
}

void ThreadPool::Work(size_t thread) {
  const uint32_t shares = static_cast<uint32_t>(2 * threads());
  uint64_t state = state_.load(std::memory_order_acquire);
  while (UnclaimedOf(state) != 0) {
    const uint32_t unclaimed = UnclaimedOf(state);
    const uint32_t count = std::max<uint32_t>(1, unclaimed / shares);
    const Task* task = task_.load(std::memory_order_relaxed);
    const uint32_t tasks = tasks_.load(std::memory_order_relaxed);
    if (!state_.compare_exchange_weak(state, state - count,
                                      std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      continue;
    }
    const size_t begin = tasks - unclaimed;
    for (size_t i = begin; i < begin + count; ++i) (*task)(i, thread);
    if (finished_.fetch_add(count) + count == tasks && thread != 0 &&
        sleeping_caller_.load()) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      end_.notify_one();
    }
    state = state_.load(std::memory_order_acquire);
  }
}

void ThreadPool::WaitForEnd(uint32_t tasks) {
  const auto done = [&] { return finished_.load() == tasks; };
  if (Spin(done)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  sleeping_caller_.store(true);
  end_.wait(lock, done);
  sleeping_caller_.store(false);
}

bool ThreadPool::WaitForWork(uint32_t seen) {
  const auto ready = [&] { return LoopOf(state_.load()) != seen || stop_; };
  if (!Spin(ready)) {
    std::unique_lock<std::mutex> lock(mutex_);
    sleeping_workers_.fetch_add(1);
    work_.wait(lock, ready);
    sleeping_workers_.fetch_sub(1);
  }
  return !stop_;
}

void ThreadPool::WorkerLoop(size_t thread) {
  const ScopedFloatEnvironment environment;
  uint32_t seen = 0;
  while (WaitForWork(seen)) {
    seen = LoopOf(state_.load());
    Work(thread);
  }
}

}  // namespace lanewise
