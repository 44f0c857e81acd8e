#include "tools/generate.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lanewise/engine.h"
#include "simd/status_macros.h"
#include "tools/answer.h"
#include "tools/chat.h"
#include "tools/engine_setup.h"
#include "tools/generate_options.h"
#include "tools/output.h"

namespace lanewise {
namespace {

class Program {
 public:
  Program(const Invocation& call, GenerateOptions options)
      : call_(call), options_(std::move(options)) {}

  int Run() {
    interactive_ = !options_.prompt.has_value() && !options_.file.has_value() &&
                   isatty(call_.io.in) == 1;
    const bool beams = options_.request.beams.num_beams > 1;
    if (interactive_ && (options_.json || beams)) {
      return FailUsage(call_, absl::InvalidArgumentError(absl::StrCat(
                                  options_.json ? "--json" : "--beams",
                                  " is for one message: give it with --prompt, "
                                  "--file or a pipe")));
    }
    std::string text;
    if (!interactive_) {
      absl::StatusOr<std::string> message = ReadMessage();
      if (!message.ok()) return Fail(call_, message.status());
      text = *std::move(message);
    }
    if (absl::Status status = Load(); !status.ok()) return Fail(call_, status);
    if (interactive_) {
      return Chat(call_, options_, engine_.get(), session_.get());
    }
    return AnswerOnce(std::move(text));
  }

 private:
  absl::StatusOr<std::string> ReadMessage() const {
    std::string text;
    if (options_.prompt.has_value()) {
      text = *options_.prompt;
    } else if (options_.file.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(text, ReadTextFile(call_, *options_.file));
    } else {
      LANEWISE_ASSIGN_OR_RETURN(text, ReadStandardInput(call_));
    }
    if (!text.empty()) return text;
    return absl::InvalidArgumentError(
        "the prompt is empty: give a text with --prompt TEXT, --file FILE or a "
        "pipe");
  }

  absl::Status Load() {
    LANEWISE_ASSIGN_OR_RETURN(path_, ModelPath(call_, options_.model));
    LANEWISE_ASSIGN_OR_RETURN(engine_,
                              LoadEngine(call_, path_, options_.engine));
    if (!options_.raw && !engine_->has_chat_template()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_,
                       ": this model has no chat template to make a message "
                       "of: add --raw to continue the text as it is"));
    }
    LANEWISE_ASSIGN_OR_RETURN(session_, engine_->NewSession());
    return absl::OkStatus();
  }

  int AnswerOnce(std::string text) {
    GenerateRequest request = options_.request;
    request.hash_logits = options_.json;
    if (options_.raw) {
      request.prompt = std::move(text);
    } else {
      if (options_.system.has_value()) {
        request.messages.push_back({"system", *options_.system});
      }
      request.messages.push_back({"user", std::move(text)});
    }
    Output out(call_.io.out);
    absl::StatusOr<Answer> answer =
        Ask(call_, session_.get(), request, options_.json ? nullptr : &out);
    if (!answer.ok()) return Fail(call_, answer.status());
    if (options_.json) {
      out.Write(AnswerJson(*engine_, options_, answer->result, path_));
    }
    if (!out.status().ok()) return Fail(call_, out.status());
    if (options_.stats) {
      Output(call_.io.err).Write(StatsText(*engine_, answer->result));
    }
    if (answer->interrupted) {
      return Fail(call_, absl::CancelledError("interrupted"));
    }
    return kExitOk;
  }

  const Invocation& call_;
  GenerateOptions options_;
  bool interactive_ = false;
  std::string path_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;  // ends before its engine
};

}  // namespace

int Generate(const Invocation& call) {
  GenerateOptions options;
  FlagSet flags = GenerateFlags(&options);
  std::vector<std::string> positional;
  absl::Status status = flags.Parse(call.arguments, &positional);
  if (flags.help_requested()) {
    return PrintHelp(call, GenerateIntroduction(), flags);
  }
  if (status.ok()) status = Check(options, positional);
  if (!status.ok()) return FailUsage(call, status);
  return Program(call, std::move(options)).Run();
}

}  // namespace lanewise
