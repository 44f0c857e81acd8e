// Decoding allocates nothing once it runs: neither the forward pass nor the
// choice of a token.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "runtime/sampler.h"

namespace {

std::atomic<size_t> allocations{0};

void* Allocate(size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace lanewise {
namespace {

class SteadyStateTest : public testing::TestWithParam<size_t> {};

TEST_P(SteadyStateTest, DecodingAllocatesNothing) {
  Context::Options context_options;
  context_options.threads = GetParam();
  const auto context = std::move(Context::Create(context_options)).value();
  auto checkpoint = Checkpoint::Open("tests/data/gguf/llama_q4_k_m");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto model = Model::Load(**checkpoint, *context, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto executor = Executor::Create(**model, *context, {});
  ASSERT_TRUE(executor.ok());
  const size_t vocab = (*model)->spec().vocab_size;
  SamplingOptions options;
  options.temperature = 0.8;
  options.top_k = 20;
  options.top_p = 0.9;
  options.repetition_penalty = 1.1;
  options.seed = 7;
  const auto sampler = Sampler::Create(options, {vocab, {2}});
  ASSERT_TRUE(sampler.ok());
  SamplerScratch scratch(vocab);

  KvCache cache(KvPagePool::Create((*model)->spec(), CacheType::kF16, 1 << 24));
  ASSERT_TRUE(cache.Reserve(120).ok());
  std::vector<float> logits(vocab);
  std::vector<int32_t> history = {1, 5, 9};
  history.reserve(200);
  const size_t prompt = history.size();
  size_t fed = 0;
  const auto step = [&] {
    const Executor::Entry entry{absl::MakeConstSpan(history).subspan(fed),
                                &cache, Executor::Logits::kLast};
    ASSERT_TRUE((*executor)->Forward({&entry, 1}, logits.data()).ok());
    fed = history.size();
    SamplerInput input;
    input.logits = logits;
    input.history = {history, prompt};
    const auto token = sampler->Step(context->target(), input, scratch);
    ASSERT_TRUE(token.ok());
    history.push_back(token->id);
  };
  for (int i = 0; i < 4; ++i) step();
  const size_t before = allocations;
  EXPECT_GT(before, 0u);  // the counter counts
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(allocations, before);
}

INSTANTIATE_TEST_SUITE_P(Threads, SteadyStateTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace lanewise
