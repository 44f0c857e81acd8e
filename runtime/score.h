// What a request to score means: its tokens, and the windows they are read in.
// session_score.cc computes them.
#ifndef LANEWISE_RUNTIME_SCORE_H_
#define LANEWISE_RUNTIME_SCORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lanewise/engine.h"
#include "runtime/session.h"

namespace lanewise {

// Tokens of prompt and text, of which those from `first` on are scored; first
// > 0.
struct ScoreSequence {
  std::vector<int32_t> ids;
  size_t first = 1;
};

// Errors as engine.h says.
absl::StatusOr<ScoreSequence> MakeScoreSequence(const SessionShared& shared,
                                                const ScoreRequest& request);

// Tokens [begin, end) of a sequence, of which those from `first` on are scored;
// first > begin.
struct ScoreWindow {
  size_t begin, end, first;

  // Without the last token, after which nothing is asked.
  size_t rows() const { return end - 1 - begin; }
};

// `context`: tokens of a window; `stride`: less, and above 0 where the sequence
// is longer.
std::vector<ScoreWindow> ScoreWindows(const ScoreSequence& sequence,
                                      size_t context, size_t stride);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SCORE_H_
