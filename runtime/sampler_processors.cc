#include "runtime/sampler_processors.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// Rounded once; what no float can hold becomes the largest one, so that only
// bans make a score infinite.
float ToFiniteScore(double score) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::min(std::max(score, -kLargest), kLargest));
}

void Add(double bias, float& score) {
  if (score != kForbidden) score = ToFiniteScore(score + bias);
}

absl::Status CheckId(absl::string_view field, int32_t id, size_t vocab_size) {
  if (static_cast<size_t>(id) < vocab_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected an id of the vocabulary, less than ",
                   vocab_size, ", found ", id));
}

absl::Status CheckIds(absl::string_view field, const std::vector<int32_t>& ids,
                      size_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(
        CheckId(absl::StrCat(field, "[", i, "]"), ids[i], vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckAllIds(const SamplingOptions& options, size_t vocab_size) {
  for (size_t i = 0; i < options.logit_bias.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(CheckId(absl::StrCat("logit_bias[", i, "].id"),
                                     options.logit_bias[i].id, vocab_size));
  }
  LANEWISE_RETURN_IF_ERROR(
      CheckIds("suppressed_ids", options.suppressed_ids, vocab_size));
  LANEWISE_RETURN_IF_ERROR(CheckIds("begin_suppressed_ids",
                                    options.begin_suppressed_ids, vocab_size));
  for (size_t i = 0; i < options.bad_words.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(CheckIds(absl::StrCat("bad_words[", i, "]"),
                                      options.bad_words[i], vocab_size));
  }
  if (options.forced_first_id.has_value()) {
    LANEWISE_RETURN_IF_ERROR(
        CheckId("forced_first_id", *options.forced_first_id, vocab_size));
  }
  if (options.forced_last_id.has_value()) {
    LANEWISE_RETURN_IF_ERROR(
        CheckId("forced_last_id", *options.forced_last_id, vocab_size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LogitsProcessors> LogitsProcessors::Create(
    const SamplingOptions& options, size_t vocab_size,
    absl::Span<const int32_t> eos_ids) {
  LANEWISE_RETURN_IF_ERROR(Validate(options));
  if (vocab_size == 0 ||
      vocab_size > size_t{std::numeric_limits<int32_t>::max()}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "vocab_size: expected 1 to 2147483647, found ", vocab_size));
  }
  LANEWISE_RETURN_IF_ERROR(CheckAllIds(options, vocab_size));
  LogitsProcessors processors;
  processors.options_ = options;
  processors.vocab_size_ = vocab_size;
  for (const int32_t id : eos_ids) {
    if (processors.InVocabulary(id)) processors.eos_ids_.push_back(id);
  }
  return processors;
}

int32_t LogitsProcessors::ForcedId(const TokenHistory& history) const {
  // The last one wins, as in the reference, where a limit of one token has
  // both.
  if (history.last && options_.forced_last_id.has_value()) {
    return *options_.forced_last_id;
  }
  if (history.ids.size() == 1 && options_.forced_first_id.has_value()) {
    return *options_.forced_first_id;
  }
  return -1;
}

bool LogitsProcessors::NothingToDo(const TokenHistory& history) const {
  const SamplingOptions& o = options_;
  const bool minimum = !eos_ids_.empty() &&
                       history.step() < static_cast<size_t>(o.min_new_tokens);
  const bool begin = history.step() == 0 && !o.begin_suppressed_ids.empty();
  return o.repetition_penalty == 1.0 && o.no_repeat_ngram == 0 &&
         o.presence_penalty == 0.0 && o.frequency_penalty == 0.0 &&
         o.logit_bias.empty() && o.suppressed_ids.empty() &&
         o.bad_words.empty() && !minimum && !begin && ForcedId(history) < 0;
}

void LogitsProcessors::Apply(const TokenHistory& history,
                             absl::Span<float> scores, IdCounts& counts) const {
  float* data = scores.data();
  if (const int32_t forced = ForcedId(history); forced >= 0) {
    std::fill(scores.begin(), scores.end(), kForbidden);
    data[forced] = 0.0f;
    return;
  }
  ApplyRepetitionPenalty(history, data, counts);
  BanNgrams(history, data);
  BanWords(history, data);
  for (const int32_t id : options_.suppressed_ids) data[id] = kForbidden;
  if (history.step() == 0) {
    for (const int32_t id : options_.begin_suppressed_ids) {
      data[id] = kForbidden;
    }
  }
  if (history.step() < static_cast<size_t>(options_.min_new_tokens)) {
    for (const int32_t id : eos_ids_) data[id] = kForbidden;
  }
  for (const LogitBias& entry : options_.logit_bias) {
    Add(entry.bias, data[entry.id]);
  }
  ApplyOccurrencePenalties(history, data, counts);
}

void LogitsProcessors::ApplyRepetitionPenalty(const TokenHistory& history,
                                              float* scores,
                                              IdCounts& counts) const {
  const double penalty = options_.repetition_penalty;
  if (penalty == 1.0) return;
  std::vector<uint32_t>& seen = counts.counts_;
  for (const int32_t id : history.ids) {
    if (!InVocabulary(id) || seen[id]++ > 0) continue;
    float& score = scores[id];
    if (score == kForbidden) continue;
    score = ToFiniteScore(score < 0 ? score * penalty : score / penalty);
  }
  for (const int32_t id : history.ids) {
    if (InVocabulary(id)) seen[id] = 0;
  }
}

void LogitsProcessors::BanNgrams(const TokenHistory& history,
                                 float* scores) const {
  const size_t n = static_cast<size_t>(options_.no_repeat_ngram);
  const size_t length = history.ids.size();
  if (n == 0 || length < n) return;
  const absl::Span<const int32_t> last = history.ids.last(n - 1);
  for (size_t i = 0; i + n <= length; ++i) {
    const int32_t next = history.ids[i + n - 1];
    if (!InVocabulary(next)) continue;
    if (std::equal(last.begin(), last.end(), history.ids.begin() + i)) {
      scores[next] = kForbidden;
    }
  }
}

void LogitsProcessors::BanWords(const TokenHistory& history,
                                float* scores) const {
  for (const std::vector<int32_t>& word : options_.bad_words) {
    const size_t before = word.size() - 1;
    if (history.ids.size() < before) continue;
    const absl::Span<const int32_t> last = history.ids.last(before);
    if (std::equal(last.begin(), last.end(), word.begin())) {
      scores[word.back()] = kForbidden;
    }
  }
}

// mu[j] - count[j] · frequency - (count[j] > 0) · presence
void LogitsProcessors::ApplyOccurrencePenalties(const TokenHistory& history,
                                                float* scores,
                                                IdCounts& counts) const {
  if (options_.presence_penalty == 0.0 && options_.frequency_penalty == 0.0) {
    return;
  }
  std::vector<uint32_t>& times = counts.counts_;
  const absl::Span<const int32_t> generated =
      history.ids.subspan(history.prompt_length);
  for (const int32_t id : generated) {
    if (InVocabulary(id)) ++times[id];
  }
  for (const int32_t id : generated) {
    if (!InVocabulary(id) || times[id] == 0) continue;
    Add(-(times[id] * options_.frequency_penalty + options_.presence_penalty),
        scores[id]);
    times[id] = 0;
  }
}

}  // namespace lanewise
