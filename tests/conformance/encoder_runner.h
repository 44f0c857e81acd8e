// Runs the cases of encoder-only models: hidden states, pooled vectors and the
// logits of every kind of head, for padded batches and for each row alone.
#ifndef LANEWISE_TESTS_CONFORMANCE_ENCODER_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_ENCODER_RUNNER_H_

#include <string>

#include "absl/status/statusor.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Activations are f32. An error means that the case could not be run at all.
absl::StatusOr<CaseReport> RunEncoderCase(const std::string& folder,
                                          const Context& context);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_ENCODER_RUNNER_H_
