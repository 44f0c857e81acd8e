#include "simd/context.h"

#include <cfenv>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "simd/cpu_count.h"
#include "simd/thread_pool.h"

namespace lanewise {

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
    : target_(target),
      pool_(threads > 1 ? std::make_unique<ThreadPool>(threads) : nullptr),
      threads_(pool_ != nullptr ? pool_->threads() : 1) {}

Context::~Context() = default;

void Context::ParallelFor(size_t tasks,
                          absl::FunctionRef<void(size_t, size_t)> task) const {
  if (tasks > 1 && threads_ > 1 && pool_->TryRun(tasks, task)) return;
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
