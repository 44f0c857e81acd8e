// What `embed` is asked to do.
#ifndef LANEWISE_TOOLS_EMBED_OPTIONS_H_
#define LANEWISE_TOOLS_EMBED_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "tools/flags.h"
#include "tools/text_input.h"

namespace lanewise {

enum class EmbedFormat : uint8_t { kText, kJsonl, kNpy };

struct EmbedOptions {
  std::string model;  // as typed; empty: the default model
  TextInput input;
  bool no_truncate = false;
  bool similarity = false;  // cosines of all pairs instead of vectors
  EmbedFormat format = EmbedFormat::kText;
  std::optional<std::string> out;
  bool stats = false;  // speeds and sizes on standard error
  EngineOptions engine;
  EmbedRequest request;  // all but the texts
};

// Flags that fill `options`, which must outlive them.
FlagSet EmbedFlags(EmbedOptions* options);

// The text above the flags in --help.
absl::string_view EmbedIntroduction();

// Contradictions. `terminal_in`, `terminal_out`: whether standard input and
// output are terminals.
absl::Status Check(const EmbedOptions& options, bool terminal_in,
                   bool terminal_out);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_EMBED_OPTIONS_H_
