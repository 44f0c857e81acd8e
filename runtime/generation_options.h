// What a caller may ask of token selection. The defaults are greedy decoding.
//
//   SamplingOptions options;
//   options.temperature = 0.7;
//   options.top_p = 0.9;
//   options.seed = 42;
//
// The processors run in this order, which is that of the Hugging Face library
// with additions: repetition penalty, n-gram ban, bad words and suppressed ids,
// minimum length, logit bias, presence and frequency penalties, forced ids,
// then temperature, top-k, top-p, min-p, typical, epsilon.
#ifndef LANEWISE_RUNTIME_GENERATION_OPTIONS_H_
#define LANEWISE_RUNTIME_GENERATION_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

namespace lanewise {

struct LogitBias {
  int32_t id = 0;
  double bias = 0.0;  // added to the logit; finite
};

struct SamplingOptions {
  // Logits are divided by it; 0: always the most probable token, the lowest id
  // on ties. Finite, >= 0.
  double temperature = 0.0;

  // Keep the k largest, and what ties with the k-th. >= 0; 0: off. Fan et al.
  // 2018, https://arxiv.org/abs/1805.04833
  int32_t top_k = 0;

  // Keep the smallest set of most probable tokens whose mass reaches p, the one
  // that crosses included. [0, 1]; 1: off. Holtzman et al. 2019,
  // https://arxiv.org/abs/1904.09751
  double top_p = 1.0;

  // Keep tokens at least this fraction as probable as the most probable one.
  // [0, 1]; 0: off. Nguyen et al. 2024, https://arxiv.org/abs/2407.01082
  double min_p = 0.0;

  // Keep the tokens whose information is nearest the entropy, up to this mass.
  // (0, 1]; 1: off. Meister et al. 2022, https://arxiv.org/abs/2202.00666
  double typical_p = 1.0;

  // Keep tokens at least this probable, and always the most probable. [0, 1);
  // 0: off. Hewitt et al. 2022, https://arxiv.org/abs/2210.15191
  double epsilon_cutoff = 0.0;

  // Logits of ids in the prompt or the output: divided by it when positive,
  // multiplied when negative. > 0, finite; 1: off. Keskar et al. 2019,
  // https://arxiv.org/abs/1909.05858
  double repetition_penalty = 1.0;

  // Subtracted from the logits of generated ids. Finite; 0: off.
  // https://platform.openai.com/docs/api-reference/chat/create
  double presence_penalty = 0.0;

  // Subtracted from the logits of generated ids once per occurrence. Finite; 0:
  // off.
  double frequency_penalty = 0.0;

  // No sequence of this many ids occurs twice, the prompt counted. >= 0; 0:
  // off. Paulus et al. 2017, https://arxiv.org/abs/1705.04304
  int32_t no_repeat_ngram = 0;

  // The end tokens are forbidden for this many generated tokens. >= 0; 0: off.
  int32_t min_new_tokens = 0;

  // Added to logits; ids distinct and within the vocabulary.
  std::vector<LogitBias> logit_bias;

  // Never chosen; within the vocabulary.
  std::vector<int32_t> suppressed_ids;

  // Not chosen as the first generated token; within the vocabulary.
  std::vector<int32_t> begin_suppressed_ids;

  // Sequences of ids that never occur in the output: the last id is forbidden
  // where the others precede it. None empty.
  std::vector<std::vector<int32_t>> bad_words;

  // Chosen when the sequence holds one id so far (an encoder-decoder's start
  // token).
  std::optional<int32_t> forced_first_id;

  // Chosen as the last token the length limit allows.
  std::optional<int32_t> forced_last_id;

  // Same seed, same tokens, on every machine. Unset: taken from the system and
  // reported.
  std::optional<uint64_t> seed;
};

// INVALID_ARGUMENT names the field, the expected range and the value found.
// Upper bounds of ids are checked where the vocabulary is known.
absl::Status Validate(const SamplingOptions& options);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_GENERATION_OPTIONS_H_
