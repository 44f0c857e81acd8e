// Runs one model of the conformance suite that is a decoder: its folder, with
// case.json and golden.safetensors beside the model. Activations and cache are
// f32.
#ifndef LANEWISE_TESTS_CONFORMANCE_DECODER_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_DECODER_RUNNER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// `kinds`: which kinds of runs to do ("forward", "perplexity", "generate",
// and "text": the texts with ids and continuations that case.json lists);
// runs of generate with beams count as kind "beam", which is beam_runner.h's.
// An error means that the case could not be run at all.
absl::StatusOr<CaseReport> RunDecoderCase(
    const std::string& folder, const Context& context,
    const std::vector<std::string>& kinds);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_DECODER_RUNNER_H_
