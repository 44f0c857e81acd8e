#include "simd/context.h"

#include <cfenv>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "hwy/contrib/thread_pool/thread_pool.h"
#include "simd/cpu_count.h"

namespace lanewise {

struct Context::Pool {
  explicit Pool(size_t threads) : workers(threads) {}

  std::mutex busy;
  hwy::ThreadPool workers;
};

absl::StatusOr<std::unique_ptr<Context>> Context::Create(
    const Options& options) {
  if (options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat("threads: expected at most ",
                                                   kMaxThreads, ", found ",
                                                   options.threads));
  }
  const size_t threads =
      options.threads != 0 ? options.threads : DefaultThreadCount();
  return absl::WrapUnique(
      new Context(options.target.value_or(Target::Best()), threads));
}

Context::Context(const Target& target, size_t threads)
    : target_(target), threads_(threads) {
  if (threads > 1) {
    // Workers inherit the floating-point environment of the thread that starts
    // them.
    const ScopedFloatEnvironment environment;
    pool_ = std::make_unique<Pool>(threads);
  }
}

Context::~Context() = default;

void Context::ParallelFor(size_t tasks,
                          absl::FunctionRef<void(size_t, size_t)> task) const {
  if (tasks > 1 && pool_ != nullptr) {
    const std::unique_lock<std::mutex> lock(pool_->busy, std::try_to_lock);
    if (lock.owns_lock()) {
      pool_->workers.Run(0, tasks, [&](uint64_t index, size_t thread) {
        task(static_cast<size_t>(index), thread);
      });
      return;
    }
  }
  for (size_t index = 0; index < tasks; ++index) task(index, 0);
}

struct ScopedFloatEnvironment::Saved {
  std::fenv_t environment;
};

ScopedFloatEnvironment::ScopedFloatEnvironment() {
  static_assert(sizeof(Saved) <= sizeof(saved_), "fenv_t does not fit");
  Saved saved;
  std::fegetenv(&saved.environment);
  std::memcpy(saved_, &saved, sizeof(saved));
  std::fesetenv(FE_DFL_ENV);
}

ScopedFloatEnvironment::~ScopedFloatEnvironment() {
  Saved saved;
  std::memcpy(&saved, saved_, sizeof(saved));
  std::fesetenv(&saved.environment);
}

}  // namespace lanewise
