// What `translate` is asked to do.
#ifndef LANEWISE_TOOLS_TRANSLATE_OPTIONS_H_
#define LANEWISE_TOOLS_TRANSLATE_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "tools/flags.h"

namespace lanewise {

struct TranslateCommand {
  std::string model;               // as typed; empty: the default model
  std::vector<std::string> texts;  // arguments that are no flags
  std::optional<std::string> file;
  bool json = false;   // an object a text
  bool stats = false;  // speeds and totals on standard error
  EngineOptions engine;
  TranslateRequest request;  // all but texts and options
  // What the flags say; before the model is loaded, over TranslateOptions'
  // defaults.
  TranslateOptions options;
};

// Flags that fill `command`, which must outlive them.
FlagSet TranslateFlags(TranslateCommand* command);

// The text above the flags in --help.
absl::string_view TranslateIntroduction();

// Contradictions. `terminal`: whether standard input is one.
absl::Status Check(const TranslateCommand& command, bool terminal);

// The model's own settings with what the flags in `arguments` say instead.
// `command`: of the same arguments. INVALID_ARGUMENT where both do not fit
// together.
absl::StatusOr<TranslateOptions> ApplyFlags(
    absl::Span<const std::string> arguments, const TranslateCommand& command,
    const TranslateOptions& model);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_TRANSLATE_OPTIONS_H_
