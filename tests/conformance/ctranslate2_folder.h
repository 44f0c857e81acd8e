// The one real Whisper of the suite is in CTranslate2's format (version 6,
// github.com/OpenNMT/CTranslate2, models/model_spec.py). This writes it as the
// folder that the library's own model would be saved as, so that it comes in
// like any other folder.
#ifndef LANEWISE_TESTS_CONFORMANCE_CTRANSLATE2_FOLDER_H_
#define LANEWISE_TESTS_CONFORMANCE_CTRANSLATE2_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace lanewise {

// Writes config.json and model.safetensors into `folder`, which exists.
// `model_bin`: a Whisper model with f16 weights. INVALID_ARGUMENT for what is
// not one.
absl::Status WriteWhisperFolder(const std::string& model_bin,
                                const std::string& folder);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_CTRANSLATE2_FOLDER_H_
