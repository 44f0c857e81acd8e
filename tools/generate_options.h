// What `generate` is asked to do.
#ifndef LANEWISE_TOOLS_GENERATE_OPTIONS_H_
#define LANEWISE_TOOLS_GENERATE_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "tools/flags.h"

namespace lanewise {

struct GenerateOptions {
  std::string model;  // as typed; empty: the default model
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  std::optional<std::string> system;
  bool raw = false;    // no chat template
  bool stats = false;  // speeds on standard error
  bool json = false;   // one object instead of text
  EngineOptions engine;
  GenerateRequest request;  // all but messages and prompt
};

// Flags that fill `options`, which must outlive them.
FlagSet GenerateFlags(GenerateOptions* options);

// The text above the flags in --help.
absl::string_view GenerateIntroduction();

// What single flags cannot know: contradictions, values that the library
// refuses.
absl::Status Check(const GenerateOptions& options,
                   const std::vector<std::string>& positional);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_GENERATE_OPTIONS_H_
