// One request to a session as a program makes it: streamed to standard output,
// ended by Ctrl-C or by a reader that has gone.
#ifndef LANEWISE_TOOLS_ANSWER_H_
#define LANEWISE_TOOLS_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "lanewise/engine.h"
#include "tools/cli.h"
#include "tools/generate_options.h"
#include "tools/output.h"

namespace lanewise {

struct Answer {
  GenerateResult result;
  bool interrupted = false;  // by Ctrl-C
};

// Generates. The text goes to `stream` as it comes (null: not shown), with a
// newline at its end.
absl::StatusOr<Answer> Ask(const Invocation& call, Session* session,
                           const GenerateRequest& request, Output* stream);

// New tokens per second, 0 where nothing was timed.
double PromptSpeed(const GenerateResult& result);
double DecodeSpeed(const GenerateResult& result);

// --stats: lines for standard error.
std::string StatsText(const Engine& engine, const GenerateResult& result);

// --json: one object and a newline.
std::string AnswerJson(const Engine& engine, const GenerateOptions& options,
                       const GenerateResult& result, absl::string_view model);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_ANSWER_H_
