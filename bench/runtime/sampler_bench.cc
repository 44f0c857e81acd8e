// One choice from a vocabulary, by kind of options: a peaked distribution as
// models give it, and a flat one, the worst case of lazy sorting.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "runtime/random.h"
#include "runtime/sampler.h"

namespace lanewise {
namespace {

constexpr size_t kVocabSize = 151936;
constexpr size_t kHistory = 1000;

// Normal with a standard deviation of 3 and, where peaked, 30 tokens far above.
std::vector<float> MakeLogits(bool peaked) {
  std::vector<float> logits(kVocabSize);
  for (size_t i = 0; i < kVocabSize; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - UniformAt(1, 0, i)));
    logits[i] = static_cast<float>(3 * radius *
                                   std::cos(6.283185307 * UniformAt(1, 1, i)));
  }
  for (size_t i = 0; peaked && i < 30; ++i) logits[4000 * i] = 20 - 0.5f * i;
  return logits;
}

void RunSteps(benchmark::State& state, const Target& target,
              const SamplingOptions& options, bool peaked) {
  const std::vector<float> logits = MakeLogits(peaked);
  const auto sampler = Sampler::Create(options, {kVocabSize, {}});
  SamplerScratch scratch(kVocabSize);
  std::vector<int32_t> ids(kHistory + 256);
  size_t step = 0;
  for (auto _ : state) {
    const auto history = absl::MakeConstSpan(ids).first(kHistory + step);
    auto token = sampler->Step(
        target, {logits, {history, kHistory}, {}, /*want_log_prob=*/false},
        scratch);
    benchmark::DoNotOptimize(token);
    step = (step + 1) % 256;
  }
  state.SetBytesProcessed(
      static_cast<int64_t>(state.iterations() * kVocabSize * sizeof(float)));
}

bool RegisterAll() {
  const auto add = [](const std::string& name, SamplingOptions options) {
    options.seed = 1;
    for (const bool peaked : {true, false}) {
      RegisterPerTarget("BM_Sample/" + name + (peaked ? "/peaked" : "/flat"),
                        {0},
                        [=](benchmark::State& state, const Target& target) {
                          RunSteps(state, target, options, peaked);
                        });
    }
  };
  SamplingOptions options;
  add("greedy", options);
  options.temperature = 0.8;
  add("temperature", options);
  options.top_p = 0.95;
  add("top_p", options);
  options.top_k = 50;
  add("top_k_top_p", options);
  options.repetition_penalty = 1.1;
  add("top_k_top_p_penalty", options);
  options = {};
  options.temperature = 1.0;
  options.min_p = 0.05;
  add("min_p", options);
  options.min_p = 0.0;
  options.typical_p = 0.9;
  add("typical", options);
  return true;
}

const bool registered = RegisterAll();

}  // namespace
}  // namespace lanewise
