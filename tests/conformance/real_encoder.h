// Runs a real model of sentence embeddings.
#ifndef LANEWISE_TESTS_CONFORMANCE_REAL_ENCODER_H_
#define LANEWISE_TESTS_CONFORMANCE_REAL_ENCODER_H_

#include <string>

#include "absl/status/status.h"
#include "model/format/checkpoint.h"
#include "simd/context.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Ids of the sentences, the hidden rows of the first one, and through the
// public API means, embeddings and cosines. `checkpoint` is of the folder
// `weights`.
absl::Status RunRealEncoder(const CaseFolder& golden,
                            const Checkpoint& checkpoint,
                            const std::string& weights, const Context& context,
                            CaseReport* report);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_REAL_ENCODER_H_
