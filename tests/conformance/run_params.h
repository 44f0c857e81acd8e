// The parameters of a suite's runs of kind "generate", and its texts.
#ifndef LANEWISE_TESTS_CONFORMANCE_RUN_PARAMS_H_
#define LANEWISE_TESTS_CONFORMANCE_RUN_PARAMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/beam_search_options.h"
#include "runtime/generation_options.h"

namespace lanewise {

struct RunParams {
  BeamOptions beams;
  SamplingOptions processors;
  size_t max_new_tokens = 0;
  size_t max_length = 0;  // of an encoder-decoder's sequences, the start token
                          // counted; 0: max_new_tokens says
  std::vector<int32_t> eos_ids;
  int32_t pad_id = 0;
  int32_t start_id = 0;      // of an encoder-decoder's decoder
  size_t prompt_length = 0;  // columns of `sequences` before the new tokens

  bool IsEnd(int32_t id) const {
    return std::find(eos_ids.begin(), eos_ids.end(), id) != eos_ids.end();
  }
};

// Whether a run searches with more than one beam.
bool HasBeams(const nlohmann::json& run);

// `params` of a run; UNIMPLEMENTED names a key that it does not know.
absl::StatusOr<RunParams> ReadRunParams(const nlohmann::json& run);

// The same from an object of parameters, such as a generation_config.json.
absl::StatusOr<RunParams> ReadParams(const nlohmann::json& params);

// One of `text_runs` in case.json.
struct TextRun {
  std::string name;  // of the run with its outputs; "" where there is none
  std::string text;
  std::optional<std::string> pair;
  std::vector<int32_t> input_ids;
  std::vector<int32_t> type_ids;  // empty: not recorded
  std::vector<int32_t> new_ids;   // empty for encoders
  std::string new_text;
};
absl::StatusOr<TextRun> ReadTextRun(const nlohmann::json& run,
                                    const std::string& file);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_RUN_PARAMS_H_
