#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/random.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

absl::Status NothingLeft(const SamplerInput& input) {
  return absl::FailedPreconditionError(
      absl::StrCat("step ", input.history.step(),
                   ": expected a token to choose, found all forbidden"));
}

absl::Status CheckSize(size_t step, const char* field, size_t expected,
                       size_t found) {
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("step ", step, ": ", field,
                                                 ": expected ", expected,
                                                 " elements, found ", found));
}

}  // namespace

absl::StatusOr<Sampler> Sampler::Create(const SamplingOptions& options,
                                        const Vocabulary& vocabulary,
                                        uint64_t stream) {
  LANEWISE_ASSIGN_OR_RETURN(
      LogitsProcessors processors,
      LogitsProcessors::Create(options, vocabulary.size, vocabulary.eos_ids));
  Sampler sampler(options, std::move(processors));
  sampler.vocab_size_ = vocabulary.size;
  sampler.seed_ = options.seed.has_value() ? *options.seed : SeedFromSystem();
  sampler.stream_ = stream;
  return sampler;
}

absl::Status Sampler::Check(const Target& target, const SamplerInput& input,
                            const SamplerScratch& scratch) const {
  const TokenHistory& history = input.history;
  if (history.prompt_length > history.ids.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt_length: expected at most the ", history.ids.size(),
                     " ids of the history, found ", history.prompt_length));
  }
  const size_t step = history.step();
  LANEWISE_RETURN_IF_ERROR(
      CheckSize(step, "logits", vocab_size_, input.logits.size()));
  LANEWISE_RETURN_IF_ERROR(
      CheckSize(step, "scratch", vocab_size_, scratch.scores_.size()));
  if (!input.allowed.empty()) {
    LANEWISE_RETURN_IF_ERROR(CheckSize(step, "allowed", (vocab_size_ + 63) / 64,
                                       input.allowed.size()));
  }
  if (AllFinite(target, input.logits.data(), vocab_size_)) {
    return absl::OkStatus();
  }
  size_t id = 0;
  while (id + 1 < vocab_size_ && std::isfinite(input.logits[id])) ++id;
  return absl::InternalError(
      absl::StrCat("step ", step, ": logit of token ", id,
                   ": expected a finite number, found ", input.logits[id]));
}

// The scores to choose by: the logits themselves when nothing changes them.
absl::Span<const float> Sampler::Process(const SamplerInput& input,
                                         SamplerScratch& scratch) const {
  if (input.allowed.empty() && processors_.NothingToDo(input.history)) {
    return input.logits;
  }
  std::vector<float>& scores = scratch.scores_;
  std::copy(input.logits.begin(), input.logits.end(), scores.begin());
  processors_.Apply(input.history, absl::MakeSpan(scores), scratch.counts_);
  for (size_t word = 0; word < input.allowed.size(); ++word) {
    const uint64_t bits = input.allowed[word];
    if (bits == ~uint64_t{0}) continue;
    const size_t end = std::min(64 * (word + 1), vocab_size_);
    for (size_t id = 64 * word; id < end; ++id) {
      if ((bits >> (id % 64) & 1) == 0) scores[id] = kForbidden;
    }
  }
  return scores;
}

absl::Status Sampler::Filter(const Target& target, const SamplerInput& input,
                             SamplerScratch& scratch) const {
  SortedCandidates& candidates = scratch.candidates_;
  const size_t top_k = static_cast<size_t>(options_.top_k);
  candidates.Reset(target, Process(input, scratch), options_.temperature,
                   top_k + 1);
  if (candidates.empty()) return NothingLeft(input);
  if (top_k > 0) candidates.KeepTopK(top_k);
  if (options_.top_p < 1.0) candidates.KeepTopP(options_.top_p);
  if (options_.min_p > 0.0) candidates.KeepMinP(options_.min_p);
  if (options_.typical_p < 1.0) candidates.KeepTypical(options_.typical_p);
  if (options_.epsilon_cutoff > 0.0) {
    candidates.KeepEpsilon(options_.epsilon_cutoff);
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> Sampler::Choose(const Target& target,
                                        const SamplerInput& input,
                                        SamplerScratch& scratch) const {
  if (options_.temperature == 0.0) {
    const absl::Span<const float> scores = Process(input, scratch);
    const size_t best = ArgMax(target, scores.data(), scores.size());
    if (scores[best] == kForbidden) return NothingLeft(input);
    return static_cast<int32_t>(best);
  }
  LANEWISE_RETURN_IF_ERROR(Filter(target, input, scratch));
  return scratch.candidates_.Pick(
      UniformAt(seed_, stream_, input.history.step()));
}

absl::StatusOr<SampledToken> Sampler::Step(const Target& target,
                                           const SamplerInput& input,
                                           SamplerScratch& scratch) const {
  LANEWISE_RETURN_IF_ERROR(Check(target, input, scratch));
  SampledToken token;
  LANEWISE_ASSIGN_OR_RETURN(token.id, Choose(target, input, scratch));
  if (input.want_log_prob) {
    token.log_prob = input.logits[token.id] -
                     LogSumExp(target, input.logits.data(), vocab_size_);
  }
  return token;
}

absl::StatusOr<std::vector<TokenProbability>> Sampler::Distribution(
    const Target& target, const SamplerInput& input,
    SamplerScratch& scratch) const {
  LANEWISE_RETURN_IF_ERROR(Check(target, input, scratch));
  if (options_.temperature == 0.0) {
    LANEWISE_ASSIGN_OR_RETURN(const int32_t id, Choose(target, input, scratch));
    return std::vector<TokenProbability>{{id, 1.0}};
  }
  LANEWISE_RETURN_IF_ERROR(Filter(target, input, scratch));
  SortedCandidates& candidates = scratch.candidates_;
  std::vector<TokenProbability> tokens(candidates.Count());
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = {candidates.id(i), candidates.Probability(i)};
  }
  return tokens;
}

std::vector<TokenLogProb> TopLogProbs(const Target& target,
                                      absl::Span<const float> logits,
                                      size_t count) {
  std::vector<IndexedValue> best(std::min(count, logits.size()));
  TopK(target, logits.data(), logits.size(), best.size(), best.data());
  const double sum = LogSumExp(target, logits.data(), logits.size());
  std::vector<TokenLogProb> tokens;
  tokens.reserve(best.size());
  for (const IndexedValue& token : best) {
    tokens.push_back({token.index, token.value - sum});
  }
  return tokens;
}

}  // namespace lanewise
