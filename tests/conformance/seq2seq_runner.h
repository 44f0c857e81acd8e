// Runs the cases of encoder-decoders: hidden states of both stacks and logits,
// for padded batches and for each row alone; greedy decoding and beam search,
// the cache against one pass over all decoder ids, bit for bit.
#ifndef LANEWISE_TESTS_CONFORMANCE_SEQ2SEQ_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_SEQ2SEQ_RUNNER_H_

#include <string>

#include "absl/status/statusor.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Activations and caches are f32. An error means that the case could not be run
// at all.
absl::StatusOr<CaseReport> RunSeq2SeqCase(const std::string& folder,
                                          const Context& context);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_SEQ2SEQ_RUNNER_H_
