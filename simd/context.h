// Execution context of kernels: the instruction-set target and the threads.
// Passed by reference; several models share one.
//
//   LANEWISE_ASSIGN_OR_RETURN(auto context, Context::Create({.threads = 4}));
//   context->ParallelFor(rows, [&](size_t row, size_t thread) { ... });
//
// No result depends on the number of threads or on which thread runs a task.
#ifndef LANEWISE_SIMD_CONTEXT_H_
#define LANEWISE_SIMD_CONTEXT_H_

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "simd/target.h"

namespace lanewise {

class ThreadPool;

class Context {
 public:
  struct Options {
    size_t threads = 0;            // 0: DefaultThreadCount(); fewer when the
                                   // system refuses to start as many
    std::optional<Target> target;  // unset: Target::Best()
  };

  static constexpr size_t kMaxThreads = 1024;

  // INVALID_ARGUMENT for more than kMaxThreads threads.
  static absl::StatusOr<std::unique_ptr<Context>> Create(
      const Options& options);
  ~Context();

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Target& target() const { return target_; }
  size_t threads() const { return threads_; }

  // Calls task(index, thread) once for each index in [0, tasks), spread over
  // the threads, and returns when all are done; thread < threads() is unique
  // among the calls of this loop that run at the same time. The calling thread
  // takes part. Runs on the calling thread alone when there is one task or when
  // the threads are busy with another loop, as they are when a task calls
  // ParallelFor.
  void ParallelFor(
      size_t tasks,
      absl::FunctionRef<void(size_t index, size_t thread)> task) const;

 private:
  Context(const Target& target, size_t threads);

  Target target_;
  std::unique_ptr<ThreadPool> pool_;  // null for one thread
  size_t threads_;
};

// Floating-point environment of the numerics contract (round to nearest even,
// no flush to zero) from construction to destruction, when the caller's is put
// back. Every entry point of the library that computes holds one.
class ScopedFloatEnvironment {
 public:
  ScopedFloatEnvironment();
  ~ScopedFloatEnvironment();
  ScopedFloatEnvironment(const ScopedFloatEnvironment&) = delete;
  ScopedFloatEnvironment& operator=(const ScopedFloatEnvironment&) = delete;

 private:
  struct Saved;
  alignas(16) unsigned char saved_[64];
};

}  // namespace lanewise

#endif  // LANEWISE_SIMD_CONTEXT_H_
