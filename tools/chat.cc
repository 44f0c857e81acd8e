#include "tools/chat.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/answer.h"
#include "tools/escaped.h"
#include "tools/interrupt.h"
#include "tools/line_reader.h"
#include "tools/output.h"

namespace lanewise {
namespace {

constexpr absl::string_view kCommands = "/reset starts over, /exit ends";

class Conversation {
 public:
  Conversation(const Invocation& call, const GenerateOptions& options,
               Engine* engine, Session* session)
      : call_(call),
        options_(options),
        engine_(engine),
        session_(session),
        out_(call.io.out),
        err_(call.io.err) {
    Reset();
  }

  int Run() {
    LineReader lines(call_.io.in);
    std::string line;
    while (!out_.reader_gone()) {
      {
        const InterruptScope interrupt;
        err_.Write("> ");
        if (!lines.Next(interrupt, &line)) break;
      }
      const absl::string_view text = absl::StripAsciiWhitespace(line);
      if (text.empty()) continue;
      if (text == "/exit") return kExitOk;
      if (text == "/reset") {
        Reset();
      } else if (absl::StartsWith(text, "/") && !options_.raw) {
        Note(call_, absl::StrCat("unknown command '", Escaped(text, 40),
                                 "': ", kCommands));
      } else if (const absl::Status status = Turn(line); !status.ok()) {
        return Fail(call_, status);
      }
    }
    err_.Write("\n");
    return kExitOk;
  }

 private:
  void Reset() {
    messages_.clear();
    if (options_.system.has_value()) {
      messages_.push_back({"system", *options_.system});
    }
  }

  // An error of the request leaves the conversation as it was; only an error
  // of the output ends it.
  absl::Status Turn(const std::string& text) {
    GenerateRequest request = options_.request;
    if (options_.raw) {
      request.prompt = text;
    } else {
      messages_.push_back({"user", text});
      request.messages = messages_;
    }
    absl::StatusOr<Answer> answer = Ask(call_, session_, request, &out_);
    if (!answer.ok()) {
      if (!options_.raw) messages_.pop_back();
      const bool full = absl::IsOutOfRange(answer.status());
      Note(call_, absl::StrCat(answer.status().message(),
                               full ? "; /reset starts over" : ""));
      return out_.status();
    }
    if (!options_.raw) {
      messages_.push_back({"assistant", std::move(answer->result.text)});
    }
    if (options_.stats) err_.Write(StatsText(*engine_, answer->result));
    return out_.status();
  }

  const Invocation& call_;
  const GenerateOptions& options_;
  Engine* engine_;
  Session* session_;
  Output out_;
  Output err_;
  std::vector<Message> messages_;
};

}  // namespace

int Chat(const Invocation& call, const GenerateOptions& options, Engine* engine,
         Session* session) {
  Note(call, absl::StrCat("one message a line; ", kCommands));
  return Conversation(call, options, engine, session).Run();
}

}  // namespace lanewise
