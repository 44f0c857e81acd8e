// What changes the scores of single tokens before one is chosen: penalties,
// bans, biases. Shared by sampling, which gives logits, and beam search, which
// gives log-probabilities.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       auto processors, LogitsProcessors::Create(options, vocab_size, eos));
//   IdCounts counts(vocab_size);
//   processors.Apply(history, absl::MakeSpan(scores), counts);
#ifndef LANEWISE_RUNTIME_SAMPLER_PROCESSORS_H_
#define LANEWISE_RUNTIME_SAMPLER_PROCESSORS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/generation_options.h"

namespace lanewise {

// Where a sequence stands when its next token is chosen. Of an encoder-decoder,
// the decoder's ids only. Ids outside the vocabulary (placeholders of images)
// are allowed and count for nothing.
struct TokenHistory {
  absl::Span<const int32_t> ids;  // prompt, then generated
  size_t prompt_length = 0;       // <= ids.size(); the start token counts
  bool last = false;  // the next token is the last the length limit allows

  size_t step() const { return ids.size() - prompt_length; }
};

// Scratch memory: a counter for each id of a vocabulary, zero between uses.
class IdCounts {
 public:
  explicit IdCounts(size_t vocab_size) : counts_(vocab_size) {}

 private:
  friend class LogitsProcessors;
  std::vector<uint32_t> counts_;
};

// Options of one request, compiled for a vocabulary. Immutable.
class LogitsProcessors {
 public:
  // `eos_ids` are what min_new_tokens forbids; those outside the vocabulary are
  // ignored. INVALID_ARGUMENT for options that Validate refuses and for ids in
  // them outside the vocabulary.
  static absl::StatusOr<LogitsProcessors> Create(
      const SamplingOptions& options, size_t vocab_size,
      absl::Span<const int32_t> eos_ids);

  // Whether Apply changes nothing, whatever the scores.
  bool NothingToDo(const TokenHistory& history) const;

  // Scores [vocab_size] in place, in the order of generation_options.h: finite
  // ones stay finite, forbidden ones become -inf. A forced token gets 0 and all
  // others -inf. Linear in the history; allocates nothing.
  void Apply(const TokenHistory& history, absl::Span<float> scores,
             IdCounts& counts) const;

 private:
  LogitsProcessors() = default;

  void ApplyRepetitionPenalty(const TokenHistory& history, float* scores,
                              IdCounts& counts) const;
  void BanNgrams(const TokenHistory& history, float* scores) const;
  void BanWords(const TokenHistory& history, float* scores) const;
  void ApplyOccurrencePenalties(const TokenHistory& history, float* scores,
                                IdCounts& counts) const;
  int32_t ForcedId(const TokenHistory& history) const;  // -1: none
  bool InVocabulary(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < vocab_size_;
  }

  SamplingOptions options_;
  size_t vocab_size_ = 0;
  std::vector<int32_t> eos_ids_;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SAMPLER_PROCESSORS_H_
