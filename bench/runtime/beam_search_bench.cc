// What beam search adds to the forward passes: 16 steps of one input over
// logits that cost nothing, by number of beams, on one thread.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "runtime/beam_search.h"
#include "runtime/random.h"
#include "simd/context.h"

namespace lanewise {
namespace {

constexpr size_t kVocabSize = 50265;
constexpr size_t kSteps = 16;

// Each row reads the same random numbers from another place.
class RandomStepper : public BeamStepper {
 public:
  explicit RandomStepper(size_t beams) : logits_(kVocabSize * beams) {
    for (size_t i = 0; i < logits_.size(); ++i) {
      logits_[i] = static_cast<float>(12 * UniformAt(1, 0, i));
    }
  }
  absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep> rows) override {
    rows_ += rows.size();
    return absl::MakeConstSpan(logits_).first(rows.size() * kVocabSize);
  }
  size_t rows() const { return rows_; }

 private:
  std::vector<float> logits_;
  size_t rows_ = 0;
};

void RunSearch(benchmark::State& state, const Target& target) {
  Context::Options options;
  options.target = target;
  options.threads = 1;
  const auto context = std::move(Context::Create(options)).value();
  const std::vector<int32_t> prompt(100, 7);
  BeamSearchRequest request;
  request.prompts = {prompt};
  request.beams.num_beams = static_cast<int32_t>(state.range(0));
  request.vocab_size = kVocabSize;
  request.max_new_tokens = kSteps;
  RandomStepper stepper(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    auto found = BeamSearch(*context, request, stepper);
    benchmark::DoNotOptimize(found);
  }
  state.SetBytesProcessed(
      static_cast<int64_t>(stepper.rows() * kVocabSize * sizeof(float)));
  state.SetItemsProcessed(static_cast<int64_t>(stepper.rows()));
}

const bool kRegistered =
    (RegisterPerTarget("BM_BeamSearch", {1, 4, 16}, RunSearch), true);

}  // namespace
}  // namespace lanewise
