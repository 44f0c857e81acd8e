// Runs any model of the conformance suite: all outputs that its case.json
// lists, with the folder's config.json and, where there is one, with
// config.legacy.json in its place.
#ifndef LANEWISE_TESTS_CONFORMANCE_MODEL_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_MODEL_RUNNER_H_

#include <string>

#include "absl/status/statusor.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Activations and cache are f32. Outputs of the legacy configuration are
// comparisons whose run begins with "legacy ". An error means that the model
// does not load.
absl::StatusOr<CaseReport> RunModelCase(const std::string& folder,
                                        const Context& context);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_MODEL_RUNNER_H_
