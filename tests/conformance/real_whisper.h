// Runs the real speech model of the suite on its synthetic spectrogram.
#ifndef LANEWISE_TESTS_CONFORMANCE_REAL_WHISPER_H_
#define LANEWISE_TESTS_CONFORMANCE_REAL_WHISPER_H_

#include <string>

#include "absl/status/status.h"
#include "simd/context.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Rows of the encoder, greedy ids with their score and text, and the
// tokenizer's files. `weights`: model.bin in CTranslate2's format with
// tokenizer.json beside it, or the folder of both.
absl::Status RunRealWhisper(const CaseFolder& golden,
                            const std::string& weights, const Context& context,
                            CaseReport* report);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_REAL_WHISPER_H_
