// What generation and translation return alike.
#ifndef LANEWISE_RUNTIME_HYPOTHESIS_H_
#define LANEWISE_RUNTIME_HYPOTHESIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lanewise {

enum class FinishReason : uint8_t {
  kEnd,        // an end-of-text or end-of-turn token
  kStop,       // a stop string
  kLength,     // max_tokens or the context is used up
  kCancelled,  // on_text returned false, or should_cancel true
};
absl::string_view FinishReasonName(FinishReason reason);

// One result of beam search.
struct Hypothesis {
  std::string text;
  std::vector<int32_t> ids;    // new tokens, the end token included
  double log_probability = 0;  // sum over ids, as the processors left them
  double score = 0;            // log_probability / length ** length_penalty
  FinishReason finish_reason = FinishReason::kLength;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_HYPOTHESIS_H_
