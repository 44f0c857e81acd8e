// One conversation over a loaded model: prefill, decoding, sampling, streaming.
#ifndef LANEWISE_RUNTIME_SESSION_H_
#define LANEWISE_RUNTIME_SESSION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "model/executor.h"
#include "model/kv_cache.h"
#include "runtime/beam_search.h"
#include "runtime/prompt.h"
#include "runtime/sampler.h"

namespace lanewise {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

inline bool Cancelled(const GenerateCallbacks& callbacks) {
  return callbacks.should_cancel && callbacks.should_cancel();
}

// What all sessions of an engine share; immutable.
struct SessionShared {
  const PromptBuilder* prompts;
  const Model* model;
  const Context* context;
  std::shared_ptr<KvPagePool> pool;
  ActivationType activations;
  size_t prefill_chunk;
  size_t context_length;
};

// What a search found, as callers see it: text without control tokens.
Hypothesis ToHypothesis(const PromptBuilder& prompts, BeamHypothesis beam);

class GenerationSession : public Session {
 public:
  static absl::StatusOr<std::unique_ptr<GenerationSession>> Create(
      const SessionShared& shared);

  absl::StatusOr<GenerateResult> Generate(
      const GenerateRequest& request,
      const GenerateCallbacks& callbacks) override;

  absl::StatusOr<ScoreResult> Score(const ScoreRequest& request,
                                    const ScoreCallbacks& callbacks) override;

  // Logits of every position of `ids`, from an empty cache.
  absl::StatusOr<std::vector<float>> AllLogits(absl::Span<const int32_t> ids);

 private:
  GenerationSession(const SessionShared& shared,
                    std::unique_ptr<Executor> executor);

  class Run;
  class ScoreRun;

  // Generate with more than one beam.
  absl::StatusOr<GenerateResult> GenerateBeams(
      const GenerateRequest& request, const GenerateCallbacks& callbacks);

  // The prompt's ids: at least one, fewer than the context takes.
  absl::StatusOr<std::vector<int32_t>> PromptIds(
      const GenerateRequest& request) const;

  // Begins with the prompt `ids`: keeps what the cache has in common with it,
  // `most` tokens at most, fewer than all, for the last one's logits are
  // wanted; nothing where RoPE depends on the length and gives the kept rows
  // other frequencies. Returns how many are kept.
  size_t Reuse(absl::Span<const int32_t> ids, size_t most);
  size_t Reuse(absl::Span<const int32_t> ids) {
    return Reuse(ids, ids.size() - 1);
  }

  // Runs ids that continue the sequence, in chunks; logits_ has the last one's.
  // False: cancelled.
  absl::StatusOr<bool> Prefill(absl::Span<const int32_t> ids,
                               const GenerateCallbacks& callbacks);

  const SessionShared shared_;
  std::unique_ptr<Executor> executor_;
  KvCache cache_;
  std::vector<int32_t> cached_ids_;  // whose keys and values are in cache_
  size_t prompt_length_ = 0;         // of the last prompt, 0 before it
  std::vector<float> logits_;        // [vocab]
  SamplerScratch sampler_scratch_;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SESSION_H_
