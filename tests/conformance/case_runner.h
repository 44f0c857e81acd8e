// Runs one model folder of the conformance suite (its layout: config.json,
// weights, case.json with the runs, golden.safetensors with inputs and expected
// tensors) and reports every comparison. Activations and cache are f32.
#ifndef LANEWISE_TESTS_CONFORMANCE_CASE_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_CASE_RUNNER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "simd/context.h"

namespace lanewise {

struct Comparison {
  std::string run;     // "greedy"
  std::string output;  // "step_logits"
  double error = 0;    // largest difference, in units of the tolerance's scale
  double tolerance = 0;
  std::string failure;  // empty: passed
};

struct CaseReport {
  std::string name;
  std::string architecture;
  std::vector<Comparison> comparisons;
  std::vector<std::string> skipped;  // runs of kinds that were not asked for

  bool passed() const;
  std::string Failures() const;  // one a line
};

// `kinds`: which kinds of runs to do ("forward", "perplexity", "generate");
// runs of generate with beams count as kind "beam". An error means that the
// case could not be run at all.
absl::StatusOr<CaseReport> RunDecoderCase(
    const std::string& folder, const Context& context,
    const std::vector<std::string>& kinds);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_CASE_RUNNER_H_
