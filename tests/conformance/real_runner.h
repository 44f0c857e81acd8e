// Runs a case of the conformance suite that is a real model: its folder has
// inputs and outputs, the weights lie elsewhere.
#ifndef LANEWISE_TESTS_CONFORMANCE_REAL_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_REAL_RUNNER_H_

#include <string>

#include "absl/status/statusor.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// `weights`: a file or folder that Engine::Load takes. Through the public API,
// with f32 activations and cache, on the target and as many threads as
// `context` has. Of a decoder: rendered prompts, ids, logits, negative
// log-likelihoods, greedy continuations; of a model of embeddings what
// real_encoder.h says; of both the tokenizer's files. An error means that the
// case could not be run at all.
absl::StatusOr<CaseReport> RunRealCase(const std::string& folder,
                                       const std::string& weights,
                                       const Context& context);

// Where under `models` the weights of the case in `folder` are: NAME, NAME.gguf
// or the file that case.json names as source. Empty: nowhere.
std::string FindRealWeights(const std::string& folder,
                            const std::string& models);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_REAL_RUNNER_H_
