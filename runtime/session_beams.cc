#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "runtime/beam_search.h"
#include "runtime/beam_search_decoder.h"
#include "runtime/session.h"
#include "runtime/sha256.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Clock = std::chrono::steady_clock;

// Asks before every step whether to go on, and hashes what comes of it.
class WatchedStepper : public BeamStepper {
 public:
  WatchedStepper(BeamStepper& stepper, const GenerateCallbacks& callbacks,
                 Sha256* hash)
      : stepper_(stepper), callbacks_(callbacks), hash_(hash) {}

  absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep> rows) override {
    cancelled_ = Cancelled(callbacks_);
    if (cancelled_) return absl::CancelledError("cancelled");
    LANEWISE_ASSIGN_OR_RETURN(const absl::Span<const float> logits,
                              stepper_.Advance(rows));
    if (hash_ != nullptr) hash_->UpdateFloats(logits);
    return logits;
  }

  bool cancelled() const { return cancelled_; }

 private:
  BeamStepper& stepper_;
  const GenerateCallbacks& callbacks_;
  Sha256* hash_;
  bool cancelled_ = false;
};

}  // namespace

Hypothesis ToHypothesis(const PromptBuilder& prompts, BeamHypothesis beam) {
  absl::Span<const int32_t> shown = beam.ids;
  if (beam.ended) shown.remove_suffix(1);
  DecodeOptions options;
  options.skip_special_tokens = true;
  Hypothesis hypothesis;
  hypothesis.text = prompts.tokenizer().Decode(shown, options);
  hypothesis.ids = std::move(beam.ids);
  hypothesis.log_probability = beam.log_probability;
  hypothesis.score = beam.score;
  if (beam.ended) hypothesis.finish_reason = FinishReason::kEnd;
  return hypothesis;
}

absl::StatusOr<GenerateResult> GenerationSession::GenerateBeams(
    const GenerateRequest& request, const GenerateCallbacks& callbacks) {
  if (!request.stop.empty()) {
    return absl::InvalidArgumentError(
        "stop: expected no stop strings with more than one beam, found some");
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt,
                            PromptIds(request));
  BeamSearchRequest search;
  search.prompts = {prompt};
  search.beams = request.beams;
  search.processors = request.sampling;
  search.vocab_size = logits_.size();
  if (!request.ignore_end) search.eos_ids = shared_.prompts->special().end_ids;
  search.max_new_tokens =
      std::min(request.max_tokens, shared_.context_length - prompt.size());

  GenerateResult result;
  result.prompt_tokens = prompt.size();
  const Clock::time_point start = Clock::now();
  result.cached_tokens = Reuse(prompt);
  LANEWISE_RETURN_IF_ERROR(cache_.Reserve(prompt.size()));
  absl::Span<const int32_t> rest = prompt;
  rest.remove_prefix(result.cached_tokens);
  rest.remove_suffix(1);  // the search computes it
  LANEWISE_ASSIGN_OR_RETURN(const bool finished, Prefill(rest, callbacks));
  result.prompt_seconds = SecondsSince(start);
  if (!finished) result.finish_reason = FinishReason::kCancelled;
  if (!finished || search.max_new_tokens == 0) return result;

  const Clock::time_point decode_start = Clock::now();
  std::vector<KvCache> caches;
  caches.push_back(cache_.Fork());
  DecoderBeamStepper decoder(*executor_, std::move(caches));
  Sha256 hash;
  WatchedStepper stepper(decoder, callbacks,
                         request.hash_logits ? &hash : nullptr);
  auto found = BeamSearch(*shared_.context, search, stepper);
  result.decode_seconds = SecondsSince(decode_start);
  if (stepper.cancelled()) {
    result.finish_reason = FinishReason::kCancelled;
    return result;
  }
  LANEWISE_RETURN_IF_ERROR(found.status());
  for (BeamHypothesis& beam : found->front()) {
    result.hypotheses.push_back(
        ToHypothesis(*shared_.prompts, std::move(beam)));
  }
  const Hypothesis& best = result.hypotheses.front();
  result.text = best.text;
  result.ids = best.ids;
  result.finish_reason = best.finish_reason;
  if (request.hash_logits) result.logits_hash = hash.HexDigest();
  if (callbacks.on_text && !best.text.empty()) callbacks.on_text(best.text);
  return result;
}

}  // namespace lanewise
