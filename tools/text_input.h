// Texts out of arguments, a file or a pipe: what programs over many texts
// share.
#ifndef LANEWISE_TOOLS_TEXT_INPUT_H_
#define LANEWISE_TOOLS_TEXT_INPUT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/cli.h"
#include "tools/flags.h"

namespace lanewise {

struct TextInput {
  std::vector<std::string> texts;  // arguments that are no flags
  std::optional<std::string> file;
  bool whole = false;  // the file or pipe is one text, not one a line
};

// --file and --whole.
void AddTextFlags(TextInput* input, FlagSet* flags);

// --no_truncate and --batch_tokens, of programs that run whole texts.
void AddBatchFlags(bool* no_truncate, size_t* batch_tokens, FlagSet* flags);

// Says, if there are any, how many of the texts were cut.
void NoteTruncated(const Invocation& call, size_t truncated, size_t texts,
                   size_t max_tokens);

// Contradictions. `terminal`: whether standard input is one.
absl::Status Check(const TextInput& input, bool terminal);

// The arguments, else the lines of the file, else those of standard input. A
// line without text is one too. INVALID_ARGUMENT for empty input.
absl::StatusOr<std::vector<std::string>> ReadTexts(const Invocation& call,
                                                   const TextInput& input);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_TEXT_INPUT_H_
