// Chooses the next token of a sequence.
//
//   SamplingOptions options;
//   options.temperature = 0.7;
//   LANEWISE_ASSIGN_OR_RETURN(
//       Sampler sampler, Sampler::Create(options, {vocab_size, {eos_id}}));
//   SamplerScratch scratch(vocab_size);  // one a thread
//   LANEWISE_ASSIGN_OR_RETURN(
//       SampledToken token,
//       sampler.Step(context.target(), {logits, {ids, prompt_length}},
//       scratch));
//
// The choice is a function of the logits, the ids so far, the options with the
// seed, and the stream: the same on every machine, whatever runs beside it.
#ifndef LANEWISE_RUNTIME_SAMPLER_H_
#define LANEWISE_RUNTIME_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/generation_options.h"
#include "runtime/sampler_candidates.h"
#include "runtime/sampler_processors.h"
#include "simd/target.h"

namespace lanewise {

// Working memory of a step, about 28 bytes an id of the vocabulary. Steps of
// one thread after the other may share it; nothing in it outlives a step.
class SamplerScratch {
 public:
  explicit SamplerScratch(size_t vocab_size)
      : scores_(vocab_size), counts_(vocab_size), candidates_(vocab_size) {}

 private:
  friend class Sampler;
  std::vector<float> scores_;
  IdCounts counts_;
  SortedCandidates candidates_;
};

struct SamplerInput {
  absl::Span<const float> logits;  // [vocab_size]
  TokenHistory history;

  // What a grammar allows: bit id % 64 of word id / 64 is set for each token
  // that may come, ceil(vocab_size / 64) words. Empty: all may.
  absl::Span<const uint64_t> allowed = {};

  bool want_log_prob = true;  // costs a pass over the logits
};

struct SampledToken {
  int32_t id = 0;
  // Natural logarithm of the probability the model itself gives the token:
  // before penalties, temperature and filters. 0 where it is not wanted.
  double log_prob = 0.0;
};

struct TokenLogProb {
  int32_t id;
  double log_prob;
};

struct TokenProbability {
  int32_t id;
  double probability;
};

class Sampler {
 public:
  struct Vocabulary {
    size_t size = 0;
    std::vector<int32_t> eos_ids;  // what min_new_tokens forbids
  };

  // `stream` tells apart the sequences of one request: each draws its own
  // numbers from the one seed. An unset seed is taken from the system.
  // INVALID_ARGUMENT as LogitsProcessors::Create.
  static absl::StatusOr<Sampler> Create(const SamplingOptions& options,
                                        const Vocabulary& vocabulary,
                                        uint64_t stream = 0);

  // The seed in use; with it in the options the run repeats.
  uint64_t seed() const { return seed_; }

  // The token after `input.history`; its number among the generated ones,
  // history.step(), selects the random number. Allocates nothing after the
  // first call with a scratch of the vocabulary's size.
  //
  // INTERNAL for a logit that is not finite, FAILED_PRECONDITION when no token
  // is left to choose, INVALID_ARGUMENT for sizes that do not fit. Each names
  // the step.
  absl::StatusOr<SampledToken> Step(const Target& target,
                                    const SamplerInput& input,
                                    SamplerScratch& scratch) const;

  // What Step draws from: the tokens that are left, most probable first; their
  // probabilities sum to 1. With temperature 0 one token. Errors as Step.
  absl::StatusOr<std::vector<TokenProbability>> Distribution(
      const Target& target, const SamplerInput& input,
      SamplerScratch& scratch) const;

 private:
  Sampler(SamplingOptions options, LogitsProcessors processors)
      : options_(std::move(options)), processors_(std::move(processors)) {}

  absl::Status Check(const Target& target, const SamplerInput& input,
                     const SamplerScratch& scratch) const;
  absl::Span<const float> Process(const SamplerInput& input,
                                  SamplerScratch& scratch) const;
  absl::StatusOr<int32_t> Choose(const Target& target,
                                 const SamplerInput& input,
                                 SamplerScratch& scratch) const;
  absl::Status Filter(const Target& target, const SamplerInput& input,
                      SamplerScratch& scratch) const;

  SamplingOptions options_;
  LogitsProcessors processors_;
  size_t vocab_size_ = 0;
  uint64_t seed_ = 0;
  uint64_t stream_ = 0;
};

// The min(count, vocab_size) most probable tokens by the model itself, most
// probable first, the lower id first on ties. `logits` are finite.
std::vector<TokenLogProb> TopLogProbs(const Target& target,
                                      absl::Span<const float> logits,
                                      size_t count);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SAMPLER_H_
