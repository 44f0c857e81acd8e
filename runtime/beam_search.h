// Beam search over any model that computes logits step by step: the most
// probable continuations of several inputs at once, with the results of the
// Hugging Face library (transformers, GenerationMixin._beam_search).
//
//   BeamSearchRequest request;
//   request.prompts = {prompt};  // an encoder-decoder's: {start token}
//   request.beams.num_beams = 4;
//   request.vocab_size = vocab_size;
//   request.eos_ids = {eos};
//   request.max_new_tokens = 64;
//   LANEWISE_ASSIGN_OR_RETURN(auto results,
//                             BeamSearch(context, request, stepper));
//   results[0][0].ids;  // the best continuation of the first prompt
//
// A step takes the log-softmax of each running beam's logits and lets the
// processors (repetition penalty, bans, …) act on it. The sum with the beam's
// own log-probability ranks all continuations of an input. One that ends counts
// as finished only when it ranks among the first num_beams; the first num_beams
// that do not end run on. A finished one scores sum / length ** length_penalty,
// its new tokens counted, the end token too; the best num_beams are kept.
// Beams still running after max_new_tokens finish there. Inputs do not
// influence each other. Equal scores: the better-ranked beam of the step before
// first, then the lower id; the hypothesis that finished first.
#ifndef LANEWISE_RUNTIME_BEAM_SEARCH_H_
#define LANEWISE_RUNTIME_BEAM_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/beam_search_options.h"
#include "runtime/generation_options.h"
#include "simd/context.h"

namespace lanewise {

// One row of a step: a beam of the step before, continued by a token.
struct BeamStep {
  size_t parent;  // row of the step before
  int32_t token;
};

// The model, as a search sees it.
class BeamStepper {
 public:
  virtual ~BeamStepper() = default;

  // Moves on to `rows` and returns their logits [rows, vocab_size], valid until
  // the next call. Before the first call, row i is the prompt of input i
  // without its last token, which is the token that the first call continues it
  // by. A row may have several children, in ascending order, or none: then it
  // is over. Rows of one input are neighbours, inputs in ascending order. An
  // error ends the search.
  virtual absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep> rows) = 0;
};

struct BeamSearchRequest {
  // None empty. The processors see them, as sampler_processors.h says.
  std::vector<absl::Span<const int32_t>> prompts;

  BeamOptions beams;
  SamplingOptions processors;    // temperature 0; its filters play no part
  size_t vocab_size = 0;         // of the logits
  std::vector<int32_t> eos_ids;  // those outside the vocabulary never come
  size_t max_new_tokens = 0;     // at least 1
};

struct BeamHypothesis {
  std::vector<int32_t> ids;  // new tokens, the end token included
  double log_probability;    // sum over ids, as the processors left them
  double score;              // log_probability / length ** length_penalty
  bool ended;                // by an end token, not by max_new_tokens
};

// For each prompt the best num_return_sequences hypotheses, best first; fewer
// only where no more exist (a tiny vocabulary, or bans).
//
// INVALID_ARGUMENT for options out of range, INTERNAL for logits that are not
// finite, FAILED_PRECONDITION when bans leave no token to any beam of an input
// and none has finished; the latter two name input and step. Errors of the
// stepper as they are.
absl::StatusOr<std::vector<std::vector<BeamHypothesis>>> BeamSearch(
    const Context& context, const BeamSearchRequest& request,
    BeamStepper& stepper);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_BEAM_SEARCH_H_
