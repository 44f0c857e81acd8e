// What `score` is asked to do.
#ifndef LANEWISE_TOOLS_SCORE_OPTIONS_H_
#define LANEWISE_TOOLS_SCORE_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "tools/flags.h"

namespace lanewise {

struct ScoreOptions {
  std::string model;              // as typed; empty: the default model
  std::vector<std::string> text;  // arguments that are no flags
  std::optional<std::string> file;
  bool lines = false;   // every line is a text of its own
  bool tokens = false;  // every token's log-probability
  bool json = false;    // an object instead of text; with lines one a line
  bool stats = false;   // speeds and totals on standard error
  EngineOptions engine;
  ScoreRequest request;  // all but the text
};

// Flags that fill `options`, which must outlive them.
FlagSet ScoreFlags(ScoreOptions* options);

// The text above the flags in --help.
absl::string_view ScoreIntroduction();

// Contradictions. `terminal`: whether standard input is one.
absl::Status Check(const ScoreOptions& options, bool terminal);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_SCORE_OPTIONS_H_
