// How `score` prints.
#ifndef LANEWISE_TOOLS_SCORE_OUTPUT_H_
#define LANEWISE_TOOLS_SCORE_OUTPUT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "tools/score_options.h"

namespace lanewise {

// Sums over all texts.
struct ScoreTotals {
  size_t texts = 0;
  size_t tokens = 0;       // scored
  size_t read_tokens = 0;  // with those of prompts, less what was cached
  double nll = 0;
  double seconds = 0;

  void Add(const ScoreResult& result);
};

// Of one text: lines for people, or (--json) an object and a newline.
std::string SummaryText(const Engine& engine, const ScoreOptions& options,
                        const ScoreResult& result);
std::string ScoreJson(const Engine& engine, const ScoreOptions& options,
                      const ScoreResult& result, absl::string_view model);

// Of one line of several, as `options` asks. Without `result` the line has
// none: it is empty, or `error` says why.
struct ScoredLine {
  size_t number;  // from 1
  absl::string_view text;
  const ScoreResult* result;
  absl::Status error;
};
std::string LineText(const Engine& engine, const ScoreOptions& options,
                     const ScoredLine& line);

// --stats: lines for standard error.
std::string StatsText(const Engine& engine, const ScoreTotals& totals);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_SCORE_OUTPUT_H_
