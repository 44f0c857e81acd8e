// Log-probabilities of a given text: what Engine::Score does.
#ifndef LANEWISE_RUNTIME_SCORE_H_
#define LANEWISE_RUNTIME_SCORE_H_

#include "absl/status/statusor.h"
#include "lanewise/engine.h"
#include "runtime/session.h"

namespace lanewise {

// As engine.h says, with an executor and a cache of its own.
absl::StatusOr<ScoreResult> ScoreText(const SessionShared& shared,
                                      const ScoreRequest& request,
                                      const ScoreCallbacks& callbacks);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SCORE_H_
