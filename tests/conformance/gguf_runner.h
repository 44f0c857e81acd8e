// Checks what is read from a GGUF file against what its maker recorded in
// case.json and golden.safetensors: metadata, types, shapes and values of
// tensors. Where a file lists tensors of types that the library does not have,
// they must be listed as such under the right name; the report's note says
// which.
#ifndef LANEWISE_TESTS_CONFORMANCE_GGUF_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_GGUF_RUNNER_H_

#include <string>

#include "absl/status/statusor.h"
#include "model/format/checkpoint.h"
#include "simd/context.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

LineCount CompareMetadata(const CaseFolder& golden,
                          const Checkpoint& checkpoint);

// Of every tensor in case.json what the suite has: all values, or sums and the
// first and last values. Exact for plain types and Q8_0, else 1e-6 of the
// tensor's largest value.
LineCount CompareTensors(const CaseFolder& golden,
                         const Checkpoint& checkpoint);

// A folder under gguf/: the two above, the vocabulary (tokenize.jsonl) and the
// model's runs.
absl::StatusOr<CaseReport> RunGgufCase(const std::string& folder,
                                       const Context& context);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_GGUF_RUNNER_H_
