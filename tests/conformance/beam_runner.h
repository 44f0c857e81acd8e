// Runs the beam-search runs of a model folder of the conformance suite: all
// sequences equal, sequences_scores within 1e-4. Activations and cache are f32.
// ReadBeamParams and CompareBeams serve models of every family.
#ifndef LANEWISE_TESTS_CONFORMANCE_BEAM_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_BEAM_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "runtime/beam_search.h"
#include "simd/context.h"
#include "tests/conformance/case_runner.h"

namespace lanewise {

// The options in a run's `params`; UNIMPLEMENTED names a key that it does not
// know. Prompts and vocab_size are left to the caller.
absl::StatusOr<BeamSearchRequest> ReadBeamParams(const nlohmann::json& params);

// What a run expects, row-major: [rows, width] ids, each row without its first
// prompt_length ids, and one score a row.
struct ExpectedBeams {
  std::string run;
  size_t width = 0;
  std::vector<int32_t> ids;
  std::vector<float> scores;
  int32_t pad_id = 0;
};

// Appends the comparisons "sequences" and "sequences_scores".
void CompareBeams(const ExpectedBeams& expected,
                  absl::Span<const std::vector<BeamHypothesis>> found,
                  CaseReport* report);

// Runs of decoders with more than one beam, all rows of a run as one batch;
// `max_rows` of one forward pass.
absl::StatusOr<CaseReport> RunBeamCase(const std::string& folder,
                                       const Context& context, size_t max_rows);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_BEAM_RUNNER_H_
