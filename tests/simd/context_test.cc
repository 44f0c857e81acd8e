#include "simd/context.h"

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

#if defined(__linux__)
#include <sys/resource.h>
#endif

namespace {

constexpr size_t kNoLimit = static_cast<size_t>(-1);

// Allocations of this thread until one fails.
thread_local size_t allocations_left = kNoLimit;

}  // namespace

void* operator new(size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left != kNoLimit) --allocations_left;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
// Inlined, they look to GCC as if they freed what another operator new made.
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace lanewise {
namespace {

std::unique_ptr<Context> WithThreads(size_t threads) {
  return MakeContext(Target::Best(), threads);
}

TEST(Context, EachIndexOnceWithThreadsInRange) {
  for (const size_t threads : {1, 2, 3, 7}) {
    const auto context = WithThreads(threads);
    ASSERT_EQ(context->threads(), threads);
    for (const size_t tasks : {0, 1, 2, 3, 8, 100, 10000}) {
      std::vector<std::atomic<int>> runs(tasks);
      std::atomic<bool> in_range{true};
      context->ParallelFor(tasks, [&](size_t index, size_t thread) {
        if (index >= tasks || thread >= threads) {
          in_range = false;
          return;
        }
        runs[index].fetch_add(1);
      });
      EXPECT_TRUE(in_range);
      for (const auto& count : runs) ASSERT_EQ(count, 1);
    }
  }
}

TEST(Context, ThreadNumbersAreUniqueAtATime) {
  const auto context = WithThreads(7);
  std::vector<std::atomic<int>> inside(7);
  std::atomic<bool> unique{true};
  for (int repeat = 0; repeat < 50; ++repeat) {
    context->ParallelFor(200, [&](size_t, size_t thread) {
      if (inside[thread].fetch_add(1) != 0) unique = false;
      for (volatile int i = 0; i < 200; i = i + 1) {
      }
      inside[thread].fetch_sub(1);
    });
  }
  EXPECT_TRUE(unique);
}

TEST(Context, OtherThreadsTakePart) {
  const auto context = WithThreads(2);
  std::atomic<int> arrived{0};
  // Ends only when two threads are inside at the same time.
  context->ParallelFor(2, [&](size_t, size_t) {
    arrived.fetch_add(1);
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(Context, SameResultsForAnyNumberOfThreads) {
  std::vector<float> first;
  for (const size_t threads : {1, 2, 3, 7}) {
    const auto context = WithThreads(threads);
    std::vector<float> results(1000);
    context->ParallelFor(results.size(), [&](size_t index, size_t) {
      float value = 1.0f;
      for (size_t i = 0; i <= index; ++i) value = value * 0.7f + 0.1f;
      results[index] = value;
    });
    if (first.empty()) first = results;
    EXPECT_EQ(results, first);
  }
}

TEST(Context, WritesAreVisibleToTheCallerAndTheNextLoop) {
  const auto context = WithThreads(3);
  std::vector<uint64_t> a(64, 1);
  std::vector<uint64_t> b(64);
  for (int repeat = 0; repeat < 20000; ++repeat) {
    context->ParallelFor(64, [&](size_t i, size_t) { b[i] = a[63 - i] + 1; });
    context->ParallelFor(64, [&](size_t i, size_t) { a[i] = b[i]; });
  }
  for (const uint64_t value : a) EXPECT_EQ(value, 20001u);
}

TEST(Context, TwoCallersAtTheSameTime) {
  const auto context = WithThreads(3);
  std::atomic<size_t> total{0};
  const auto caller = [&] {
    for (int repeat = 0; repeat < 2000; ++repeat) {
      std::vector<int> runs(10);
      context->ParallelFor(10, [&](size_t index, size_t) { ++runs[index]; });
      for (const int count : runs) total += static_cast<size_t>(count);
    }
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(total, 2u * 2000 * 10);
}

TEST(Context, NestedLoopRunsInItsTask) {
  for (const size_t threads : {1, 2, 3}) {
    const auto context = WithThreads(threads);
    std::atomic<int> inner{0};
    context->ParallelFor(8, [&](size_t, size_t) {
      const auto caller = std::this_thread::get_id();
      context->ParallelFor(5, [&](size_t, size_t thread) {
        inner.fetch_add(1);
        if (threads > 1) {
          EXPECT_EQ(std::this_thread::get_id(), caller);
          EXPECT_EQ(thread, 0u);
        }
      });
    });
    EXPECT_EQ(inner, 40);
  }
}

// Processor time that the process uses while it only waits.
TEST(Context, P5IdleThreadsSleep) {
  const auto context = WithThreads(4);
  std::atomic<int> runs{0};
  context->ParallelFor(100, [&](size_t, size_t) { runs.fetch_add(1); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double seconds =
      static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 0.03);
  // And they wake again.
  std::atomic<int> arrived{0};
  context->ParallelFor(4, [&](size_t, size_t) {
    arrived.fetch_add(1);
    while (arrived < 4) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 4);
}

// The caller sleeps, too, while a task of another thread is long.
TEST(Context, P5CallerSleepsWhileOthersWork) {
  const auto context = WithThreads(2);
  std::atomic<int> arrived{0};
  const std::clock_t before = std::clock();
  context->ParallelFor(2, [&](size_t, size_t thread) {
    arrived.fetch_add(1);
    while (arrived < 2) std::this_thread::yield();
    if (thread != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  });
  const double seconds =
      static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 0.15);
}

TEST(Context, P8OneTaskStaysOnTheCallingThread) {
  const auto context = WithThreads(4);
  std::thread::id id;
  size_t number = 9;
  context->ParallelFor(1, [&](size_t, size_t thread) {
    id = std::this_thread::get_id();
    number = thread;
  });
  EXPECT_EQ(id, std::this_thread::get_id());
  EXPECT_EQ(number, 0u);
}

TEST(Context, TooManyThreadsIsAnError) {
  Context::Options options;
  options.threads = Context::kMaxThreads + 1;
  const auto context = Context::Create(options);
  ASSERT_EQ(context.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(context.status().message(),
            "threads: expected at most 1024, found 1025");
  options.threads = static_cast<size_t>(-1);
  EXPECT_FALSE(Context::Create(options).ok());
}

TEST(Context, MostThreadsWork) {
  const auto context = WithThreads(Context::kMaxThreads);
  std::atomic<size_t> runs{0};
  for (int repeat = 0; repeat < 3; ++repeat) {
    context->ParallelFor(5000, [&](size_t, size_t thread) {
      if (thread < context->threads()) runs.fetch_add(1);
    });
  }
  EXPECT_EQ(runs, 15000u);
}

// The sanitizers need address space of their own for each thread.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
// Room for a few stacks only: no exception, and those that started work.
TEST(Context, ThreadsThatCannotStart) {
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &old_limit), 0);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit = old_limit;
  limit.rlim_cur = static_cast<rlim_t>(pages) * 4096 + (rlim_t{64} << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const auto context = WithThreads(256);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &old_limit), 0);
  EXPECT_GE(context->threads(), 1u);
  EXPECT_LT(context->threads(), 256u);
  std::atomic<size_t> runs{0};
  context->ParallelFor(1000, [&](size_t, size_t thread) {
    if (thread < context->threads()) runs.fetch_add(1);
  });
  EXPECT_EQ(runs, 1000u);
}
#endif

// The last allocations of a context are those of its threads.
TEST(Context, ThreadsThatFindNoMemory) {
  allocations_left = kNoLimit - 1;
  WithThreads(32);
  const size_t all = kNoLimit - 1 - allocations_left;
  for (const size_t missing : {1, 10, 30}) {
    allocations_left = all - missing;
    const auto context = WithThreads(32);
    allocations_left = kNoLimit;
    EXPECT_LT(context->threads(), 32u);
    std::atomic<size_t> runs{0};
    context->ParallelFor(1000, [&](size_t, size_t thread) {
      if (thread < context->threads()) runs.fetch_add(1);
    });
    EXPECT_EQ(runs, 1000u);
  }
}

// A thread may still be between its last task and its sleep.
TEST(Context, EndsRightAfterALoop) {
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::atomic<int> runs{0};
    {
      const auto context = WithThreads(4);
      for (int loop = 0; loop < repeat % 3; ++loop) {
        context->ParallelFor(4, [&](size_t, size_t) { runs.fetch_add(1); });
      }
    }
    EXPECT_EQ(runs, repeat % 3 * 4);
  }
}

TEST(Context, DefaultsAreTheMachine) {
  const auto context = Context::Create({});
  ASSERT_TRUE(context.ok());
  EXPECT_GE((*context)->threads(), 1u);
  EXPECT_TRUE((*context)->target() == Target::Best());
}

TEST(Context, UsesTheTargetAskedFor) {
  for (const Target& target : Target::Available()) {
    EXPECT_EQ(MakeContext(target)->target().name(), target.name());
  }
}

// The results that tell a float environment: of directed rounding, and of
// flushing denormals.
struct Arithmetic {
  static Arithmetic Here() {
    const volatile float one = 1.0f;
    const volatile float tiny = 1e-10f;
    const volatile float denormal = 1e-40f;
    const volatile float half = 0.5f;
    Arithmetic result;
    result.up = one + tiny;
    result.down = -one - tiny;
    result.denormal = denormal * half;
    return result;
  }
  bool IsDefault() const {
    return up == 1.0f && down == -1.0f && denormal > 0.0f;
  }
  float up, down, denormal;
};

TEST(ScopedFloatEnvironment, RestoresTheRoundingMode) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    {
      const ScopedFloatEnvironment environment;
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
      EXPECT_TRUE(Arithmetic::Here().IsDefault());
    }
    EXPECT_EQ(std::fegetround(), mode);
  }
  std::fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)
TEST(ScopedFloatEnvironment, RestoresFlushToZero) {
  constexpr unsigned kFlush = 0x8040;  // FTZ and DAZ of MXCSR
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | kFlush);
  EXPECT_EQ(Arithmetic::Here().denormal, 0.0f);
  {
    const ScopedFloatEnvironment environment;
    EXPECT_TRUE(Arithmetic::Here().IsDefault());
  }
  EXPECT_EQ(Arithmetic::Here().denormal, 0.0f);
  EXPECT_EQ(__builtin_ia32_stmxcsr() & kFlush, kFlush);
  __builtin_ia32_ldmxcsr(before);
}

// Threads inherit the environment of the one that starts them.
TEST(Context, WorkersComputeInTheDefaultEnvironment) {
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040);
  std::fesetround(FE_UPWARD);
  const auto context = WithThreads(2);
  std::atomic<int> arrived{0};
  std::atomic<int> wrong{0};
  context->ParallelFor(2, [&](size_t, size_t thread) {
    arrived.fetch_add(1);
    while (arrived < 2) std::this_thread::yield();
    if (thread != 0 && !Arithmetic::Here().IsDefault()) wrong.fetch_add(1);
  });
  std::fesetround(FE_TONEAREST);
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(wrong, 0);
}
#endif

}  // namespace
}  // namespace lanewise
