// What a caller may ask of beam search.
//
//   BeamOptions options;
//   options.num_beams = 4;
//   options.length_penalty = 0.6;
//   options.num_return_sequences = 4;  // n-best
#ifndef LANEWISE_RUNTIME_BEAM_SEARCH_OPTIONS_H_
#define LANEWISE_RUNTIME_BEAM_SEARCH_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace lanewise {

// When a search with num_beams finished hypotheses ends.
enum class EarlyStopping : uint8_t {
  kNo,     // when the best running one, if it ended here, would be no better
  kYes,    // at once
  kNever,  // when no running one can become better, however long it gets
};

struct BeamOptions {
  static constexpr int32_t kMaxBeams = 1024;
  static constexpr double kMaxLengthPenalty = 16.0;

  // Hypotheses followed at a time. 1 to kMaxBeams; 1: greedy decoding.
  int32_t num_beams = 1;

  // Hypotheses returned, best first. 1 to num_beams.
  int32_t num_return_sequences = 1;

  // Scores are log-probability / length ** this: above 0 favours long ones, 0
  // none, below 0 short ones. At most kMaxLengthPenalty from 0. Wu et al. 2016,
  // https://arxiv.org/abs/1609.08144
  double length_penalty = 1.0;

  // kNever differs from kNo only with a length_penalty above 0.
  EarlyStopping early_stopping = EarlyStopping::kNo;
};

// INVALID_ARGUMENT names the field, the expected range and the value found.
absl::Status Validate(const BeamOptions& options);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_BEAM_SEARCH_OPTIONS_H_
