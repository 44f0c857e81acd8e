// Runs the beam-search runs of a model folder of the conformance suite: all
// sequences equal, sequences_scores within 1e-4. Activations and cache are f32.
// BeamRequest and CompareBeams serve models of every family.
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
#include "tests/conformance/case_folder.h"
#include "tests/conformance/case_report.h"
#include "tests/conformance/run_params.h"

namespace lanewise {

// Prompts and vocab_size are left to the caller.
BeamSearchRequest BeamRequest(const RunParams& params);

// What a run expects, row-major: [rows, width] ids, each row without its first
// prompt_length ids, and one score a row.
struct ExpectedBeams {
  std::string run;
  size_t width = 0;
  std::vector<int32_t> ids;
  std::vector<float> scores;
  int32_t pad_id = 0;
};

absl::StatusOr<ExpectedBeams> ReadExpectedBeams(const CaseFolder& golden,
                                                const nlohmann::json& run,
                                                const RunParams& params);

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
