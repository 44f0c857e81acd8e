// The threads behind Context::ParallelFor.
//
// Decoding runs hundreds of loops of some ten microseconds for each token, so a
// loop must start and end in about a microsecond: threads that wait spin for a
// bounded time, then sleep. A loop never waits for a thread that has claimed
// none of its tasks, such as one that other processes keep from running.
#ifndef LANEWISE_SIMD_THREAD_POOL_H_
#define LANEWISE_SIMD_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace lanewise {

class ThreadPool {
 public:
  using Task = absl::FunctionRef<void(size_t index, size_t thread)>;

  // `threads` includes the caller of Run. Fewer when the system gives no more.
  explicit ThreadPool(size_t threads);
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t threads() const { return workers_.size() + 1; }

  // Runs all tasks, on this thread as number 0 and on the others, and returns
  // true; or returns false at once if another loop is running.
  bool TryRun(size_t tasks, Task task);

 private:
  void RunBatch(uint32_t tasks, Task task);
  void WorkerLoop(size_t thread);
  bool WaitForWork(uint32_t seen);
  void WaitForEnd(uint32_t tasks);
  void Wake(uint32_t tasks);
  void Work(size_t thread);

  // Number of the loop in the upper half, tasks that nobody has claimed in the
  // lower. While the latter is not zero, task_ and tasks_ are those of this
  // loop.
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<const Task*> task_{nullptr};
  std::atomic<uint32_t> tasks_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> busy_{false};

  alignas(64) std::atomic<uint32_t> finished_{0};  // tasks of this loop

  alignas(64) std::mutex mutex_;
  std::condition_variable work_;  // for workers: new state_, or stop_
  std::condition_variable end_;   // for the caller: finished_ == tasks_
  std::atomic<uint32_t> sleeping_workers_{0};
  std::atomic<bool> sleeping_caller_{false};

  std::vector<std::thread> workers_;
};

}  // namespace lanewise

#endif  // LANEWISE_SIMD_THREAD_POOL_H_
