// What `classify` is asked to do.
#ifndef LANEWISE_TOOLS_CLASSIFY_OPTIONS_H_
#define LANEWISE_TOOLS_CLASSIFY_OPTIONS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "tools/flags.h"
#include "tools/text_input.h"

namespace lanewise {

struct ClassifyOptions {
  std::string model;
  TextInput input;
  std::optional<std::string> pair;      // beside each text
  std::optional<std::string> question;  // answered from each text
  bool tokens = false;                  // Aggregation::kNone
  bool no_truncate = false;
  bool json = false;   // an object a text
  bool stats = false;  // speeds and sizes on standard error
  EngineOptions engine;
  ClassifyRequest request;  // all but the inputs
};

// Flags that fill `options`, which must outlive them.
FlagSet ClassifyFlags(ClassifyOptions* options);

// The text above the flags in --help.
absl::string_view ClassifyIntroduction();

// Contradictions. `terminal`: whether standard input is one.
absl::Status Check(const ClassifyOptions& options, bool terminal);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_CLASSIFY_OPTIONS_H_
